// Whole runs of a small network: micro-batches, freezing, rates, clipping, endings.
#include "engine/train/loop/trainer.h"

#include <filesystem>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/updates/learning_rate_factors.h"
#include "tests/training/test_hooks.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using testing::expect_near;
using testing::terms;
using testing::Trained;
using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using TrainerTest = testing::TrainingRun;

// ---------------------------------------------------------------- micro-batches

struct MicroBatchCase {
  std::string name;
  std::vector<std::string> keys;
  bool holes = false;
};
void PrintTo(const MicroBatchCase& c, std::ostream* stream) { *stream << c.name; }

class MicroBatchTest : public TrainerTest, public ::testing::WithParamInterface<MicroBatchCase> {};

TEST_P(MicroBatchTest, EqualTheWholeBatch) {
  const MicroBatchCase& c = GetParam();
  train_ = testing::small_data(22, 3, c.holes);  // steps of 8, 8 and 6 samples
  std::vector<std::string> keys{"epochs=2"};
  keys.insert(keys.end(), c.keys.begin(), c.keys.end());
  const Trained whole = run(keys);
  ASSERT_EQ(whole.steps.size(), 6u);
  for (const char* size : {"4", "2", "1"}) {
    std::vector<std::string> split = keys;
    split.push_back(std::string("micro_batch=") + size);
    const Trained parts = run(split);
    ASSERT_EQ(parts.steps.size(), 6u);
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(parts.all("loss")[i], whole.all("loss")[i], 1e-6 * whole.all("loss")[i])
          << size << " step " << i + 1;
    }
    expect_near(parts.training->states(), whole.training->states(), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Losses, MicroBatchTest,
    ::testing::Values(
        MicroBatchCase{"mean", {}},
        MicroBatchCase{"sum", {terms(", reduction=\"sum\""), "optimizer.lr=0.01"}},
        MicroBatchCase{"ignore_index", {terms(", ignore_index=-1")}, true},
        MicroBatchCase{"class_weights", {terms(", class_weights=[0.5, 2.0, 1.0]")}},
        MicroBatchCase{
            "weights_ignore_smoothing",
            {terms(", class_weights=[0.5, 2.0, 1.0], ignore_index=-1, label_smoothing=0.1")},
            true},
        MicroBatchCase{
            "momentum",
            {"optimizer.momentum=0.9", "optimizer.nesterov=true", "optimizer.weight_decay=0.01"}},
        MicroBatchCase{"adam", {"optimizer.kind=adam", "optimizer.lr=0.01", "optimizer.eps=1e-3"}},
        MicroBatchCase{"clip_norm", {"optimizer.clip_norm=0.2"}},
        MicroBatchCase{"freeze", {"parameters.freeze=[{at=\"fc1\", until=\"4 steps\"}]"}}),
    [](const auto& info) { return info.param.name; });

TEST_F(TrainerTest, SeveralTermsAreLoggedAndAddUp) {
  const Trained run =
      this->run({"loss.terms=[{name=\"a\", kind=\"softmax_cross_entropy\", logits=\"logits\", "
                 "labels=\"labels\"},"
                 "{name=\"b\", kind=\"softmax_cross_entropy\", logits=\"logits\", "
                 "labels=\"labels\", weight=0.5}]",
                 "micro_batch=4", "steps=3"});
  for (const TrainingProgress& p : run.steps) {
    EXPECT_NEAR(Trained::value(p, "a") + Trained::value(p, "b"), Trained::value(p, "loss"), 1e-6);
    EXPECT_NEAR(Trained::value(p, "a"), 2 * Trained::value(p, "b"), 1e-6);
  }
}

TEST_F(TrainerTest, ThePartialBatchIsUsedUnlessDropped) {
  Trained run = this->run({"epochs=2"});
  EXPECT_EQ(run.training->steps_per_epoch(), 3);
  EXPECT_EQ(run.result.steps, 6u);
  RunConfig config = testing::small_config(folder_.path(), {"epochs=2"});
  config.data->drop_last = true;
  Training dropping(config, engine_.parts(), {train_, nullptr}, {});
  EXPECT_EQ(dropping.steps_per_epoch(), 2);
  EXPECT_EQ(dropping.run("", {}).steps, 4u);
  config.batch_size = 23;
  EXPECT_THAT(testing::error_text([&] {
                Training(config, engine_.parts(), {train_, nullptr}, {});
              }),
              HasSubstr("fewer samples than one batch"));
}

TEST_F(TrainerTest, TheFirstOfStepsAndEpochsEndsTheRun) {
  EXPECT_EQ(run({"steps=4", "epochs=2"}).result.steps, 4u);
  EXPECT_EQ(run({"steps=9", "epochs=2"}).result.steps, 6u);
}

// ---------------------------------------------------------------- freezing, rates, clipping

TEST_F(TrainerTest, FrozenParametersThawOnTime) {
  const auto until = [](const std::string& end) {
    return "parameters.freeze=[{at=\"fc1\", until=\"" + end + "\"}]";
  };
  const HostTensor start =
      run({"steps=1", "optimizer.lr=0.0"}).training->states().read("fc1.weight");
  auto moved = [&](const std::string& end, const std::string& steps) {
    const HostTensor now = run({until(end), "steps=" + steps, "optimizer.kind=adam"})
                               .training->states()
                               .read("fc1.weight");
    return !std::equal(start.as<float>().begin(), start.as<float>().end(), now.as<float>().begin());
  };
  EXPECT_FALSE(moved("3 steps", "3"));
  EXPECT_TRUE(moved("3 steps", "4"));
  EXPECT_FALSE(moved("1.4 epochs", "4"));  // 4.2 steps
  EXPECT_TRUE(moved("1.4 epochs", "5"));
}

TEST_F(TrainerTest, RatesFollowTheSchedule) {
  const Trained run = this->run(
      {"optimizer.schedule={kind=\"cosine\", warmup=\"2 steps\", final=0.01}", "steps=6"});
  ScheduleConfig config;
  config.kind = CosineSchedule{.final = 0.01};
  config.warmup = Duration{2, Duration::Unit::steps};
  const Schedule schedule(config, 0.1, {3, 6});
  for (const TrainingProgress& p : run.steps) {
    EXPECT_DOUBLE_EQ(Trained::value(p, "lr"),
                     0.1 * schedule.factor(static_cast<std::int64_t>(p.step)));
  }
  EXPECT_DOUBLE_EQ(run.all("lr")[0], 0.05);
}

TEST_F(TrainerTest, GroupsFollowTheScheduleInProportion) {
  // One warm-up step at half the rate is one step with half the rate.
  const Trained warm = run({"steps=1", "optimizer.schedule={kind=\"constant\", warmup=\"2 steps\"}",
                            "optimizer.groups=[{at=\"fc2\", lr=0.4}]"});
  const Trained plain =
      run({"steps=1", "optimizer.lr=0.05", "optimizer.groups=[{at=\"fc2\", lr=0.2}]"});
  expect_near(warm.training->states(), plain.training->states(), 1e-7);
}

TEST_F(TrainerTest, TheNormIsThatBeforeClipping) {
  const Trained free = run({"steps=1", "optimizer.clip_norm=1000.0"});
  const double norm = free.all("gradient_norm")[0];
  EXPECT_GT(norm, 0.01);
  const Trained clipped =
      run({"steps=1", "optimizer.lr=0.4", "optimizer.clip_norm=" + std::to_string(norm / 4)});
  EXPECT_NEAR(clipped.all("gradient_norm")[0], norm, 1e-6);
  expect_near(clipped.training->states(), free.training->states(), 1e-5);
}

// ---------------------------------------------------------------- endings

TEST_F(TrainerTest, ADivergedLossIsAnError) {
  RunConfig config = testing::small_config(
      folder_.path(), {"steps=50", "optimizer.lr=1e30", "checkpoint.every=\"1 steps\"",
                       "run_dir=\"" + (folder_ / "run") + "\""});
  Training training(config, engine_.parts(), {train_, nullptr}, {});
  try {
    training.run("", {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::diverged);
    EXPECT_THAT(error.what(), HasSubstr("not finite at step"));
  }
  const auto lines = testing::lines_of(folder_ / "run/metrics.jsonl");
  EXPECT_TRUE(Json::parse(lines.back())["loss"].is_string());
  EXPECT_FALSE(list_checkpoints(folder_ / "run/checkpoints").empty());
}

TEST_F(TrainerTest, TimeMayEndTheRun) {
  const Trained run =
      this->run({"steps=100000000", "max_time=\"0.05 s\"", "log.every=\"1000000 steps\""});
  EXPECT_LT(run.result.steps, 100000000u);
  EXPECT_THAT(run.messages, ::testing::Contains("stopped: max_time has passed"));
}

TEST_F(TrainerTest, BadLabelsAreErrorsWithTheirRow) {
  train_ = testing::small_data(9, 3, true);  // rows 4 and 9 have -1, without ignore_index
  try {
    run({});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    ASSERT_EQ(error.diagnostics().size(), 1u);
    EXPECT_THAT(
        error.what(),
        HasSubstr("data.fields.labels: out of range (and 1 row more): a label is not a class of "
                  "\"logits\""));
    EXPECT_THAT(error.what(), HasSubstr("expected 0 to 2, got -1"));
  }
  EXPECT_EQ(run({terms(", ignore_index=-1")}).result.steps, 6u);
}

TEST_F(TrainerTest, BadIndicesAreErrorsWithTheirRow) {
  // A lookup in a table of 4 rows, by a field that the graph converts and reshapes first.
  GraphBuilder g(engine_.operators);
  State table;
  table.name = table.path = "table";
  table.trainable = true;
  table.start = HostTensor(TensorType{DType::float32, {4, 3}});
  const ValueId ids = g.reshape(g.cast(g.input("ids", {DType::int32, {8, 1}}), DType::int64), {8});
  g.set_scope({"embedding", Phase::forward, {}});
  g.output("logits", g.add_node("Gather", {g.state(table), ids}));
  RunParts parts = engine_.parts();
  testing::own_model(parts).make_graph = [graph = g.finish()](const ForwardKey&) { return graph; };
  HostTensor values(TensorType{DType::int32, {8, 1}});
  const HostTensor labels(TensorType{DType::int64, {8}});
  auto text = [&](std::int32_t last) {
    values.as<std::int32_t>()[7] = last;
    const DataSets data{make_array_source({{"ids", values}, {"labels", labels}}), nullptr};
    return testing::error_text(
        [&] { Training(testing::small_config(folder_.path()), parts, data, {}); });
  };
  EXPECT_EQ(text(3), "no error");
  EXPECT_THAT(
      text(4),
      HasSubstr("data.fields.ids: out of range: an index of embedding into \"table\", which "
                "has 4 rows: expected 0 to 3, got 4"));
  EXPECT_THAT(text(-1), HasSubstr("got -1"));
}

TEST_F(TrainerTest, EveryInputOfTheModelIsFedItsOwnType) {
  const HostTensor labels(TensorType{DType::int64, {8}});
  auto text = [&](const std::string& name, const TensorType& type) {
    const DataSets data{make_array_source({{name, HostTensor(type)}, {"labels", labels}}), nullptr};
    return testing::error_text(
        [&] { Training(testing::small_config(folder_.path()), engine_.parts(), data, {}); });
  };
  EXPECT_EQ(text("x", {DType::float32, {8, 6}}), "no error");
  EXPECT_THAT(text("xx", {DType::float32, {8, 6}}),
              HasSubstr("data.fields.x: no data field feeds this input of the model: expected "
                        "float32[8, 6], got fields labels, xx"));
  EXPECT_THAT(text("x", {DType::float32, {8, 600}}),
              HasSubstr("expected float32[8, 6], got float32[8, 600]"));
  EXPECT_THAT(text("x", {DType::uint8, {8, 6}}), HasSubstr("end its `as` with \"float32\""));
}

TEST_F(TrainerTest, ARunThatCannotEndIsRefused) {
  EXPECT_THAT(testing::error_text([&] { run({"epochs=1e300"}); }),
              HasSubstr("epochs: the run would never end"));
}

TEST_F(TrainerTest, AParameterThatIsNotANumberIsNotSaved) {
  // A Relu may turn nan into a number, so that the loss is finite.
  Training* running = nullptr;
  testing::Hooks hooks;
  hooks.on_progress = [&](const TrainingProgress& p) {
    if (p.step != 6) return;
    HostTensor bias = running->states().read("fc2.bias");
    bias.as<float>()[0] = std::nanf("");
    running->states().write("fc2.bias", bias);
  };
  Training training(testing::small_config(folder_.path()), engine_.parts(), {train_, nullptr},
                    hooks.observer());
  running = &training;
  EXPECT_THAT(testing::error_text([&] { training.run("", {}); }),
              HasSubstr("fc2.bias: a parameter or running statistic is not finite at step 6"));
  EXPECT_FALSE(fs::exists(folder_.path() + "/runs/small-0001/checkpoints/step-00000006"));
}

TEST_F(TrainerTest, AnEvaluationThatIsNotFiniteIsNamed) {
  HostTensor x(TensorType{DType::float32, {3, 6}});
  x.as<float>()[7] = std::numeric_limits<float>::infinity();
  eval_ = make_array_source({{"x", x}, {"labels", HostTensor(TensorType{DType::int64, {3}})}});
  EXPECT_THAT(testing::error_text([&] { run({"eval.metrics=[\"accuracy\"]"}); }),
              AllOf(HasSubstr("eval: the evaluation's loss is not finite at step 6: expected a "
                              "number"),
                    HasSubstr("memory:2: data.fields.x: an infinity in the data"),
                    Not(HasSubstr("optimizer.lr"))));
}

TEST_F(TrainerTest, ATiedParameterIsWrittenOnceWithItsOtherName) {
  RunParts parts = engine_.parts();
  testing::own_model(parts).aliases = {{"head.weight", "fc2.weight"}};
  const std::vector<std::string> whole_run{"run_dir=\"" + (folder_ / "run") + "\""};
  Training(testing::small_config(folder_.path(), whole_run), parts, {train_, nullptr}, {})
      .run("", {});
  const std::string path = folder_ / "run/checkpoints/step-00000006";
  const CheckpointContent content = read_checkpoint(path);
  EXPECT_EQ(content.aliases, parts.model->loading_parts().aliases);
  EXPECT_EQ(content.model.size(), 4u);
  // Another file of the network may call the tensor by that name.
  const auto renamed = [this](const ForwardKey& key) {
    Graph graph = testing::small_network(engine_.operators, key.samples);
    for (State& state : graph.states) {
      if (state.name == "fc2.weight") state.name = "head.weight";
    }
    return graph;
  };
  testing::own_model(parts).make_graph = renamed;
  Training other(testing::small_config(folder_.path(), {"parameters.load=[{at=\"**\", from=\"" +
                                                        path + "/model.safetensors\"}]"}),
                 parts, {train_, nullptr}, {});
  const HostTensor loaded = other.states().read("head.weight");
  for (const NamedTensor& t : content.model) {
    if (t.name != "fc2.weight") continue;
    EXPECT_EQ(std::memcmp(t.tensor.data(), loaded.data(), loaded.bytes()), 0);
  }
}

TEST_F(TrainerTest, TheResultSaysWhatWasReached) {
  eval_ = testing::small_data(9, 9);
  const Trained run = this->run({"steps=5", "eval.metrics=[\"accuracy\"]"});
  EXPECT_EQ(run.result.run_dir, folder_.path() + "/runs/small-0001");
  EXPECT_DOUBLE_EQ(run.result.loss, run.all("loss").back());
  EXPECT_EQ(run.steps.back().steps, 5u);
  EXPECT_NEAR(run.steps.back().epoch, 5 / 3.0, 1e-12);
  std::string text;
  for (const std::string& line : testing::lines_of(run.result.run_dir + "/summary.json"))
    text += line;
  const Json summary = Json::parse(text);
  EXPECT_EQ(summary["steps"], 5);
  EXPECT_EQ(summary["samples"], 8 + 8 + 6 + 8 + 8);
  EXPECT_DOUBLE_EQ(summary["eval"]["accuracy"].get<double>(),
                   Trained::value(run.evaluations.back(), "accuracy"));
}

}  // namespace
}  // namespace tandem
