// From a forward graph to a training graph: what trains, with which options, and what is refused.
#include "engine/train/graph/training_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "api/model/engine.h"
#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/train/loop/run_length.h"
#include "tests/harness/operator_case.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class TrainingGraphTest : public ::testing::Test {
 protected:
  TrainingGraph make(const std::vector<std::string>& keys,
                     MicroBatchKind kind = MicroBatchKind::whole, std::int64_t steps_done = 0) {
    const RunConfig config = testing::small_config("/folder", keys);
    return make(testing::small_network(operators_, 4), config, kind, steps_done);
  }
  TrainingGraph make(const Graph& forward, const RunConfig& config,
                     MicroBatchKind kind = MicroBatchKind::whole, std::int64_t steps_done = 0) {
    TrainingRequest request;
    request.config = &config;
    request.fields = {{"labels", {DType::int64, {4}}}};
    request.kind = kind;
    request.samples = {4, kind == MicroBatchKind::whole ? 4 : 8};
    for (const FreezeRule& rule : config.parameters.freeze)
      request.thawed.push_back(rule.until && RunLength().has_passed(*rule.until, steps_done));
    TrainingGraph made = build_training_graph(operators_, forward, request);
    verify(made.graph);
    return made;
  }

  static std::vector<const Node*> updates(const Graph& graph, std::string_view op) {
    std::vector<const Node*> found;
    for (const Node& node : graph.nodes) {
      if (node.op->name == op) found.push_back(&node);
    }
    return found;
  }
  /// Names of the states that a step overwrites.
  static std::set<std::string> written(const Graph& graph) {
    std::set<std::string> names;
    for (const State& state : graph.states) {
      if (state.final != state.initial) names.insert(state.name);
    }
    return names;
  }
  static std::set<std::string> inputs(const Graph& graph) {
    std::set<std::string> names;
    for (const NamedValue& input : graph.inputs) names.insert(input.name);
    return names;
  }
  static std::set<std::string> outputs(const Graph& graph) {
    std::set<std::string> names;
    for (const NamedValue& output : graph.outputs) names.insert(output.name);
    return names;
  }

  OperatorSet operators_ = all_operators();
};

// Values of states are found by name: two of one name would be one.
TEST_F(TrainingGraphTest, ParameterWithTheNameOfAMoment) {
  GraphBuilder g(operators_);
  const ValueId x = g.input("x", {DType::float32, {4, 6}});
  std::vector<ValueId> parts;
  for (const std::string name : {"w", "w/momentum_buffer"}) {
    State state;
    state.name = state.path = name;
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, {6, 3}});
    parts.push_back(g.matmul(x, g.state(std::move(state))));
  }
  g.output("logits", g.add(parts[0], parts[1]));
  const Graph forward = g.finish();
  EXPECT_NO_THROW(make(forward, testing::small_config("/folder", {})));
  EXPECT_THAT(testing::error_text([&] {
                make(forward, testing::small_config("/folder", {"optimizer.momentum=0.9"}));
              }),
              AllOf(HasSubstr("w/momentum_buffer"), HasSubstr("rename the initializer")));
}

// Refused in every micro-batch of a step, even if the name is wrong for another reason, too.
TEST_F(TrainingGraphTest, ParameterWithTheNameOfTheLossScale) {
  for (const std::string name :
       {"optimizer.loss_scale", "optimizer.good_steps", "optimizer.skipped_steps"}) {
    GraphBuilder g(operators_);
    const ValueId x = g.input("x", {DType::float32, {4, 6}});
    State state;
    state.name = state.path = name;
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, {6, 3}});
    g.output("logits", g.matmul(x, g.state(std::move(state))));
    const Graph forward = g.finish();
    for (const char* compute : {"float32", "float16"}) {
      const RunConfig config =
          testing::small_config("/folder", {"precision.compute=" + std::string(compute)});
      for (const MicroBatchKind kind :
           {MicroBatchKind::whole, MicroBatchKind::first, MicroBatchKind::last}) {
        EXPECT_THAT(testing::error_text([&] { make(forward, config, kind); }),
                    AllOf(HasSubstr(name + ": a parameter of the model has the name of a state"),
                          HasSubstr("rename the initializer \"" + name + "\"")));
      }
    }
  }
}

TEST_F(TrainingGraphTest, LabelsThatFitTwoAxesAreNoted) {
  const auto notes_of = [&](const Shape& logits, const Shape& labels) {
    GraphBuilder g(operators_);
    const ValueId x = g.input("x", {DType::float32, logits});
    g.input("labels", {DType::int64, labels});
    State state;
    state.name = state.path = "w";
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, {}});
    g.output("logits", g.mul(x, g.state(std::move(state))));
    return make(g.finish(), testing::small_config("/folder", {})).notes;
  };
  EXPECT_THAT(notes_of({2, 4, 4}, {2, 4}),
              ElementsAre(AllOf(HasSubstr("loss \"loss\": labels of shape [2, 4] fit logits of "
                                          "shape [2, 4, 4]"),
                                HasSubstr("the last axis is taken"), HasSubstr("Transpose"))));
  EXPECT_THAT(notes_of({2, 3, 3, 3}, {2, 3, 3}), ::testing::SizeIs(1));
  EXPECT_THAT(notes_of({2, 4, 5}, {2, 4}), ::testing::IsEmpty());
  EXPECT_THAT(notes_of({2, 5, 4}, {2, 4}), ::testing::IsEmpty());
  EXPECT_THAT(notes_of({4, 4}, {4}), ::testing::IsEmpty());
  EXPECT_THAT(notes_of({2, 4, 4}, {2, 4, 4}), ::testing::IsEmpty()) << "one-hot";
}

TEST_F(TrainingGraphTest, EveryParameterHasOneUpdate) {
  const TrainingGraph made = make({"optimizer.kind=adam"});
  EXPECT_EQ(updates(made.graph, "AdamUpdate").size(), 4u);
  EXPECT_THAT(written(made.graph),
              ::testing::IsSupersetOf({"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias",
                                       "fc1.weight/exp_avg", "fc2.bias/exp_avg_sq"}));
  EXPECT_THAT(inputs(made.graph),
              UnorderedElementsAre("x", "labels", "optimizer.step", "optimizer.lr"));
  EXPECT_THAT(outputs(made.graph), UnorderedElementsAre("loss"));
  EXPECT_THAT(made.terms, ElementsAre("loss"));
  EXPECT_TRUE(made.notes.empty());
}

TEST_F(TrainingGraphTest, ConstantsAreComputedBeforeTheRun) {
  const RunConfig config = testing::small_config("/folder", {"optimizer.kind=adam"});
  TrainingRequest request;
  request.config = &config;
  request.fields = {{"labels", {DType::int64, {4}}}};
  request.samples = {4, 4};
  const Graph forward = testing::small_network(operators_, 4);
  auto from_constants = [](const Graph& graph) {
    return std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
      return std::all_of(node.inputs.begin(), node.inputs.end(),
                         [&](ValueId x) { return !x || graph.is_constant(x); });
    });
  };
  EXPECT_GT(from_constants(build_training_graph(operators_, forward, request).graph), 0);
  request.evaluate = api::reference_evaluator();
  const TrainingGraph made = build_training_graph(operators_, forward, request);
  verify(made.graph);
  EXPECT_EQ(from_constants(made.graph), 0) << to_text(made.graph);
  EXPECT_EQ(updates(made.graph, "AdamUpdate").size(), 4u);
  EXPECT_EQ(written(made.graph).size(), 12u);
}

TEST_F(TrainingGraphTest, NodesAreOfThreePhases) {
  for (const Node& node : make({}).graph.nodes) {
    const bool update = node.op->name == "SgdUpdate";
    EXPECT_EQ(update, node.phase == Phase::update) << node.op->name << " at " << node.path;
  }
}

TEST_F(TrainingGraphTest, FrozenParametersAreNotWritten) {
  EXPECT_THAT(written(make({"parameters.freeze=[{at=\"fc1\"}]"}).graph),
              UnorderedElementsAre("fc2.weight", "fc2.bias"));
  EXPECT_THAT(written(make({"parameters.freeze=[{at=\"*:bias\"}]"}).graph),
              UnorderedElementsAre("fc1.weight", "fc2.weight"));
}

TEST_F(TrainingGraphTest, FreezingMayEnd) {
  const std::vector<std::string> keys{"parameters.freeze=[{at=\"fc1\", until=\"3 steps\"}]"};
  EXPECT_EQ(written(make(keys, MicroBatchKind::whole, 2).graph).size(), 2u);
  EXPECT_EQ(written(make(keys, MicroBatchKind::whole, 3).graph).size(), 4u);
}

TEST_F(TrainingGraphTest, NoGradientOfWhatIsFrozen) {
  const Graph all = make({}).graph, half = make({"parameters.freeze=[{at=\"fc1\"}]"}).graph;
  EXPECT_LT(half.nodes.size(), all.nodes.size());
  for (const Node& node : half.nodes)
    EXPECT_FALSE(node.phase == Phase::backward && node.path == "fc1.Gemm");
}

TEST_F(TrainingGraphTest, TheLastGroupThatCoversAParameterTakesIt) {
  const TrainingGraph made =
      make({"optimizer.lr=0.1",
            "optimizer.groups=[{at=\"**\", lr=0.2}, {at=\"fc2:*\", lr=0.3, kind=\"adam\"},"
            "{at=\"*:bias\", weight_decay=0.5}]"});
  // fc1.weight: sgd 0.2; fc2.weight: adam 0.3; both biases: sgd 0.1 with weight decay.
  EXPECT_EQ(updates(made.graph, "AdamUpdate").size(), 1u);
  const auto sgd = updates(made.graph, "SgdUpdate");
  ASSERT_EQ(sgd.size(), 3u);
  std::multiset<double> decays;
  for (const Node* node : sgd) decays.insert(node->attributes.number("weight_decay"));
  EXPECT_THAT(decays, ElementsAre(0.0, 0.5, 0.5));
  std::multiset<double> rates;
  for (const LearningRate& rate : made.learning_rates) rates.insert(rate.base);
  EXPECT_THAT(rates, ElementsAre(0.1, 0.2, 0.3));
  for (const LearningRate& rate : made.learning_rates)
    EXPECT_NE(made.graph.find_input(rate.input), nullptr);
}

// A bias has no rows.
TEST_F(TrainingGraphTest, KindsByRowNeedTables) {
  const auto refused = [&](const std::vector<std::string>& keys) {
    return testing::error_text([&] { make(keys); });
  };
  const std::string all = refused({"optimizer.kind=rowwise_adagrad"});
  EXPECT_THAT(all, AllOf(HasSubstr("small.toml:"), HasSubstr("fc1:bias"), HasSubstr("fc2:bias"),
                         Not(HasSubstr("fc1:weight"))));
  EXPECT_THAT(all, AllOf(HasSubstr("optimizer.kind = \"rowwise_adagrad\""),
                         HasSubstr("at least two dimensions"), HasSubstr("float32[8]"),
                         HasSubstr("groups = [ { at =")));
  const std::string one =
      refused({R"(optimizer.groups=[{at="*:weight", lr=0.1}, {at="fc2", kind="group_ftrl"}])"});
  EXPECT_THAT(one, AllOf(HasSubstr("optimizer.groups.1.kind = \"group_ftrl\""),
                         HasSubstr("fc2:bias"), Not(HasSubstr("fc1"))));
  const TrainingGraph tables =
      make({R"(optimizer.groups=[{at="*:weight", kind="rowwise_adagrad"}])"});
  EXPECT_EQ(updates(tables.graph, "RowwiseAdagradUpdate").size(), 2u);
  const TrainingGraph frozen =
      make({"optimizer.kind=group_ftrl", R"(parameters.freeze=[{at="*:bias"}])"});
  EXPECT_EQ(updates(frozen.graph, "GroupFtrlUpdate").size(), 2u);
}

// Without always_adapt a parameter without decay takes Adam's step.
TEST_F(TrainingGraphTest, LambTakesNormsOfWholeParameters) {
  const TrainingGraph made = make({"optimizer.kind=lamb"});
  EXPECT_EQ(updates(made.graph, "LambUpdate").size(), 4u);
  EXPECT_THAT(written(made.graph),
              ::testing::IsSupersetOf({"fc1.weight/exp_avg", "fc2.bias/exp_avg_sq"}));
  const TrainingGraph groups =
      make({"optimizer.kind=lamb", "optimizer.always_adapt=false", "optimizer.weight_decay=0.01",
            "optimizer.trust_clip=10", R"(optimizer.groups=[{at="*:bias", weight_decay=0}])"});
  const auto lamb = updates(groups.graph, "LambUpdate"), adam = updates(groups.graph, "AdamUpdate");
  ASSERT_EQ(lamb.size(), 2u);
  ASSERT_EQ(adam.size(), 2u);
  EXPECT_EQ(lamb[0]->attributes.number("trust_clip"), 10);
  EXPECT_EQ(lamb[0]->attributes.number("weight_decay"), 0.01);
  EXPECT_EQ(adam[0]->attributes.number("epsilon"), 1e-6);
}

TEST_F(TrainingGraphTest, ClippingShowsTheNorm) {
  const TrainingGraph made = make({"optimizer.clip_norm=0.5"});
  EXPECT_TRUE(outputs(made.graph).count("gradient_norm"));
  const auto clip = updates(made.graph, "ClipScale");
  ASSERT_EQ(clip.size(), 1u);
  EXPECT_EQ(clip[0]->inputs.size(), 4u);  // the norm is over all parameters
  EXPECT_DOUBLE_EQ(clip[0]->attributes.number("max_norm"), 0.5);
}

TEST_F(TrainingGraphTest, ALossScaleIsAllThatGradientsStartWith) {
  const TrainingGraph made = make({"precision.compute=float16", "optimizer.clip_norm=0.5"});
  EXPECT_EQ(updates(made.graph, "ClipScale").size(), 0u);
  const auto scales = updates(made.graph, "LossScale");
  ASSERT_EQ(scales.size(), 1u);
  EXPECT_EQ(scales[0]->inputs.size(), 4u + 4u);  // the sums are over all parameters
  EXPECT_EQ(scales[0]->attributes.number("max_norm"), 0.5);
  EXPECT_EQ(scales[0]->attributes.integer("growth_interval"), 2000);
  EXPECT_TRUE(outputs(made.graph).count("gradient_norm"));
  EXPECT_TRUE(outputs(made.graph).count("loss_scale"));
  EXPECT_TRUE(outputs(made.graph).count("skipped_steps"));
  for (const Node* update : updates(made.graph, "SgdUpdate")) {
    EXPECT_EQ(update->inputs[4], scales[0]->outputs[5]);
    EXPECT_EQ(update->inputs[5], scales[0]->outputs[3]);
    EXPECT_EQ(update->inputs[6], scales[0]->outputs[4]);
  }
  const TrainingGraph first = make({"precision.compute=float16"}, MicroBatchKind::first);
  ASSERT_NE(first.graph.find_state("optimizer.loss_scale"), nullptr);
  EXPECT_EQ(first.graph.find_state("optimizer.skipped_steps"), nullptr);
  const TrainingGraph fixed = make({"precision.compute=float16", "precision.loss_scale=8"});
  EXPECT_EQ(updates(fixed.graph, "LossScale")[0]->attributes.integer("growth_interval"), 0);
  EXPECT_EQ(fixed.graph.find_state("optimizer.loss_scale")->start.number(0), 8);
}

TEST_F(TrainingGraphTest, OnlyTheLastMicroBatchUpdates) {
  const TrainingGraph first = make({}, MicroBatchKind::first),
                      middle = make({}, MicroBatchKind::middle),
                      last = make({}, MicroBatchKind::last);
  const std::set<std::string> sums{"fc1.weight/gradient_sum", "fc1.bias/gradient_sum",
                                   "fc2.weight/gradient_sum", "fc2.bias/gradient_sum"};
  EXPECT_EQ(written(first.graph), sums);
  EXPECT_EQ(written(middle.graph), sums);
  EXPECT_EQ(written(last.graph).size(), 8u);
  EXPECT_EQ(inputs(first.graph).count("optimizer.lr"), 0u);
  EXPECT_EQ(updates(first.graph, "Accumulate")[0]->attributes.integer("first"), 1);
  EXPECT_EQ(updates(middle.graph, "Accumulate")[0]->attributes.integer("first"), 0);
}

TEST_F(TrainingGraphTest, ParametersThatDoNotReachTheLossAreNamed) {
  GraphBuilder g(operators_, testing::small_network(operators_, 4));
  State state;
  state.name = "fc9.weight";
  state.path = "fc9:weight";
  state.trainable = true;
  state.start = HostTensor(TensorType{DType::float32, {4, 3}});
  g.set_scope({"fc9.Add", Phase::forward, {}});
  g.output("other", g.add(g.graph().find_output("logits")->value, g.state(state)));
  const TrainingGraph made = make(g.finish(), testing::small_config("/folder"));
  EXPECT_THAT(made.notes, ElementsAre(HasSubstr("fc9:weight does not reach the loss")));
  EXPECT_EQ(written(made.graph).count("fc9.weight"), 0u);
}

TEST_F(TrainingGraphTest, SelectorsThatMatchNothingAreReportedTogether) {
  const std::string text = testing::error_text([&] {
    make({"parameters.freeze=[{at=\"fc3\"}]",
          "optimizer.groups=[{at=\"fc1:wieght\", lr=0.1}, {at=\"zzz\", lr=0.1}]"});
  });
  EXPECT_THAT(text, HasSubstr("\"fc3\" matches no parameter"));
  EXPECT_THAT(text, HasSubstr("\"fc1:wieght\" matches no parameter"));
  EXPECT_THAT(text, HasSubstr("did you mean \"fc1:weight\"?"));
  EXPECT_THAT(text, HasSubstr("\"zzz\" matches no parameter"));
}

TEST_F(TrainingGraphTest, NothingToTrainIsAnError) {
  EXPECT_THAT(testing::error_text([&] { make({"parameters.freeze=[{at=\"**\"}]"}); }),
              AllOf(HasSubstr("command line: "), HasSubstr("nothing to train"),
                    HasSubstr("parameters.freeze"), HasSubstr("got \"**\"")));
  const std::string until = testing::error_text(
      [&] { make({"parameters.freeze=[{at=\"fc1\"}, {at=\"fc2\", until=\"5 steps\"}]"}); });
  EXPECT_THAT(until, AllOf(HasSubstr("got \"fc1\" ("), HasSubstr("got \"fc2\" until 5 steps"),
                           HasSubstr("also before an `until`")));
}

TEST_F(TrainingGraphTest, ParametersOfOtherTypesAreRefusedAtTheKind) {
  const auto refused = [&](DType dtype, const std::string& kind) {
    GraphBuilder g(operators_, testing::small_network(operators_, 4));
    State state;
    state.name = "table.weight";
    state.path = "table:weight";
    state.trainable = true;
    state.start = HostTensor(TensorType{dtype, {9, 3}});
    const ValueId table = g.state(std::move(state));
    g.set_scope({"table.Gather", Phase::forward, {}});
    const ValueId ids = g.input("ids", {DType::int64, {4}});
    const ValueId rows = g.cast(g.add_node("Gather", {table, ids}), DType::float32);
    const ValueId sum = g.add(g.graph().find_output("logits")->value, rows);
    g.graph().outputs.clear();
    g.output("logits", sum);
    return testing::error_text(
        [&] { make(g.finish(), testing::small_config("/folder", {"optimizer.kind=" + kind})); });
  };
  EXPECT_THAT(refused(DType::float16, "lazy_adam"),
              AllOf(HasSubstr("small.toml:"), HasSubstr("table:weight"),
                    HasSubstr("optimizer.kind = \"lazy_adam\""), HasSubstr("expected float32"),
                    HasSubstr("got float16[9, 3]"), HasSubstr("parameters.freeze")));
  EXPECT_THAT(refused(DType::float64, "lazy_adam"), HasSubstr("got float64[9, 3]"));
}

TEST_F(TrainingGraphTest, EveryMissingGradientIsReported) {
  GraphBuilder g(operators_);
  const ValueId x = g.input("x", {DType::float32, {4, 6}});
  State state;
  state.name = state.path = "w";
  state.trainable = true;
  state.start = HostTensor(TensorType{DType::float32, {4, 6}});
  // Operators that exist for gradients have none themselves.
  const ValueId weight = g.state(state);
  g.set_scope({"first", Phase::forward, {}});
  const ValueId a = g.add_node("TanhGrad", {x, weight});
  g.set_scope({"second", Phase::forward, {}});
  const ValueId b = g.add_node("SigmoidGrad", {x, weight});
  g.set_scope({"sum", Phase::forward, {}});
  const ValueId y = g.add(a, b);
  g.output("logits", y);
  const Graph forward = g.finish();
  const std::string text =
      testing::error_text([&] { make(forward, testing::small_config("/folder")); });
  EXPECT_THAT(text, HasSubstr("first"));
  EXPECT_THAT(text, HasSubstr("TanhGrad"));
  EXPECT_THAT(text, HasSubstr("second"));
  EXPECT_THAT(text, HasSubstr("SigmoidGrad"));
}

TEST_F(TrainingGraphTest, IntegersCarryNoGradient) {
  GraphBuilder g(operators_);
  const ValueId x = g.input("x", {DType::float32, {4, 6}});
  State state;
  state.name = state.path = "w";
  state.trainable = true;
  state.start = HostTensor(TensorType{DType::float32, {4, 6}});
  g.set_scope({"round", Phase::forward, {}});
  g.output("logits", g.cast(g.cast(g.mul(x, g.state(state)), DType::int64), DType::float32));
  EXPECT_THAT(testing::error_text([&] { make(g.finish(), testing::small_config("/folder")); }),
              AllOf(HasSubstr("nothing to train"), HasSubstr("no gradient for any parameter")));
}

TEST_F(TrainingGraphTest, TheEvaluationGraphKeepsOutputsAndAddsTheLoss) {
  const RunConfig config = testing::small_config("/folder");
  TrainingRequest request;
  request.config = &config;
  request.fields = {{"labels", {DType::int64, {4}}}};
  request.samples = {4, 4};
  const Graph graph =
      build_evaluation_graph(operators_, testing::small_network(operators_, 4), request);
  verify(graph);
  EXPECT_THAT(outputs(graph), UnorderedElementsAre("logits", "loss"));
  EXPECT_TRUE(written(graph).empty());
}

// Hugging Face's models have outputs "loss" and "logits".
TEST_F(TrainingGraphTest, TheEvaluationsLossIsNotThatOfTheModel) {
  RunConfig config = testing::small_config("/folder");
  TrainingRequest request;
  request.config = &config;
  request.fields = {{"labels", {DType::int64, {4}}}};
  request.samples = {4, 4};
  Graph forward = testing::small_network(operators_, 4);
  const ValueId logits = forward.outputs[0].value;
  forward.outputs.push_back({"loss", logits});
  const Graph graph = build_evaluation_graph(operators_, forward, request);
  verify(graph);
  EXPECT_THAT(outputs(graph), UnorderedElementsAre("logits", "loss"));
  EXPECT_EQ(graph.type(graph.find_output("loss")->value).shape, Shape());

  forward.outputs = {{"loss", logits}};
  config.loss.terms[0].values[0] = "loss";
  EXPECT_THAT(testing::error_text([&] { build_evaluation_graph(operators_, forward, request); }),
              AllOf(HasSubstr("output \"loss\" has the name of a loss"), HasSubstr("rename")));
}

TEST_F(TrainingGraphTest, NamedValuesBecomeOutputs) {
  RunConfig config = testing::small_config("/folder");
  Graph forward = testing::small_network(operators_, 4);
  const std::string hidden = forward.value(forward.nodes[0].outputs[0]).name;
  config.loss.terms[0].values[0] = hidden;
  const Graph kept = keep_named_values(forward, config);
  EXPECT_NE(kept.find_output(hidden), nullptr);
  EXPECT_EQ(kept.outputs.size(), 2u);
  config.loss.terms[0].values[0] = "logits";
  EXPECT_EQ(keep_named_values(forward, config).outputs.size(), 1u);
}

}  // namespace
}  // namespace tandem
