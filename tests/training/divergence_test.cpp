// Runs whose loss, states or evaluation stop being finite: what is named as the cause, when they
// end, what they leave.

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/divergence/finite_watch.h"
#include "tests/training/test_hooks.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::infinity;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::terms;
using testing::Trained;

constexpr const char* lower_rate = "lower optimizer.lr";

class DivergenceTest : public testing::TrainingRun {
 protected:
  /// 22 samples of which these have `value` in one element.
  static std::shared_ptr<const DataSource> data_with(float value,
                                                     const std::vector<std::int64_t>& samples,
                                                     std::int64_t count = 22) {
    const std::shared_ptr<const DataSource> good = testing::small_data(count, 3);
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(i);
    HostTensor x(TensorType{DType::float32, {count, 6}}), y(TensorType{DType::int64, {count}});
    good->fill(good->find_field("x"), all, nullptr, x.data());
    good->fill(good->find_field("labels"), all, nullptr, y.data());
    for (const std::int64_t sample : samples) x.as<float>()[6 * sample + 2] = value;
    return make_array_source({{"x", x}, {"labels", y}});
  }

  Error error_of(const std::vector<std::string>& keys, const std::string& resume = "") {
    try {
      run(keys, 0, resume);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "no error";
    return {ErrorKind::runtime, Diagnostic{}};
  }

  /// Ends at `step`, after whose line a parameter becomes NaN.
  std::string text_of_nan_after(std::uint64_t step, const std::vector<std::string>& keys) {
    Training* running = nullptr;
    testing::Hooks hooks;
    hooks.on_progress = [&](const TrainingProgress& p) {
      if (p.step != step || p.evaluation) return;
      HostTensor bias = running->states().read("fc2.bias");
      bias.as<float>()[0] = std::nanf("");
      running->states().write("fc2.bias", bias);
    };
    Training training(testing::small_config(folder_.path(), keys), engine_.parts(), {train_, eval_},
                      hooks.observer());
    running = &training;
    return testing::error_text([&] { training.run("", {}); });
  }

  const std::string path_ = folder_ / "run", run_dir_ = "run_dir=\"" + path_ + "\"";
  std::vector<std::string> kept() const { return list_checkpoints(path_ + "/checkpoints"); }
};

// ---------------------------------------------------------------- when it ends, what it leaves

TEST_F(DivergenceTest, AParameterEndsTheRunAtTheLoggedStep) {
  EXPECT_THAT(
      text_of_nan_after(5, {"steps=50", run_dir_, "checkpoint.every=\"2 steps\""}),
      AllOf(
          HasSubstr("fc2.bias: a parameter or running statistic is not finite at step 5; it was "
                    "finite at step 4: expected numbers, got nan"),
          HasSubstr(lower_rate),
          HasSubstr("the newest good checkpoint is step-00000004: --resume continues from there")));
  EXPECT_EQ(kept().back(), "step-00000004");
}

TEST_F(DivergenceTest, WithoutACheckpointItSaysHowToKeepMore) {
  EXPECT_THAT(text_of_nan_after(5, {"steps=50", run_dir_}),
              HasSubstr("no checkpoint was saved before: a shorter checkpoint.every, now 1800 s, "
                        "keeps more of a run"));
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(DivergenceTest, ARunWithinHalfAnHourSavesOnce) {
  run({"steps=9", run_dir_});
  EXPECT_THAT(kept(), ElementsAre("step-00000009"));
}

TEST_F(DivergenceTest, AModelThatIsNotFiniteIsRefusedAtTheStart) {
  RunParts parts = engine_.parts();
  testing::own_model(parts).make_graph = [this](const ForwardKey& key) {
    const std::int64_t batch = key.samples;
    Graph graph = testing::small_network(engine_.operators, batch);
    for (State& state : graph.states) {
      if (state.name != "fc1.weight") continue;
      state.start = state.start.clone();
      state.start.as<float>()[3] = std::nanf("");
    }
    return graph;
  };
  Training training(testing::small_config(folder_.path()), parts, {train_, nullptr}, {});
  EXPECT_THAT(testing::error_text([&] { training.run("", {}); }),
              HasSubstr("fc1.weight: a parameter or running statistic is not finite before the "
                        "first step"));
}

// ---------------------------------------------------------------- the cause

TEST_F(DivergenceTest, NaNInTheDataIsRefusedWithItsRows) {
  train_ = data_with(std::nanf(""), {4, 6, 7, 9, 15, 20});
  const Error error = error_of({});
  EXPECT_EQ(error.kind(), ErrorKind::data);
  EXPECT_EQ(error.diagnostics().size(), 6u);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("memory:5: data.fields.x: nan in the data: expected"),
                    HasSubstr("memory:7: "), HasSubstr("memory:16: "), HasSubstr("memory:21: ")));
  std::vector<std::int64_t> many;
  for (std::int64_t i = 0; i < 60; ++i) many.push_back(i);
  train_ = data_with(std::nanf(""), many, 64);
  EXPECT_EQ(error_of({}).diagnostics().size(), 50u);
  EXPECT_THAT(error_of({}).what(), HasSubstr("nan in the data (and in 59 more samples)"));
  train_ = testing::small_data(22, 3);
  eval_ = data_with(std::nanf(""), {2}, 5);
  EXPECT_THAT(error_of({}).what(), HasSubstr("memory:3: data.fields.x: nan in the data"));
}

// logits = f(x w + 1) v, of x = 0.
RunParts parts_with(testing::SmallEngine& engine, const std::string& f, double bias) {
  RunParts parts = engine.parts();
  testing::own_model(parts).make_graph = [&engine, f, bias](const ForwardKey& key) {
    const std::int64_t batch = key.samples;
    GraphBuilder g(engine.operators);
    const ValueId x = g.input("x", {DType::float32, {batch, 6}});
    const auto state = [&](const char* name, const Shape& shape) {
      State state;
      state.name = state.path = name;
      state.trainable = true;
      state.start = HostTensor(TensorType{DType::float32, shape});
      for (float& each : state.start.as<float>()) each = 0.5f;
      return g.state(std::move(state));
    };
    const ValueId w = state("w", {6, 4}), v = state("v", {4, 3});
    g.set_scope({"first", Phase::forward, {}});
    const ValueId h = g.add(g.matmul(x, w), g.scalar(bias, DType::float32));
    g.set_scope({"body.act", Phase::forward, {}});
    const ValueId y = g.add_node(f, {h});
    g.set_scope({"head", Phase::forward, {}});
    g.output("logits", g.matmul(y, v));
    return g.finish();
  };
  return parts;
}

TEST_F(DivergenceTest, TheOperatorWhereItBeganIsNamed) {
  train_ = make_array_source({{"x", HostTensor(TensorType{DType::float32, {22, 6}})},
                              {"labels", HostTensor(TensorType{DType::int64, {22}})}});
  const auto text = [&](const std::string& f, double bias) {
    Training training(testing::small_config(folder_.path()), parts_with(engine_, f, bias),
                      {train_, nullptr}, {});
    return testing::error_text([&] { training.run("", {}); });
  };
  // The first step's forward pass: no learning rate has been used.
  EXPECT_THAT(text("Log", 0),
              AllOf(HasSubstr("the loss is not finite at step 1"),
                    HasSubstr("body.act: inf begins here, in Log: its operand is 0"),
                    Not(HasSubstr(lower_rate))));
  EXPECT_THAT(text("Exp", 200),
              HasSubstr("body.act: inf begins here, in Exp: its operand is above"));
  // A finite loss with an infinite slope.
  EXPECT_THAT(text("Sqrt", 0), AllOf(HasSubstr("a parameter or running statistic is not finite"),
                                     HasSubstr("begins here, in the gradient of Sqrt: its operand "
                                               "is 0, where its slope is infinite"),
                                     Not(HasSubstr(lower_rate))));
}

// A learning rate that is too high: the operator, and what helps.
TEST_F(DivergenceTest, TheOperatorOfALaterStepIsNamed) {
  const std::string text = testing::error_text([&] {
    Training training(testing::small_config(folder_.path(), {"optimizer.lr=1e30", "steps=9"}),
                      engine_.parts(), {train_, nullptr}, {});
    training.run("", {});
  });
  EXPECT_THAT(text, AllOf(HasSubstr("begins here, in "), HasSubstr(lower_rate)));
}

TEST_F(DivergenceTest, NaNThatTheModelTakesOutIsNoted) {
  train_ = data_with(std::nanf(""), {4, 6});
  RunParts parts = engine_.parts();
  testing::own_model(parts).make_graph = [this](const ForwardKey& key) {
    const std::int64_t batch = key.samples;
    GraphBuilder g(engine_.operators);
    const ValueId x = g.input("x", {DType::float32, {batch, 6}});
    const ValueId zeros = g.constant(HostTensor(TensorType{DType::float32, {batch, 6}}));
    const ValueId is_number = g.add_node("Equal", {x, x});
    const ValueId numbers = g.add_node("Where", {is_number, x, zeros});
    State state;
    state.name = state.path = "w";
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, {6, 3}});
    g.output("logits", g.matmul(numbers, g.state(std::move(state))));
    return g.finish();
  };
  std::vector<std::string> messages;
  testing::Hooks hooks;
  hooks.on_message = [&](const std::string& text) { messages.push_back(text); };
  Training training(testing::small_config(folder_.path()), parts, {train_, nullptr},
                    hooks.observer());
  EXPECT_THAT(messages,
              Contains(HasSubstr(
                  "note: memory:5: data.fields.x: nan in the data (and in 1 more samples)")));
  EXPECT_EQ(training.run("", {}).steps, 6u);
}

TEST_F(DivergenceTest, AnInfinityInTheDataIsNamedAsTheCause) {
  train_ = data_with(infinity, {4});
  const Error error = error_of({"epochs=1"});
  EXPECT_EQ(error.kind(), ErrorKind::diverged);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("the loss is not finite at step"),
                                  HasSubstr("memory:5: data.fields.x: an infinity in the data"),
                                  Not(HasSubstr(lower_rate))));
}

TEST_F(DivergenceTest, OtherwiseTheRateIsTheAdvice) {
  EXPECT_THAT(
      error_of({"steps=50", "optimizer.lr=1e30", run_dir_}).what(),
      AllOf(HasSubstr("not finite at step"), HasSubstr(lower_rate), Not(HasSubstr("in the data"))));
}

TEST_F(DivergenceTest, WeightsThatAreAllZeroAreNamed) {
  EXPECT_THAT(error_of({terms(", class_weights=[0, 0, 0]")}).what(),
              AllOf(HasSubstr("no label of the loss term \"loss\" counts"),
                    HasSubstr("class_weights"), Not(HasSubstr(lower_rate))));
  HostTensor ignored(TensorType{DType::int64, {8}});
  for (std::int64_t& label : ignored.as<std::int64_t>()) label = -1;
  train_ = make_array_source(
      {{"x", HostTensor(TensorType{DType::float32, {8, 6}})}, {"labels", ignored}});
  EXPECT_THAT(error_of({terms(", ignore_index=-1")}).what(),
              HasSubstr("no label of the loss term \"loss\" counts"));
}

TEST_F(DivergenceTest, OfSeveralWeightsTheOneThatIsZeroIsNamed) {
  const auto with = [&](std::vector<float> weights, std::vector<std::int64_t> labels) {
    const auto count = static_cast<std::int64_t>(labels.size());
    train_ = make_array_source({{"x", HostTensor(TensorType{DType::float32, {count, 6}})},
                                {"labels", HostTensor::from<std::int64_t>({count}, labels)},
                                {"w", HostTensor::from<float>({count}, weights)}});
  };
  const std::string both = ", sample_weights=\"w\", class_weights=[1, 1, 0]";
  with({0, 0, 0, 0}, {0, 1, 2, 0});
  EXPECT_THAT(error_of({terms(both)}).what(),
              AllOf(HasSubstr("is 0 / 0: the sample weights of all of them are 0"),
                    HasSubstr("expected a sample that counts, got sample_weights with zeros"),
                    HasSubstr("or other sample_weights"), Not(HasSubstr("class"))));
  with({1, 1, 1, 1}, {2, 2, 2, 2});
  EXPECT_THAT(error_of({terms(both)}).what(), AllOf(HasSubstr("nor a class weight of 0 leaves out"),
                                                    Not(HasSubstr("sample_weights"))));
  with({1, 0, 1, 0}, {2, 1, 2, 1});  // neither by itself
  EXPECT_THAT(error_of({terms(both)}).what(),
              HasSubstr("sample_weights and class_weights together leave none of them a weight"));
  with({1, 1, 1, 1}, {-1, -1, -1, -1});
  EXPECT_THAT(error_of({terms(", ignore_index=-1, class_weights=[1, 1, 0]")}).what(),
              HasSubstr("got ignore_index = -1"));
}

TEST_F(DivergenceTest, AnEvaluationThatBadDataHasSpoiledLosesNothing) {
  eval_ = data_with(infinity, {2}, 5);
  const Error error = error_of({"steps=6", "eval.every=\"3 steps\"", run_dir_,
                                "eval.metrics=[\"loss\"]", "eval.best=\"loss\""});
  EXPECT_EQ(error.kind(), ErrorKind::diverged);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("the evaluation's loss is not finite at step 3"),
                                  HasSubstr("memory:3: data.fields.x: an infinity in the data"),
                                  HasSubstr("the newest good checkpoint is step-00000003")));
  EXPECT_THAT(kept(), ElementsAre("step-00000003"));
  eval_ = testing::small_data(5, 3);
  EXPECT_EQ(run({"steps=6", run_dir_}, 0, path_).result.steps, 6u);
}

TEST_F(DivergenceTest, AStepThatTheLossScaleLeftOutIsSaved) {
  train_ = data_with(infinity, {4});
  const std::vector<std::string> keys{"epochs=1", run_dir_, "precision.compute=float16"};
  const Error error = error_of(keys);
  EXPECT_THAT(error.what(), HasSubstr("memory:5: data.fields.x: an infinity in the data"));
  EXPECT_EQ(kept().size(), 1u);
  EXPECT_EQ(run(keys, 0, path_).result.steps, 3u);
}

// ---------------------------------------------------------------- large states, a part at a time

TEST_F(DivergenceTest, EveryPartOfALargeStateIsLookedAtInTurn) {
  constexpr std::int64_t rows = 4096, columns = 256;  // 4 MiB, of which half a MiB is free
  RunParts parts = engine_.parts();
  testing::own_model(parts).make_graph = [&](const ForwardKey& key) {
    const std::int64_t batch = key.samples;
    GraphBuilder g(engine_.operators);
    State state;
    state.name = state.path = "table";
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, {rows, columns}});
    const ValueId ids = g.input("ids", {DType::int64, {batch}});
    g.output("logits", g.add_node("Gather", {g.state(std::move(state)), ids}));
    return g.finish();
  };
  const HostTensor ids(TensorType{DType::int64, {8}});
  Training training(testing::small_config(folder_.path()), parts,
                    {make_array_source({{"ids", ids}, {"labels", ids}}), nullptr}, {});
  StateStore& states = training.states();
  FiniteWatch watch;
  watch.start(states, {}, {0, {}});
  std::uint64_t step = 0;
  while (step < 8) {
    ++step;
    EXPECT_TRUE(watch.look({step, {}}));
  }
  EXPECT_GT(watch.finite_at("table").step, 0u);
  const std::uint64_t before = watch.finite_at("table").step;
  HostTensor last(TensorType{DType::float32, {1, columns}});
  last.as<float>()[columns - 1] = std::nanf("");
  states.write_rows("table", rows - 1, 1, last.data());
  bool is_finite = true;
  for (int i = 0; i < 8 && is_finite; ++i) is_finite = watch.look({++step, {}});
  EXPECT_FALSE(is_finite);
  const std::vector<NotFiniteState> bad = watch.look_at_all({step, {}});
  ASSERT_EQ(bad.size(), 1u);
  EXPECT_EQ(bad[0].name, "table");
  EXPECT_EQ(watch.finite_at("table").step, before);
}

}  // namespace
}  // namespace tandem
