// Times of the CPU's pointwise, normalisation, attention and update kernels, at the sizes of the
// bench networks.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "engine/graph/builder.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/isa.h"

namespace tandem {
namespace {

const OperatorSet& operators() {
  static const OperatorSet set = all_operators();
  return set;
}

const KernelList& kernels() {
  static const KernelList list = [] {
    KernelList all;
    add_elementwise_kernels(all);
    add_network_kernels(all);
    add_update_kernels(all);
    return all;
  }();
  return list;
}

const DeviceFacts& facts() {
  static const DeviceFacts value{"cpu", processor_features(), usable_cores()};
  return value;
}

/// A prepared node of one operator over zeros or small numbers.
class Timed {
 public:
  Timed(std::string op, std::vector<TensorType> inputs, Attributes attributes = {},
        std::shared_ptr<const Graph> body = nullptr,
        std::vector<std::optional<Layout>> input_layouts = {},
        std::vector<std::optional<Layout>> output_layouts = {}) {
    GraphBuilder builder(operators());
    std::vector<ValueId> ids;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      ids.push_back(builder.input("x" + std::to_string(i), inputs[i]));
    builder.set_scope({"timed"});
    builder.node(op, ids, std::move(attributes), std::move(body));
    graph_ = builder.finish();
    node_ = graph_.nodes.back();
    KernelRequest request;
    request.node = &node_;
    request.facts = &facts();
    const auto add = [&](std::vector<Operand>& operands, const TensorType& type,
                         std::optional<Layout> layout) {
      operands.push_back({type, layout ? *layout : row_major(type.shape), true, nullptr});
      tensors_.emplace_back(
          TensorType{type.dtype, {span_elements(operands.back().layout, type.shape) + 16}});
      if (type.dtype == DType::float32) {
        int k = 0;
        for (float& x : tensors_.back().as<float>())
          x = static_cast<float>((k++ * 37) % 101) * 0.01f + 0.01f;
      }
      return tensors_.back().data();
    };
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      in_.push_back(add(request.inputs, inputs[i],
                        i < input_layouts.size() ? input_layouts[i] : std::nullopt));
    }
    for (std::size_t i = 0; i < node_.outputs.size(); ++i) {
      void* data = add(request.outputs, graph_.type(node_.outputs[i]),
                       i < output_layouts.size() ? output_layouts[i] : std::nullopt);
      for (const Alias& alias : node_.op->aliases) {
        if (alias.output == static_cast<int>(i)) data = const_cast<void*>(in_[alias.input]);
      }
      out_.push_back(data);
    }
    for (const Kernel& kernel : kernels()) {
      if (kernel.op != op || kernel.refuse(request)) continue;
      kernel_ = kernel.prepare(request);
      break;
    }
    workspace_ = HostTensor(
        TensorType{DType::uint8, {static_cast<std::int64_t>(kernel_->workspace_bytes) + 64}});
  }

  void run() { kernel_->run({in_.data(), out_.data(), workspace_.data(), &context_}); }
  template <class T>
  T* input(std::size_t i) {
    return static_cast<T*>(const_cast<void*>(in_[i]));
  }

 private:
  Graph graph_;
  Node node_;
  std::vector<HostTensor> tensors_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  std::unique_ptr<PreparedKernel> kernel_;
  HostTensor workspace_;
  ErrorWord error_;
  StepContext context_{.seed = 1, .step = 1, .error = &error_};
};

TensorType floats(Shape shape) { return {DType::float32, std::move(shape)}; }

void time(const std::string& name, std::function<std::shared_ptr<Timed>()> make, double bytes) {
  benchmark::RegisterBenchmark(
      name.c_str(),
      [=](benchmark::State& state) {
        const auto timed = make();
        for (int i = 0; i < 3; ++i) timed->run();
        double least = 1e9;  // hardly affected by other programs
        for (auto _ : state) {
          const auto start = std::chrono::steady_clock::now();
          timed->run();
          least = std::min(
              least,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        }
        state.counters["min_us"] = least * 1e6;
        state.counters["max_GB/s"] = bytes * 1e-9 / least;
      })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

template <class... Arguments>
std::function<std::shared_ptr<Timed>()> node(Arguments... arguments) {
  return [=] { return std::make_shared<Timed>(arguments...); };
}

std::shared_ptr<const Graph> bias_gelu_body() {
  GraphBuilder g(operators());
  const ValueId x = g.input("x", floats({2048, 1024})), bias = g.input("bias", floats({1024}));
  g.output("y", g.add_node("Gelu", {g.add(x, bias)}, {{"approximate", std::string("tanh")}}));
  return std::make_shared<const Graph>(g.finish());
}

void register_all() {
  const Shape big{2048, 1024};
  const double mib8 = 8.0 * (1 << 20);
  const Attributes tanh_form{{"approximate", std::string("tanh")}};
  time("Gelu", node(std::string("Gelu"), std::vector{floats(big)}, tanh_form), 2 * mib8);
  time("GeluGrad", node(std::string("GeluGrad"), std::vector{floats(big), floats(big)}, tanh_form),
       3 * mib8);
  time("GeluErf",
       node(std::string("Gelu"), std::vector{floats(big)},
            Attributes{{"approximate", std::string("none")}}),
       2 * mib8);
  time("BiasGelu",
       node(std::string("Fused"), std::vector{floats(big), floats({1024})}, Attributes{},
            bias_gelu_body()),
       2 * mib8);
  time("Add", node(std::string("Add"), std::vector{floats(big), floats(big)}), 3 * mib8);
  time("Add64x1024", node(std::string("Add"), std::vector{floats({64, 1024}), floats({64, 1024})}),
       3 * mib8 / 32);
  time("Relu32x512", node(std::string("Relu"), std::vector{floats({32, 512})}), 2.0 * 65536);
  for (std::int64_t axis : {0, 1}) {
    time("ReduceSum/axis" + std::to_string(axis),
         node(std::string("ReduceSum"), std::vector{floats(big)},
              Attributes{{"axes", Ints{axis}}, {"keepdims", std::int64_t{0}}}),
         mib8);
  }
  time("ReduceSum32x512",
       node(std::string("ReduceSum"), std::vector{floats({32, 512})},
            Attributes{{"axes", Ints{0}}, {"keepdims", std::int64_t{0}}}),
       65536);
  time("SumOfSquares", node(std::string("SumOfSquares"), std::vector{floats(big)}), mib8);
  time(
      "Softmax",
      node(std::string("Softmax"), std::vector{floats(big)}, Attributes{{"axis", std::int64_t{1}}}),
      2 * mib8);
  const TensorType labels{DType::int64, {2048}};
  // In one kernel, and in the two that it replaces.
  for (const Shape& scores : {big, Shape{256, 1000}, Shape{1024, 50257}}) {
    const TensorType classes{DType::int64, {scores[0]}}, marks = floats({scores[0]});
    const std::string size = std::to_string(scores[0]) + "x" + std::to_string(scores[1]);
    const auto bytes = static_cast<double>(4 * element_count(scores));
    time("SoftmaxCrossEntropy/" + size,
         node(std::string("SoftmaxCrossEntropy"), std::vector{floats(scores), classes, marks}),
         bytes);
    time("SoftmaxCrossEntropyGrad/" + size,
         node(std::string("SoftmaxCrossEntropyGrad"),
              std::vector{marks, floats(scores), classes, marks, marks}),
         2 * bytes);
    time("SoftmaxCrossEntropyWithGrad/" + size,
         node(std::string("SoftmaxCrossEntropyWithGrad"),
              std::vector{marks, floats(scores), classes, marks}),
         2 * bytes);
  }
  time("LayerNormalization",
       node(std::string("LayerNormalization"),
            std::vector{floats(big), floats({1024}), floats({1024})},
            Attributes{{"axis", std::int64_t{1}}}),
       2 * mib8);
  time("LayerNormalizationGrad",
       node(std::string("LayerNormalizationGrad"),
            std::vector{floats(big), floats(big), floats({1024}), floats({2048, 1}),
                        floats({2048, 1})},
            Attributes{{"axis", std::int64_t{1}}}),
       3 * mib8);
  const Shape maps{32, 64, 32, 32};
  for (bool last : {true, false}) {
    const std::optional<Layout> layout = last ? channels_last(maps) : row_major(maps);
    const std::string suffix = last ? "/channels_last" : "/row_major";
    const TensorType c = floats({64});
    time("BatchNormalizationTraining" + suffix,
         node(std::string("BatchNormalizationTraining"), std::vector{floats(maps), c, c, c, c},
              Attributes{}, std::shared_ptr<const Graph>(), std::vector{layout},
              std::vector{layout}),
         3 * mib8);
    time("BatchNormalizationGrad" + suffix,
         node(std::string("BatchNormalizationGrad"),
              std::vector{floats(maps), floats(maps), c, c, c}, Attributes{},
              std::shared_ptr<const Graph>(), std::vector{layout, layout}, std::vector{layout}),
         5 * mib8);
  }
  time("Copy/nchw_to_nhwc",
       node(std::string("Copy"), std::vector{floats(maps)}, Attributes{},
            std::shared_ptr<const Graph>(), std::vector<std::optional<Layout>>{},
            std::vector<std::optional<Layout>>{channels_last(maps)}),
       2 * mib8);
  time("Copy/transpose",
       node(std::string("Copy"), std::vector{floats(big)}, Attributes{},
            std::shared_ptr<const Graph>(),
            std::vector<std::optional<Layout>>{permuted(big, {1, 0})}),
       2 * mib8);
  time("Dropout",
       node(std::string("Dropout"), std::vector{floats(big)}, Attributes{{"ratio", 0.1}}),
       2 * mib8);
  time("Gather", node(std::string("Gather"), std::vector{floats({50000, 256}), labels}),
       2.0 * 2048 * 1024);
  time("GatherGrad",
       node(std::string("GatherGrad"), std::vector{floats({2048, 256}), labels},
            Attributes{{"shape", Ints{5000, 256}}}),
       4.0 * 256 * (5000 + 3 * 2048));
  // [16, 4, 128, 64] inside rows of 768, as in the GPT of the bench.
  const Shape heads{16, 4, 128, 64};
  const std::optional<Layout> rows = Layout{0, {128 * 768, 64, 768, 1}},
                              out = Layout{0, {128 * 256, 64, 256, 1}};
  const Attributes causal{{"scale", 0.125}, {"causal", std::int64_t{1}}};
  time(
      "Attention",
      node(std::string("Attention"), std::vector{floats(heads), floats(heads), floats(heads)},
           causal, std::shared_ptr<const Graph>(), std::vector{rows, rows, rows}, std::vector{out}),
      mib8);
  time("AttentionGrad",
       node(std::string("AttentionGrad"),
            std::vector{floats(heads), floats(heads), floats(heads), floats(heads), floats(heads),
                        floats({16, 4, 128})},
            causal, std::shared_ptr<const Graph>(), std::vector{out, rows, rows, rows, out},
            std::vector{rows, rows, rows}),
       2 * mib8);
  const TensorType parameters = floats({64 << 20}), scalar = floats({});
  time("AdamUpdate64Mi",
       node(std::string("AdamUpdate"),
            std::vector{parameters, parameters, parameters, parameters, scalar,
                        TensorType{DType::int64, {}}, scalar, TensorType{DType::boolean, {}}},
            Attributes{{"decoupled", std::int64_t{1}}}),
       28.0 * (64 << 20));
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  tandem::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
