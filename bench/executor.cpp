// Costs of a step besides arithmetic: dispatch of one instruction, fork and join of one parallel
// region, and a whole network's step with the layouts that lowering chose, compared with row-major
// maps.
//
//   bench_executor [WORKLOAD.toml …] [--benchmark_…]   each workload is timed in both layouts
#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/model/model.h"
#include "api/run_files.h"
#include "engine/graph/builder.h"
#include "engine/train/loop/trainer.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/parallel.h"

namespace tandem {
namespace {

constexpr std::int64_t chain_elements = 16;
constexpr int warm_up_steps = 3, steps_together = 10;

/// The cpu with another list of kernels.
class OtherKernels final : public Device {
 public:
  OtherKernels(Device& cpu, KernelList kernels) : cpu_(cpu), kernels_(std::move(kernels)) {}
  const std::string& name() const override { return cpu_.name(); }
  const DeviceFacts& facts() const override { return cpu_.facts(); }
  const KernelList& kernels() const override { return kernels_; }
  std::size_t memory_bytes() const override { return cpu_.memory_bytes(); }
  std::unique_ptr<Memory> allocate(std::size_t bytes) override { return cpu_.allocate(bytes); }
  std::unique_ptr<Memory> reserve(std::size_t bytes) override { return cpu_.reserve(bytes); }
  std::unique_ptr<Stream> make_stream(StreamKind kind, const std::string& name) override {
    return cpu_.make_stream(kind, name);
  }
  std::unique_ptr<Event> make_event() override { return cpu_.make_event(); }
  void to_device(void* to, const void* from, std::size_t bytes) override {
    cpu_.to_device(to, from, bytes);
  }
  void to_host(void* to, const void* from, std::size_t bytes) override {
    cpu_.to_host(to, from, bytes);
  }
  void on_lane(const std::function<void()>& f) override { cpu_.on_lane(f); }

 private:
  Device& cpu_;
  KernelList kernels_;
};

/// Neg without arithmetic: only the engine's own work remains.
Kernel empty_kernel() {
  Kernel kernel;
  kernel.name = "bench.empty";
  kernel.op = "Neg";
  kernel.propose = propose_row_major;
  kernel.prepare = [](const KernelRequest&) { return prepared([](const KernelArguments&) {}); };
  return kernel;
}

/// y = -(-(… x)) over a few elements, with `count` nodes.
Graph chain(const OperatorSet& operators, int count) {
  GraphBuilder g(operators);
  g.set_scope({"chain", Phase::forward, {}});
  ValueId x = g.input("x", {DType::float32, {chain_elements}});
  for (int i = 0; i < count; ++i) x = g.neg(x);
  g.output("y", x);
  return g.finish();
}

std::int64_t instructions(const Plan& plan) {
  std::int64_t count = 0;
  for (const Queue& queue : plan.queues) {
    count += std::count_if(queue.instructions.begin(), queue.instructions.end(),
                           [](const Instruction& i) { return i.kind == Instruction::Kind::run; });
  }
  return count;
}

/// Runs a step of unfused nodes, each of which is one instruction.
void dispatch(benchmark::State& state, bool empty, int count) {
  const OperatorSet operators = all_operators();
  const std::unique_ptr<Device> cpu = make_cpu_device();
  OtherKernels without_work(*cpu, {empty_kernel()});
  Device& device = empty ? static_cast<Device&>(without_work) : *cpu;
  const Graph graph = chain(operators, count);
  ProgramOptions options;
  options.lower.disabled_passes = {"fuse"};
  StateStore states;
  Program program(graph, api::place_everything(graph), operators, {&device}, states, make_arenas(),
                  options);
  std::uint64_t ticket = 0;
  const StepContext context;
  for (; ticket < 100; ++ticket) program.run(context, ticket);
  for (auto _ : state) program.run(context, ticket++);
  state.counters["instructions"] = static_cast<double>(instructions(program.plan()));
}

/// Runs an empty region on the whole team; regions follow at once, as within a step.
void fork_join(benchmark::State& state) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  const int team = cpu->facts().threads;
  cpu->on_lane([&] {
    for (auto _ : state) parallel_parts(team, [](int part) { benchmark::DoNotOptimize(part); });
  });
  state.counters["team"] = team;
}

/// A workload's training, lowered with or without channels-last groups.
class Network {
 public:
  Network(const std::string& path, bool row_major_only)
      : config_(read_run_config(path)), engine_(config_.threads), model_(engine_, config_) {
    RunParts parts = model_.run_parts();
    if (row_major_only) parts.options.lower.disabled_passes = {"channels_last"};
    DataSets data = open_data(*config_.data, model_.model().open_options());
    data.eval = nullptr;
    training_ = std::make_unique<Training>(config_, std::move(parts), std::move(data));
    training_->run_steps(warm_up_steps, [](double) {});
  }

  double mean_step_seconds() {
    double total = 0;
    training_->run_steps(steps_together, [&](double seconds) { total += seconds; });
    return total / steps_together;
  }

  struct Count {
    std::int64_t channels_last_maps = 0;  // activations and gradients that are not row-major
    std::int64_t reorders = 0;            // instructions that only copy to another layout
  };
  Count count() const {
    const Lowered& lowered = training_->main_program().program->lowered();
    Count result;
    for (std::size_t v = 0; v < lowered.values.size(); ++v) {
      const Value& value = lowered.graph.values[v];
      const Layout& layout = lowered.values[v].layout;
      if (value.kind != ValueKind::computed || value.type.rank() < 3) continue;
      if (lowered.graph.node(value.producer).op->name == "Copy") {
        ++result.reorders;
      } else if (layout.is_strided() && is_channels_last(layout, value.type.shape) &&
                 !is_row_major(layout, value.type.shape)) {
        ++result.channels_last_maps;
      }
    }
    return result;
  }

 private:
  RunConfig config_;
  api::Engine engine_;
  api::PlacedModel model_;
  std::unique_ptr<Training> training_;
};

/// Both layouts of a workload, made by the first benchmark that needs them.
struct Layouts {
  std::string path;
  std::unique_ptr<Network> networks[2];  // as chosen, row-major only

  Network& get(bool row_major_only) {
    std::unique_ptr<Network>& network = networks[row_major_only];
    if (!network) network = std::make_unique<Network>(path, row_major_only);
    return *network;
  }
};

void network_step(benchmark::State& state, Layouts& layouts, bool row_major_only) {
  try {
    Network& network = layouts.get(row_major_only);
    const Network::Count count = network.count();
    if (row_major_only && count.channels_last_maps > 0) {
      state.SkipWithError("lowering has no pass \"channels_last\" to switch off");
      return;
    }
    for (auto _ : state) state.SetIterationTime(network.mean_step_seconds());
    state.counters["channels_last_maps"] = static_cast<double>(count.channels_last_maps);
    state.counters["reorders"] = static_cast<double>(count.reorders);
  } catch (const Error& error) {
    state.SkipWithError(error.what());
  }
}

void add_networks(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const auto layouts = std::make_shared<Layouts>();
    layouts->path = path;
    const std::string name = "network/" + std::filesystem::path(path).stem().string();
    for (const bool row_major_only : {false, true}) {
      benchmark::RegisterBenchmark((name + (row_major_only ? "/row_major" : "/chosen")).c_str(),
                                   [layouts, row_major_only](benchmark::State& state) {
                                     network_step(state, *layouts, row_major_only);
                                   })
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  using namespace tandem;
  benchmark::Initialize(&argc, argv);
  for (const int count : {1, 64, 256}) {
    const auto add = [count](const char* kernel, bool empty) {
      benchmark::RegisterBenchmark(
          ("dispatch/" + std::string(kernel) + "/" + std::to_string(count)).c_str(),
          [empty, count](benchmark::State& state) { dispatch(state, empty, count); })
          ->UseRealTime();
    };
    add("empty", true);
    add("neg16", false);
  }
  benchmark::RegisterBenchmark("fork_join", fork_join)->UseRealTime();
  add_networks(std::vector<std::string>(argv + 1, argv + argc));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
