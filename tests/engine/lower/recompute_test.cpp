// Recomputed activations: clones for backward, the same numbers, less memory, statistics once.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>

#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"
#include "engine/lower/placed_graph.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/program_check.h"

namespace tandem::testing {
namespace {

const std::vector<std::int64_t> recomputed_widths(13, 128);  // widths of twelve layers

class RecomputeTest : public ::testing::Test {
 protected:
  // Every forward node whose path begins with one of these.
  static Placement selecting(const Graph& graph, const std::vector<std::string>& paths,
                             Activations acts = Activations::recompute) {
    Placement placement = on_one_device(graph);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      for (const std::string& path : paths) {
        if (graph.nodes[n].path.starts_with(path)) placement.nodes[n].acts = acts;
      }
    }
    return placement;
  }

  OwnProgram compiled(const Graph& graph, const Placement& placement) {
    return make_program(graph, operators, {machine.cpu.get()}, placement);
  }

  // Outputs of three steps, then all states.
  std::vector<HostTensor> results(const Graph& graph, const Placement& placement) {
    OwnProgram own = compiled(graph, placement);
    std::vector<HostTensor> all;
    for (std::uint64_t ticket = 0; ticket < 3; ++ticket) {
      run_step(*own.program, random_feeds(graph, 5, static_cast<std::int64_t>(ticket) + 1), ticket);
      for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
        HostTensor& got = all.emplace_back(graph.type(graph.outputs[i].value));
        std::memcpy(got.data(), own.program->output(static_cast<int>(i), ticket), got.bytes());
      }
    }
    for (const State& state : graph.states) all.push_back(own.states.read(state.name));
    return all;
  }

  static void expect_equal(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b,
                           double tolerance) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!is_float(a[i].dtype())) continue;
      for (std::int64_t k = 0; k < a[i].type().elements(); ++k) {
        ASSERT_NEAR(a[i].number(k), b[i].number(k),
                    tolerance * std::max(1.0, std::abs(a[i].number(k))))
            << "tensor " << i << ", element " << k;
      }
    }
  }

  // The graph after the pass, before anything is merged.
  Graph recomputed(const Graph& graph, const Placement& placement) {
    const LowerOptions options;
    const std::vector<Device*> devices{machine.cpu.get()};
    const LowerContext context{operators, devices, options};
    return recompute(placed_graph(graph, placement), context).graph;
  }

  // Nodes of each operator in a phase.
  static std::map<std::string, int> count(const Graph& graph, Phase phase) {
    std::map<std::string, int> result;
    for (const Node& node : graph.nodes) result[node.op->name] += node.phase == phase;
    return result;
  }

  static std::size_t peak(const OwnProgram& own) { return own.program->plan().memory[0].peak; }

  // Linear, Gelu, Dropout, `layers` times; a squared mean; plain SGD.
  Graph with_dropout(int layers) {
    GraphBuilder b(operators);
    std::mt19937_64 random(3);
    std::uniform_real_distribution<float> uniform(-0.3f, 0.3f);
    std::vector<ValueId> weights;
    ValueId x = b.input("x", {DType::float32, {64, 48}});
    for (int i = 0; i < layers; ++i) {
      const std::string path = "layer" + std::to_string(i);
      b.set_scope({path + ".product", Phase::forward, {}});
      State weight;
      weight.name = weight.path = path + ".weight";
      weight.trainable = true;
      weight.start = HostTensor(TensorType{DType::float32, {48, 48}});
      for (float& w : weight.start.as<float>()) w = uniform(random);
      weights.push_back(b.state(std::move(weight)));
      x = b.matmul(x, weights.back());
      b.set_scope({path + ".gelu", Phase::forward, {}});
      x = b.add_node("Gelu", {x});
      b.set_scope({path + ".dropout", Phase::forward, {}});
      x = b.add_node("Dropout", {x}, {{"ratio", 0.3}});
    }
    b.set_scope({"loss", Phase::forward, {}});
    const ValueId loss = b.reduce_mean(b.mul(x, x), {0, 1}, false);
    b.output("loss", loss);
    b.set_scope({"", Phase::backward, {}});
    const GradientSeed seed{loss, b.scalar(1, DType::float32)};
    const std::vector<ValueId> gradients = add_gradients(b, {&seed, 1}, weights);
    b.set_scope({"update", Phase::update, {}});
    const ValueId lr = b.input("lr", {DType::float32, {}});
    const ValueId step = b.input("step", {DType::int64, {}});
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const ValueId scale = b.scalar(1, DType::float32), skip = b.scalar(0, DType::boolean);
      b.write_state(weights[i], b.node("SgdUpdate", {weights[i], gradients[i], ValueId{}, lr, step,
                                                     scale, skip})[0]);
    }
    return b.finish();
  }

  const OperatorSet operators = all_operators();
  Machine machine{0};
};

TEST_F(RecomputeTest, DeepPerceptronNeedsLessMemory) {
  const Graph graph = mlp_training(operators, 512, recomputed_widths, Update::sgd);
  const Placement kept = on_one_device(graph), again = selecting(graph, {"fc"});
  bool selects = false;
  for (const PlacedNode& node : again.nodes) selects |= node.acts == Activations::recompute;
  ASSERT_TRUE(selects) << graph.nodes[0].path;
  const OwnProgram before = compiled(graph, kept), after = compiled(graph, again);
  EXPECT_LT(peak(after), peak(before) * 3 / 4);
  EXPECT_EQ(verify(after.program->plan(), after.program->lowered()), std::vector<std::string>{});
  const Graph narrow = mlp_training(operators, 16, std::vector<std::int64_t>(13, 24), Update::adam);
  expect_equal(results(narrow, on_one_device(narrow)), results(narrow, selecting(narrow, {"fc"})),
               1e-6);
}

TEST_F(RecomputeTest, ClonesKeepPathPhaseAndStayApart) {
  const Graph graph = with_dropout(4);
  const Graph again = recomputed(graph, selecting(graph, {"layer"}));
  const auto before = count(graph, Phase::backward), after = count(again, Phase::backward);
  EXPECT_GT(after.at("Dropout"), 0);
  EXPECT_FALSE(before.count("Dropout") && before.at("Dropout") > 0);
  EXPECT_EQ(count(graph, Phase::forward), count(again, Phase::forward));
  // Clones come after all of forward.
  std::size_t last_forward = 0, first_clone = again.nodes.size();
  for (std::size_t n = 0; n < again.nodes.size(); ++n) {
    if (again.nodes[n].phase == Phase::forward) last_forward = n;
    if (again.nodes[n].phase == Phase::backward && again.nodes[n].op->name == "Dropout") {
      first_clone = std::min(first_clone, n);
      EXPECT_TRUE(again.nodes[n].path.ends_with(".dropout"));
    }
  }
  EXPECT_LT(last_forward, first_clone);
}

TEST_F(RecomputeTest, DropoutRepeats) {
  const Graph graph = with_dropout(6);
  expect_equal(results(graph, on_one_device(graph)), results(graph, selecting(graph, {"layer"})),
               1e-6);
}

TEST_F(RecomputeTest, OneSelectedStretchIsDividedIntoSegments) {
  // Kept: what crosses the cuts. Backward of the last layer must not wait for clones of the first.
  const Graph graph = with_dropout(9);
  const Graph again = recomputed(graph, selecting(graph, {"layer"}));
  std::set<std::string> before_first_gradient;
  for (const Node& node : again.nodes) {
    if (node.op->name == "DropoutGrad") break;
    if (node.phase == Phase::backward && node.op->name == "MatMul")
      before_first_gradient.insert(node.path);
  }
  EXPECT_FALSE(before_first_gradient.contains("layer0.product"));
  const int clones = count(again, Phase::backward)["Dropout"];
  EXPECT_GT(clones, 4);
}

TEST_F(RecomputeTest, StatisticsAreWrittenOnce) {
  const Graph graph = convolution_training(operators);
  std::vector<std::string> all;
  for (const Node& node : graph.nodes) all.push_back(node.path);
  const Placement again = selecting(graph, all);
  const Graph cloned = recomputed(graph, again);
  EXPECT_GT(count(cloned, Phase::backward)["BatchNormalizationTraining"] +
                count(cloned, Phase::backward)["Conv"],
            0);
  expect_equal(results(graph, on_one_device(graph)), results(graph, again), 2e-6);
}

// Backward compares the result with the elements: it must see those that it was taken from.
TEST_F(RecomputeTest, ResultsAreComparedWithWhatTheyWereMadeFrom) {
  const Graph graph = convolution_training(operators);
  std::mt19937_64 random(1);
  int again = 0;
  for (int round = 0; round < 30; ++round) {
    Placement placement = selecting(graph, {"bn1"});  // what MaxPool reads, and not MaxPool
    for (std::size_t n = 0; round > 0 && n < graph.nodes.size(); ++n)
      placement.nodes[n].acts = random() % 2 > 0 ? Activations::recompute : Activations::keep;
    const Graph after = recomputed(graph, placement);
    int compared = 0;
    for (const Node& node : after.nodes) {
      if (node.op->name != "MaxPoolGrad") continue;
      const Node& maker = after.node(after.value(node.inputs[1]).producer);
      ASSERT_EQ(maker.op->name, "MaxPool");
      EXPECT_EQ(maker.inputs[0], node.inputs[0]) << "round " << round;
      ++compared;
    }
    EXPECT_EQ(compared, 1);
    again += after.nodes.size() > graph.nodes.size();
  }
  EXPECT_GT(again, 5);
}

TEST_F(RecomputeTest, WhereNothingIsSavedNothingChanges) {
  const Graph graph = mlp_training(operators, 8, {16, 16, 16, 4}, Update::sgd);
  Placement relus = on_one_device(graph);  // the sum before each would be kept in its place
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].op->name == "Relu") relus.nodes[n].acts = Activations::recompute;
  }
  EXPECT_EQ(recomputed(graph, relus).nodes.size(), graph.nodes.size());
  const Graph forward = [&] {
    GraphBuilder b(operators);
    b.set_scope({"a", Phase::forward, {}});
    b.output("y", b.add_node("Exp", {b.input("x", {DType::float32, {4}})}));
    return b.finish();
  }();
  EXPECT_EQ(recomputed(forward, selecting(forward, {"a"})).nodes.size(), 1u);
}

TEST_F(RecomputeTest, RandomGraphsGiveTheSame) {
  for (std::uint64_t seed = 1; seed < 60; seed += 2) {
    SCOPED_TRACE(seed);
    const Graph graph = random_graph(operators, seed);
    std::mt19937_64 random(seed);
    Placement placement = on_one_device(graph);
    for (PlacedNode& node : placement.nodes) {
      if (random() % 3 > 0) node.acts = Activations::recompute;
    }
    EXPECT_EQ(program_difference(graph, operators, {machine.cpu.get()}, placement, 2, 1e-9), "");
  }
}

}  // namespace
}  // namespace tandem::testing
