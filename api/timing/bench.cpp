// Measures steps of a configuration, per operator and per queue, and single kernels.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/model/engine.h"
#include "api/output_file.h"
#include "api/policy/batch_size.h"
#include "api/policy/policy_case.h"
#include "api/program/machine.h"
#include "api/timing/machine_rates.h"
#include "api/timing/mixed_profile.h"
#include "api/timing/operator_times.h"
#include "api/timing/trace_slices.h"
#include "engine/formats/files.h"
#include "engine/operators/update.h"
#include "engine/train/loop/trainer.h"
#include "engine/train/updates/add_update.h"
#include "placement/quantities.h"
#include "placement/report/placement_report.h"
#include "tandem/tandem.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int warm_up_steps = 3, few_steps = 3, least_steps = 10, profiled_steps = 5;
constexpr double long_seconds = 6;          // for few_steps
constexpr std::size_t most_operators = 25;  // in the text

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

/// Processor time of all threads of this process. On a shared machine it is more reliable than the
/// clock.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Seconds of steps: by the clock, and of processor time.
struct StepTimes {
  std::vector<double> seconds, processor;
};

/// Runs at least ten steps; only three where ten would take minutes.
StepTimes time_steps(Training& training, double least_seconds) {
  training.run_steps(warm_up_steps, [](double) {});
  StepTimes times;
  double total = 0, used = processor_seconds();
  const auto run = [&](int steps) {
    training.run_steps(steps, [&](double s) {
      times.seconds.push_back(s);
      total += s;
      const double now = processor_seconds();
      times.processor.push_back(now - std::exchange(used, now));
    });
  };
  run(few_steps);
  if (total < long_seconds) run(least_steps - few_steps);
  while (total < least_seconds) run(least_steps);
  return times;
}

struct Profile {
  std::vector<std::vector<double>> node_seconds;  // per program, summed over the profiled steps
  Json events = Json::array();                    // Chrome trace of all profiled steps
};

/// Installs a probe in every program that times each instruction.
void profile(const TracedSteps& traced, Profile& profile) {
  const auto origin = Clock::now();
  for (std::size_t number = 0; number < traced.programs().size(); ++number) {
    const Lowered& lowered = traced.programs()[number].program->lowered();
    profile.node_seconds.emplace_back(lowered.graph.nodes.size(), 0.0);
    traced.programs()[number].program->set_probe(timing_probe(
        [&profile, &lowered, origin, number](NodeId node, ProbeTime begin, ProbeTime end) {
          const double seconds = std::chrono::duration<double>(end - begin).count();
          profile.node_seconds[number][node.index] += seconds;
          const Node& n = lowered.graph.node(node);
          profile.events.push_back(
              {{"name", n.path + " " + n.op->name},
               {"ph", "X"},
               {"pid", 1},
               {"tid", 1},
               {"ts", std::chrono::duration<double>(begin - origin).count() * 1e6},
               {"dur", seconds * 1e6}});
        }));
  }
}

/// For each device the memory of the micro-batch with the highest peak.
std::vector<MemoryUse> highest_memory(const TracedSteps& traced) {
  std::vector<MemoryUse> highest;
  for (const TracedProgram& program : traced.programs()) {
    const std::vector<MemoryUse>& memory = program.program->plan().memory;
    highest.resize(memory.size());
    for (std::size_t d = 0; d < memory.size(); ++d) {
      if (memory[d].peak >= highest[d].peak) highest[d] = memory[d];
    }
  }
  return highest;
}

}  // namespace

Report bench(const std::string& config_path, const BenchOptions& options) {
  RunConfig config = with_fitting_batch_size(read_run_config(config_path, options.overrides),
                                             {.config = config_path,
                                              .overrides = options.overrides,
                                              .place = options.place,
                                              .devices = options.devices});
  if (!config.data) {
    throw Error(
        ErrorKind::usage,
        Diagnostic{.message = "bench needs data: there is no [data] table", .file = config.file});
  }
  PlacingArguments placing{options.place, options.devices};
  placing.check_order = options.check_order;
  RunPolicy policy = read_run_policy(config, placing);
  Engine engine(policy.threads);
  const auto model = std::make_shared<ConfiguredModel>(engine, config);
  ModelData model_data(model);
  PlacedModel placed(model, std::move(policy), placing, &model_data);
  DataSets data = model_data.sets();
  data.eval = nullptr;
  const std::int64_t batch = config.batch_size;
  Training training(config, placed.run_parts(), std::move(data), {});

  const StepTimes step_times = time_steps(training, options.seconds);
  const std::vector<double>& seconds = step_times.seconds;
  if (options.check_order) check_order(engine);
  const std::uint64_t resident = peak_resident_bytes();
  std::vector<Program*> micro_batches;
  for (const BoundProgram* bound : training.step_programs())
    micro_batches.push_back(bound->program.get());
  const TracedSteps traced(micro_batches, profiled_steps);
  Profile times;
  const std::vector<Device*>& devices = placed.devices();
  const bool mixed = devices.size() > 1;
  MixedProfile measured;
  TableCounter tables;
  if (mixed) {
    engine.monitor->start_trace(trace_capacity(traced));
    training.run_steps(
        profiled_steps, [](double) {}, StepPace::one_by_one);
    for (Device* device : devices) device->synchronize();
    // Counting ids during the traced steps would delay devices, so it is done in other steps.
    measured = profile_mixed(traced, *engine.monitor, device_profiles(placed));
    times.node_seconds = std::move(measured.node_seconds);
    times.events = std::move(measured.events);
    engine.monitor->start_trace(0);
    training.run_steps(
        profiled_steps, [](double) {}, StepPace::one_by_one, &tables);
  } else {
    profile(traced, times);
    training.run_steps(
        profiled_steps, [](double) {}, StepPace::one_by_one, &tables);
    for (Program* micro_batch : micro_batches) micro_batch->set_probe(nullptr);
    times.events.push_back(track_event(measured_process, 1, "cpu"));
  }
  if (!options.trace_path.empty()) {
    write_output(options.trace_path, Json{{"traceEvents", times.events}}.dump() + "\n", "--trace",
                 "\"traceEvents\"");
  }

  const double median = quantile(seconds, 0.5);
  double busy = 0, reference = 0;
  const std::vector<OperatorTime> operators = operator_times(traced, times.node_seconds, tables);
  for (const OperatorTime& time : operators) {
    busy += time.ms;
    if (time.kernel().reference) reference += time.ms;
  }
  if (!mixed) measured.queues.push_back({"cpu", busy, 0});
  Report report;
  Json json{{"step_ms", median * 1e3},
            {"step_ms_p10", quantile(seconds, 0.1) * 1e3},
            {"step_ms_p90", quantile(seconds, 0.9) * 1e3},
            {"step_cpu_ms", quantile(step_times.processor, 0.5) * 1e3},
            {"samples_per_second", static_cast<double>(batch) / median},
            {"peak_rss_mib", static_cast<double>(resident) / (1 << 20)},
            {"reference_ms", reference},
            {"operators", Json::array()}};
  json.update(mixed_json(measured, devices));
  const bool has_times = !mixed || measured.whole;
  const HostUpdates updates = host_updates(operators);
  const double limit = is_memory_bound(operators) ? bandwidth_gb_s(engine) : 0;
  for (const OperatorTime& time : operators)
    json["operators"].push_back(operator_json(time, limit));
  if (!has_times) {
    for (Json& row : json["operators"]) {
      row["ms"] = nullptr;
      row.erase("gbs");
      row.erase("of_bandwidth");
    }
  }
  json["host_updates"] = {
      {"ms", updates.ms}, {"bytes", updates.bytes}, {"gb_per_s", updates.gb_s()}};
  if (limit > 0) json["host_updates"]["machine_gb_per_s"] = limit;
  if (!has_times) {
    json["host_updates"]["ms"] = json["host_updates"]["gb_per_s"] = nullptr;
    json["reference_ms"] = nullptr;
  }
  report.json = json.dump(2);
  report.text = fmt::format(
      "step   {:.3f} ms median of {} (p10 {:.3f}, p90 {:.3f}), {:.0f} samples/s, {:.3f} ms of "
      "processors\n"
      "{}memory     peak resident {}\n{}",
      median * 1e3, seconds.size(), quantile(seconds, 0.1) * 1e3, quantile(seconds, 0.9) * 1e3,
      static_cast<double>(batch) / median, quantile(step_times.processor, 0.5) * 1e3,
      mixed_text(measured, devices), bytes_text(resident),
      memory_text(highest_memory(traced), placed.resolved()));
  if (reference > 0)
    report.text += fmt::format("note   reference kernels take {:.3f} ms a step\n", reference);
  if (!has_times) {
    report.text +=
        "operators  no times were kept: not all measured steps had the same micro-batches, as the "
        "last of "
        "an epoch is shorter; use a batch_size that divides the samples, or data.drop_last = "
        "true\n";
    return report;
  }
  if (limit > 0 && updates.bytes > 0) {
    report.text +=
        fmt::format("update     {:.1f} GB/s on the host; only in-place updates {:.1f} GB/s\n",
                    updates.gb_s(), limit);
  }
  report.text += "operators, by time\n" + operators_text(operators, most_operators) +
                 tables_text(operators, limit);
  return report;
}

Report bench_kernel(const std::string& kernel, std::int64_t elements, double least_seconds) {
  if (find_optimizer(kernel) == nullptr || elements < 1) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "there is no such kernel to bench",
                           .expected = "a kind of optimizer, on at least 1 element",
                           .got = kernel + " on " + std::to_string(elements)});
  }
  Engine engine;
  GraphBuilder g(engine.operators);
  const UpdateChoice choice = choose_update(OptimizerOptions(kernel), elements);
  const UpdateKind& kind = *find_update_kind(choice.op);
  // Updates that work on rows or columns get a matrix.
  const std::int64_t columns = std::gcd(elements, std::int64_t{1024});
  const bool is_matrix =
      kind.whole_row || kind.is_factored() || kind.needs(choice.settings, 1) != nullptr;
  const TensorType type{DType::float32,
                        is_matrix ? Shape{elements / columns, columns} : Shape{elements}};
  State weight;
  weight.name = "weight";
  weight.trainable = true;
  weight.start = HostTensor(type);
  State gradient = weight;
  gradient.name = "gradient";
  gradient.kind = StateKind::buffer;
  gradient.trainable = false;
  gradient.start = HostTensor(type);
  weight.initial = g.state(weight);
  const ValueId gradient_value = g.state(gradient);
  UpdateRequest request{
      .parameter = weight, .gradient = gradient_value, .lr = g.scalar(1e-3, DType::float32)};
  request.options = OptimizerOptions(kernel);
  const UpdateScalars scalars{g.scalar(1, DType::int64), g.scalar(1, DType::float32),
                              g.scalar(0, DType::boolean)};
  Updates(g).add(request, scalars);
  Graph graph = g.finish();
  StateStore states;
  Program program(graph, place_everything(graph), engine.operators, engine.devices(), states,
                  make_arenas(), {});
  {
    HostTensor values(type);
    for (float& x : values.as<float>()) x = 1e-3f;
    states.write("gradient", values);
  }
  std::vector<double> seconds;
  double total = 0;
  for (std::uint64_t step = 0; total < least_seconds || seconds.size() < 10; ++step) {
    StepContext context;
    context.step = step + 1;
    const auto start = Clock::now();
    program.run(context, step);
    const double s = std::chrono::duration<double>(Clock::now() - start).count();
    if (step < warm_up_steps) continue;
    seconds.push_back(s);
    total += s;
  }
  const double median = quantile(seconds, 0.5);
  // The gradient is read; master weights and states are read and written; some types read data
  // again.
  double bytes = 3.0 * static_cast<double>(type.bytes()) + operators::bytes_read_again(kind, type);
  for (std::size_t k = 0; k < kind.states.size(); ++k) {
    if (kind.keeps_state(k, choice.settings, type.shape))
      bytes +=
          2.0 * sizeof(float) * static_cast<double>(element_count(kind.state_shape(k, type.shape)));
  }
  Report report;
  report.json = Json{{"kernel", kernel},
                     {"elements", elements},
                     {"step_ms", median * 1e3},
                     {"step_ms_p10", quantile(seconds, 0.1) * 1e3},
                     {"step_ms_p90", quantile(seconds, 0.9) * 1e3},
                     {"gb_per_s", bytes / median / 1e9},
                     {"peak_rss_mib", static_cast<double>(peak_resident_bytes()) / (1 << 20)}}
                    .dump(2);
  report.text = fmt::format("{} on {} elements: {:.3f} ms median of {}, {:.1f} GB/s\n", kernel,
                            elements, median * 1e3, seconds.size(), bytes / median / 1e9);
  return report;
}

}  // namespace tandem::api
