// Speed of only the product and pooling kernels, on the shapes of the bench networks: every kernel
// that takes a node, in the layout it proposes first. `OMP_NUM_THREADS` sets the team size.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/operators/operator.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/isa.h"

namespace tandem {
namespace {

struct Work {
  std::string name, op;
  std::vector<Shape> inputs;
  Attributes attributes;
  std::vector<std::vector<int>> orders;  // per input, if not as proposed
};

const OperatorSet& operators() {
  static const OperatorSet set = all_operators();
  return set;
}

const KernelList& kernels() {
  static const KernelList list = [] {
    KernelList result;
    add_product_kernels(result);
    return result;
  }();
  return list;
}

using Buffer = std::unique_ptr<float, decltype(&std::free)>;

Buffer buffer(std::int64_t elements) {
  const std::size_t bytes =
      (static_cast<std::size_t>(elements) * sizeof(float) + 4096 + 4095) / 4096 * 4096;
  Buffer result(static_cast<float*>(std::aligned_alloc(4096, bytes)), &std::free);
  for (std::int64_t i = 0; i < elements; ++i)
    result.get()[i] = 0.01f * static_cast<float>(i % 97 - 48);
  return result;
}

Layout first_layout(const std::vector<LayoutConstraint>& constraints, std::size_t i,
                    const Shape& shape) {
  if (i < constraints.size() && constraints[i].kind == LayoutConstraint::Kind::channels_last)
    return channels_last(shape);
  if (i < constraints.size() && constraints[i].kind == LayoutConstraint::Kind::exact)
    return constraints[i].layout;
  return row_major(shape);
}

/// A node with its operands in memory, prepared on one kernel.
class Prepared {
 public:
  Prepared(const Work& work, const Kernel* kernel) {
    GraphBuilder builder(operators());
    std::vector<ValueId> ids;
    for (const Shape& shape : work.inputs) {
      ids.push_back(builder.input("x" + std::to_string(ids.size()), {DType::float32, shape}));
    }
    builder.node(work.op, ids, work.attributes);
    graph_ = builder.finish();
    facts_.features = processor_features();
    facts_.threads = usable_cores();
    request_.node = &graph_.nodes[0];
    request_.facts = &facts_;
    const auto operand = [&](ValueId id) {
      if (!id) return Operand{.present = false};
      return Operand{.type = graph_.type(id), .layout = row_major(graph_.type(id).shape)};
    };
    for (const ValueId id : graph_.nodes[0].inputs) request_.inputs.push_back(operand(id));
    for (const ValueId id : graph_.nodes[0].outputs) request_.outputs.push_back(operand(id));
    for (std::size_t i = 1; i < request_.outputs.size(); ++i) request_.outputs[i].present = false;
    flops = cost_of(graph_, graph_.nodes[0]).flops;
    if (kernel == nullptr || kernel->refuse(request_)) return;

    const Proposal proposal = kernel->propose(request_).front();
    for (std::size_t i = 0; i < request_.inputs.size(); ++i) {
      Operand& x = request_.inputs[i];
      if (!x.present) {
        in_.push_back(nullptr);
        continue;
      }
      x.layout = i < work.orders.size() && !work.orders[i].empty()
                     ? permuted(x.type.shape, work.orders[i])
                     : first_layout(proposal.inputs, i, x.type.shape);
      hold(x, in_);
    }
    for (std::size_t i = 0; i < request_.outputs.size(); ++i) {
      Operand& y = request_.outputs[i];
      y.layout = first_layout(proposal.outputs, i, y.type.shape);
      if (y.present) {
        hold(y, out_);
      } else {
        out_.push_back(nullptr);
      }
    }
    kernel_ = kernel->prepare(request_);
    held_.push_back(
        buffer(static_cast<std::int64_t>(kernel_->workspace_bytes / sizeof(float)) + 16));
  }

  bool ready() const { return kernel_ != nullptr; }
  void run() { kernel_->run({in_.data(), out_.data(), held_.back().get(), &context_}); }
  double flops = 0;

 private:
  template <class Pointers>
  void hold(const Operand& operand, Pointers& to) {
    held_.push_back(buffer(operand.type.elements()));
    to.push_back(held_.back().get());
  }

  Graph graph_;
  DeviceFacts facts_;
  KernelRequest request_;
  StepContext context_;
  std::vector<Buffer> held_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  std::unique_ptr<PreparedKernel> kernel_;
};

void add_matmuls(std::vector<Work>& works) {
  const std::vector<int> plain{0, 1}, turned{1, 0};
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{32, 512, 784},
                                                                        {32, 512, 512},
                                                                        {32, 10, 512},
                                                                        {256, 512, 784},
                                                                        {256, 512, 512},
                                                                        {256, 10, 512},
                                                                        {2048, 768, 256},
                                                                        {2048, 256, 256},
                                                                        {2048, 1024, 256},
                                                                        {2048, 256, 1024},
                                                                        {2048, 65, 256}}) {
    const std::string name = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
    works.push_back({"matmul/forward/" + name, "MatMul", {{m, k}, {k, n}}, {}, {plain, turned}});
    works.push_back({"matmul/input/" + name, "MatMul", {{m, n}, {n, k}}, {}, {}});
    works.push_back({"matmul/weight/" + name, "MatMul", {{n, m}, {m, k}}, {}, {turned, plain}});
  }
}

void add_convolutions(std::vector<Work>& works) {
  struct Shape2 {
    std::int64_t images, in, map, out, window, stride, pad;
  };
  for (const Shape2& s : std::vector<Shape2>{{64, 1, 28, 6, 5, 1, 2},
                                             {64, 6, 14, 16, 5, 1, 0},
                                             {32, 3, 32, 64, 7, 2, 3},
                                             {32, 64, 8, 64, 3, 1, 1},
                                             {32, 64, 8, 128, 3, 2, 1},
                                             {32, 128, 4, 128, 3, 1, 1},
                                             {32, 128, 4, 256, 3, 2, 1},
                                             {32, 256, 2, 256, 3, 1, 1},
                                             {32, 256, 2, 512, 3, 2, 1},
                                             {32, 512, 1, 512, 3, 1, 1},
                                             {32, 64, 8, 128, 1, 2, 0},
                                             {32, 256, 2, 512, 1, 2, 0},
                                             {32, 64, 8, 256, 1, 1, 0},
                                             {32, 256, 8, 64, 1, 1, 0},
                                             {32, 512, 4, 128, 1, 1, 0},
                                             {32, 1024, 2, 256, 1, 1, 0},
                                             {32, 512, 1, 2048, 1, 1, 0},
                                             {32, 2048, 1, 512, 1, 1, 0}}) {
    const std::int64_t map = (s.map + 2 * s.pad - s.window) / s.stride + 1;
    const Shape x{s.images, s.in, s.map, s.map}, w{s.out, s.in, s.window, s.window};
    const Shape y{s.images, s.out, map, map};
    const auto attributes = [&](const Shape* shape) {
      Attributes a{{"strides", Ints{s.stride, s.stride}},
                   {"pads", Ints(4, s.pad)},
                   {"dilations", Ints{1, 1}},
                   {"group", std::int64_t{1}}};
      if (shape) a.set("shape", *shape);
      return a;
    };
    const std::string name = std::to_string(s.in) + "@" + std::to_string(s.map) + "-" +
                             std::to_string(s.out) + "k" + std::to_string(s.window) + "s" +
                             std::to_string(s.stride);
    works.push_back({"conv/forward/" + name, "Conv", {x, w}, attributes(nullptr), {}});
    works.push_back({"conv/input/" + name, "ConvGradInput", {y, w}, attributes(&x), {}});
    works.push_back({"conv/weight/" + name, "ConvGradWeight", {x, y}, attributes(&w), {}});
  }
}

void add_pools(std::vector<Work>& works) {
  for (const auto& [x, y] :
       std::vector<std::pair<Shape, Shape>>{{{64, 6, 28, 28}, {64, 6, 14, 14}},
                                            {{64, 16, 10, 10}, {64, 16, 5, 5}},
                                            {{32, 64, 16, 16}, {32, 64, 8, 8}}}) {
    const bool overlapping = x[1] == 64;
    const Attributes a{{"kernel_shape", Ints(2, overlapping ? 3 : 2)},
                       {"strides", Ints{2, 2}},
                       {"pads", Ints(4, overlapping ? 1 : 0)},
                       {"dilations", Ints{1, 1}},
                       {"ceil_mode", std::int64_t{0}},
                       {"storage_order", std::int64_t{0}}};
    works.push_back({"pool/forward/" + std::to_string(x[1]) + "@" + std::to_string(x[2]),
                     "MaxPool",
                     {x},
                     a,
                     {}});
    works.push_back({"pool/gradient/" + std::to_string(x[1]) + "@" + std::to_string(x[2]),
                     "MaxPoolGrad",
                     {x, y, y},
                     a,
                     {}});
  }
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  using namespace tandem;
  std::vector<Work> works;
  add_matmuls(works);
  add_convolutions(works);
  add_pools(works);
  for (const Work& work : works) {
    for (const Kernel& kernel : kernels()) {
      if (kernel.op != work.op) continue;
      const auto run = [&work, &kernel](benchmark::State& state) {
        Prepared prepared(work, &kernel);
        if (!prepared.ready()) {
          state.SkipWithError("refused");
          return;
        }
        for (auto _ : state) prepared.run();
        state.counters["GF/s"] = benchmark::Counter(1e-9 * prepared.flops,
                                                    benchmark::Counter::kIsIterationInvariantRate);
      };
      benchmark::RegisterBenchmark((work.name + "/" + kernel.name).c_str(), run)
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
