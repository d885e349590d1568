// 16-bit floats on devices that are fast with them: types, weights next to their masters, bytes,
// and results near those of float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "engine/graph/builder.h"
#include "engine/lower/lowered.h"
#include "engine/operators/operator.h"
#include "engine/plan/plan.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/emulated/emulated_device.h"
#include "tests/harness/program_check.h"

namespace tandem::testing {
namespace {

struct PrecisionMachine {
  std::shared_ptr<OrderChecker> monitor = std::make_shared<OrderChecker>();
  std::unique_ptr<Device> cpu = make_cpu_device(1, monitor), gpu;
  std::vector<Device*> devices{cpu.get()};

  PrecisionMachine() {
    EmulatedOptions options;
    options.memory_bytes = std::size_t{64} << 20;
    options.monitor = monitor;
    gpu = make_emulated_device(options);
    devices.push_back(gpu.get());
  }
};

/// Operators and weights on the accelerator; masters, moments and updates on device `home`.
Placement on_accelerator(const Graph& graph, int home) {
  Placement placement;
  placement.devices = {"cpu", "emulated:0"};
  for (const Node& node : graph.nodes)
    placement.nodes.push_back({node.phase == Phase::update ? home : 1, ""});
  for (const State& state : graph.states) {
    const NodeId writer = graph.value(state.final).producer;
    const bool is_updated = writer && graph.node(writer).phase == Phase::update;
    const int at = is_updated ? home : 1;
    placement.states.push_back({at, state.kind == StateKind::parameter ? 1 : at, ""});
  }
  return placement;
}

class PrecisionTest : public ::testing::Test {
 protected:
  CompiledProgram compiled(const Graph& graph, int home, DType compute,
                           const std::vector<std::string>& kept = {}) {
    ProgramOptions options;
    options.lower.compute = compute;
    for (const std::string& text : kept) options.lower.keep_float32.emplace_back(text);
    return compile_program(graph, on_accelerator(graph, home), operators, machine.devices, options);
  }

  // Bytes on the accelerator that a parameter costs: weight, gradient, master and moments.
  static std::size_t parameter_bytes(const CompiledProgram& program) {
    std::size_t bytes = 0;
    for (const Buffer& buffer : program.plan.buffers) {
      const bool counted = buffer.kind == BufferKind::parameter ||
                           buffer.kind == BufferKind::state || buffer.kind == BufferKind::gradient;
      if (buffer.device == 1 && counted) bytes += buffer.bytes;
    }
    return bytes;
  }

  const OperatorSet operators = all_operators();
  PrecisionMachine machine;
};

TEST_F(PrecisionTest, ProductsAndWeightsAreOfSixteenBits) {
  const Graph graph = mlp_training(operators, 4, {7, 6, 5, 3}, Update::adam);
  const Lowered lowered = compiled(graph, 0, DType::bfloat16).lowered;
  int products = 0, weights = 0;
  for (const Node& node : lowered.graph.nodes) {
    if (node.op->precision == Precision::low || node.op->name == "Gemm") {
      ++products;
      EXPECT_EQ(lowered.graph.type(node.outputs[0]).dtype, DType::bfloat16) << node.path;
    }
  }
  for (std::size_t s = 0; s < lowered.states.size(); ++s) {
    const State& state = lowered.graph.states[s];
    const bool is_weight = state.derived.is<Mirror>();
    weights += is_weight;
    EXPECT_EQ(lowered.graph.type(state.initial).dtype, is_weight ? DType::bfloat16 : DType::float32)
        << state.name;
    EXPECT_EQ(lowered.states[s].device, is_weight ? 1 : 0) << state.name;
  }
  EXPECT_EQ(products, 8);  // three layers, three weight and two data gradients
  EXPECT_EQ(weights, 6);
  EXPECT_EQ(lowered.graph.type(lowered.graph.find_output("loss")->value).dtype, DType::float32);
}

// A host that computes only updates is not named: 16 bits are not meant for them.
TEST_F(PrecisionTest, DevicesThatComputeProductsInFloat32AreNamed) {
  const Graph graph = mlp_training(operators, 4, {7, 6, 5, 3}, Update::adam);
  const auto says_so = [](const Lowered& lowered) {
    return std::any_of(lowered.notes.begin(), lowered.notes.end(), [](const std::string& note) {
      return note.find("cpu computes in float32: it is not fast with float16") != note.npos;
    });
  };
  EXPECT_FALSE(says_so(compiled(graph, 0, DType::float16).lowered));
  Placement on_host = on_accelerator(graph, 0);
  for (PlacedNode& node : on_host.nodes) node.device = 0;
  for (PlacedState& state : on_host.states) state.state = state.param = 0;
  ProgramOptions options;
  options.lower.compute = DType::float16;
  EXPECT_TRUE(
      says_so(compile_program(graph, on_host, operators, machine.devices, options).lowered));
}

// Gradients go down and weights come up in 16 bits, and nothing else crosses but the batch.
TEST_F(PrecisionTest, TheLinkCarriesTheSmallForm) {
  const Graph graph = mlp_training(operators, 4, {7, 6, 5, 3}, Update::adam);
  const Lowered lowered = compiled(graph, 0, DType::bfloat16).lowered;
  std::map<DType, std::size_t> bytes;
  for (const Node& node : lowered.graph.nodes) {
    if (node.op->name != "Transfer") continue;
    const TensorType& type = lowered.graph.type(node.outputs[0]);
    if (type.rank() > 0) bytes[type.dtype] += type.bytes();
  }
  const std::size_t parameters = 7 * 6 + 6 + 6 * 5 + 5 + 5 * 3 + 3;
  // 2 bytes each way, x and the logits; biases' gradients are sums, which stay float32.
  EXPECT_EQ(bytes[DType::bfloat16], 2 * 2 * parameters - 2 * (6 + 5 + 3) + 2 * 4 * 7 + 2 * 4 * 3);
  EXPECT_EQ(bytes[DType::float32], 4u * (6 + 5 + 3));
}

TEST_F(PrecisionTest, TheUpdateMovesTwentyEightBytesAParameter) {
  const Graph graph = mlp_training(operators, 4, {300, 400, 3}, Update::adam);
  const Lowered lowered = compiled(graph, 0, DType::bfloat16).lowered;
  bool found = false;
  for (const Node& node : lowered.graph.nodes) {
    if (node.op->name != "AdamUpdate") continue;
    found = true;
    const double count = static_cast<double>(lowered.graph.type(node.inputs[0]).elements());
    const double scalars = 4 + 8 + 4 + 1;
    EXPECT_EQ(cost_of(lowered.graph, node).bytes, 28 * count + scalars);
  }
  EXPECT_TRUE(found);
}

TEST_F(PrecisionTest, TheDeviceHoldsAThirdAtMost) {
  for (Update update : {Update::adam}) {
    const Graph graph = mlp_training(operators, 4, {64, 128, 128, 10}, update);
    const std::size_t all = parameter_bytes(compiled(graph, 1, DType::float32));
    const std::size_t split = parameter_bytes(compiled(graph, 0, DType::bfloat16));
    EXPECT_LE(3 * split, all) << split << " of " << all;
  }
}

TEST_F(PrecisionTest, KeptOperatorsStayFloat32) {
  const Graph graph = mlp_training(operators, 4, {7, 6, 5, 3}, Update::sgd);
  const Lowered lowered = compiled(graph, 1, DType::bfloat16, {"**"}).lowered;
  for (const Value& value : lowered.graph.values) EXPECT_NE(value.type.dtype, DType::bfloat16);
}

TEST_F(PrecisionTest, TheCpuStaysFloat32) {
  const Graph graph = convolution_training(operators);
  ProgramOptions options;
  options.lower.compute = DType::bfloat16;
  const Lowered lowered =
      compile_program(graph, on_one_device(graph), operators, {machine.cpu.get()}, options).lowered;
  for (const Value& value : lowered.graph.values) EXPECT_NE(value.type.dtype, DType::bfloat16);
}

// 65536 does not fit in float16: what multiplies by a loss scale, a state that is not a parameter,
// is float32.
TEST_F(PrecisionTest, ALossScaleIsNoOperandOfSixteenBits) {
  GraphBuilder g(operators);
  const ValueId x = g.input("x", {DType::float32, {2, 3}}),
                w = g.input("w", {DType::float32, {3, 4}});
  State scale;
  scale.name = "optimizer.loss_scale";
  scale.kind = StateKind::optimizer;
  scale.start = HostTensor::from<float>({}, {65536});
  const ValueId factor = g.state(scale);
  g.set_scope({"product", Phase::forward, {}});
  const ValueId y = g.matmul(x, w);
  g.set_scope({"scaled", Phase::backward, {}});
  g.output("y", g.add_node("Relu", {g.mul(y, factor)}));
  const Lowered lowered = compiled(g.finish(), 1, DType::float16).lowered;
  bool is_narrow = false;
  for (const Value& value : lowered.graph.values) {
    is_narrow = is_narrow || value.type.dtype == DType::float16;
    EXPECT_FALSE(value.type.dtype == DType::float16 && value.type.rank() == 0) << value.name;
  }
  EXPECT_TRUE(is_narrow) << "nothing was computed in 16 bits";
  EXPECT_EQ(lowered.graph.type(lowered.graph.find_output("y")->value).dtype, DType::float32);
}

// A loss computes in float32 with the 16-bit products that it reads, even if no labels of float32
// widen them.
TEST_F(PrecisionTest, LossesWithoutLabelsAreFloat32) {
  for (const bool is_loss : {true, false}) {
    GraphBuilder g(operators);
    const ValueId x = g.input("x", {DType::float32, {2, 3}}),
                  w = g.input("w", {DType::float32, {3, 4}});
    g.set_scope({"product", Phase::forward, {}});
    const ValueId y = g.matmul(x, w);
    g.set_scope({is_loss ? "loss.penalty" : "penalty", Phase::forward, {}});
    g.output("y", g.add_node("Relu", {g.mul(y, g.sub(y, g.scalar(3, DType::float32)))}));
    const Graph graph = compiled(g.finish(), 1, DType::bfloat16).lowered.graph;
    int narrow = 0, wide = 0;
    for (const Node& node : graph.nodes) {
      if (node.path.find("penalty") == std::string::npos || node.op->name == "Cast") continue;
      for (const ValueId output : node.outputs)
        ++(graph.type(output).dtype == DType::float32 ? wide : narrow);
    }
    EXPECT_EQ(wide > 0, is_loss);
    EXPECT_EQ(narrow > 0, !is_loss);
  }
}

// Wherever nodes, weights and masters are: near the float32 run, in order, and each weight is its
// master rounded.
class PrecisionPlacements : public PrecisionTest, public ::testing::WithParamInterface<DType> {};

INSTANTIATE_TEST_SUITE_P(Types, PrecisionPlacements,
                         ::testing::Values(DType::bfloat16, DType::float16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(PrecisionPlacements, Random) {
  ProgramOptions options;
  options.lower.compute = GetParam();
  const std::vector<Graph> graphs{mlp_training(operators, 4, {7, 6, 5, 3}, Update::sgd),
                                  mlp_training(operators, 4, {7, 6, 5, 3}, Update::momentum),
                                  mlp_training(operators, 4, {7, 6, 5, 3}, Update::adam),
                                  convolution_training(operators), attention_training(operators)};
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      SCOPED_TRACE("graph " + std::to_string(g) + ", placement " + std::to_string(seed));
      const Placement placement = seed == 0   ? on_accelerator(graphs[g], 0)
                                  : seed == 1 ? on_accelerator(graphs[g], 1)
                                              : random_placement(graphs[g], machine.devices, seed);
      // Adam's first steps are the sign of a gradient: a small one may turn with rounding.
      EXPECT_EQ(program_difference(graphs[g], operators, machine.devices, placement, 2,
                                   g == 2 ? 0.25 : 0.06, options),
                "");
      OwnProgram own = make_program(graphs[g], operators, machine.devices, placement, options);
      for (int step = 1; step <= 3; ++step) {
        run_step(*own.program, random_feeds(graphs[g], 5, step),
                 static_cast<std::uint64_t>(step - 1));
      }
      machine.gpu->synchronize();  // its queues bring the weights to the host
      for (const State& state : own.program->lowered().graph.states) {
        if (!state.derived.is<Mirror>()) continue;
        const HostTensor weight = own.states.read(state.name);
        const HostTensor master = own.states.read(state.source<Mirror>()).converted(weight.dtype());
        EXPECT_EQ(std::memcmp(weight.data(), master.data(), weight.bytes()), 0) << state.name;
      }
      EXPECT_TRUE(machine.monitor->order_errors().empty());
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace tandem::testing
