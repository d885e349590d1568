// Whole runs of a small network: micro-batches, freezing, schedules, resume, evaluation,
// divergence.
#include "engine/training/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/training/checkpoint.h"
#include "engine/training/metrics.h"
#include "engine/training/schedule.h"
#include "tests/harness/operator_case.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Trained {
  std::unique_ptr<Training> training;
  TrainingResult result;
  std::vector<TrainingProgress> steps, evaluations;
  std::vector<std::string> messages;

  static double value(const TrainingProgress& progress, const std::string& name) {
    for (const auto& [key, number] : progress.values) {
      if (key == name) return number;
    }
    ADD_FAILURE() << "no " << name;
    return std::nan("");
  }
  std::vector<double> all(const std::string& name) const {
    std::vector<double> values;
    for (const TrainingProgress& p : steps) values.push_back(value(p, name));
    return values;
  }
};

class TrainerTest : public ::testing::Test {
 protected:
  /// Runs to the end, or until `stop_after` steps are done. `resume` is a run directory.
  Trained run(const std::vector<std::string>& keys, std::uint64_t stop_after = 0,
              const std::string& resume = "") {
    Trained run;
    TrainingHooks hooks;
    std::uint64_t done = 0;
    hooks.on_progress = [&](const TrainingProgress& p) {
      (p.evaluation ? run.evaluations : run.steps).push_back(p);
      done = p.step;
    };
    hooks.on_message = [&](const std::string& text) { run.messages.push_back(text); };
    hooks.stop_requested = [&] { return stop_after > 0 && done >= stop_after; };
    run.training = std::make_unique<Training>(testing::small_config(folder_.path(), keys),
                                              engine_.parts(), DataSets{train_, eval_}, hooks);
    run.result = run.training->run(resume, {});
    return run;
  }

  testing::TemporaryFolder folder_;
  testing::SmallEngine engine_;
  std::shared_ptr<const DataSource> train_ = testing::small_data(22, 3), eval_;
};

// Relative to the largest number of the tensor.
void expect_near(StateStore& a, StateStore& b, double tolerance) {
  for (const auto& [name, x] : testing::states_of(a)) {
    if (name.ends_with("/gradient_sum")) continue;
    ASSERT_TRUE(b.has(name)) << name;
    const HostTensor y = b.read(name);
    double largest = 0, worst = 0;
    for (std::int64_t i = 0; i < x.type().elements(); ++i) {
      largest = std::max(largest, std::abs(y.number(i)));
      worst = std::max(worst, std::abs(x.number(i) - y.number(i)));
    }
    EXPECT_LE(worst, tolerance * largest) << name;
  }
}

// ---------------------------------------------------------------- micro-batches

struct MicroBatchCase {
  std::string name;
  std::vector<std::string> keys;
  bool holes = false;
};

std::string terms(const std::string& options) {
  return "loss.terms=[{name=\"loss\", kind=\"softmax_cross_entropy\", logits=\"logits\", "
         "labels=\"labels\"" +
         options + "}]";
}

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
  const std::string freeze = "parameters.freeze=[{at=\"fc1\", until=\"3 steps\"}]";
  const HostTensor start =
      run({"steps=1", "optimizer.lr=0.0"}).training->states().read("fc1.weight");
  auto moved = [&](const std::string& steps) {
    const HostTensor now = run({freeze, "steps=" + steps, "optimizer.kind=adam"})
                               .training->states()
                               .read("fc1.weight");
    return !std::equal(start.as<float>().begin(), start.as<float>().end(), now.as<float>().begin());
  };
  EXPECT_FALSE(moved("3"));
  EXPECT_TRUE(moved("4"));
}

TEST_F(TrainerTest, RatesFollowTheSchedule) {
  const Trained run = this->run(
      {"optimizer.schedule={kind=\"cosine\", warmup=\"2 steps\", final=0.01}", "steps=6"});
  ScheduleConfig config;
  config.kind = ScheduleKind::cosine;
  config.warmup = Duration{2, Duration::Unit::steps};
  config.final = 0.01;
  const Schedule schedule(config, 0.1, 6, 3);
  for (const TrainingProgress& p : run.steps) {
    EXPECT_DOUBLE_EQ(Trained::value(p, "lr"),
                     0.1 * schedule.factor(static_cast<std::int64_t>(p.step)));
  }
  EXPECT_DOUBLE_EQ(run.all("lr")[0], 0.05);
}

TEST_F(TrainerTest, GroupsFollowTheScheduleInProportion) {
  // One step at half the rate is one step of half the rate.
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

// ---------------------------------------------------------------- resume

std::vector<Json> metrics_of(const std::string& run_dir) {
  std::vector<Json> lines;
  for (const std::string& line : testing::lines_of(run_dir + "/metrics.jsonl")) {
    Json json = Json::parse(line);
    json.erase("wall");
    json.erase("samples_per_second");
    lines.push_back(std::move(json));
  }
  return lines;
}

const std::vector<std::vector<std::string>> resumable{
    {"optimizer.momentum=0.9"},
    {"optimizer.kind=adamw", "optimizer.schedule={kind=\"cosine\", warmup=\"3 steps\"}",
     "micro_batch=4"},
    {"optimizer.kind=adam", "parameters.freeze=[{at=\"fc1\", until=\"5 steps\"}]",
     "optimizer.clip_norm=0.5"},
};

TEST_F(TrainerTest, ResumeIsBitEqual) {
  eval_ = testing::small_data(7, 9);
  for (std::vector<std::string> keys : resumable) {
    keys.insert(keys.end(), {"steps=11", "eval.every=\"4 steps\"", "eval.metrics=[\"accuracy\"]",
                             "eval.best=\"accuracy\""});
    const Trained whole = run(keys);
    for (const std::uint64_t stop : {1, 4, 5, 6, 10}) {
      const Trained stopped = run(keys, stop);
      ASSERT_TRUE(stopped.result.interrupted);
      EXPECT_EQ(stopped.result.steps, stop);
      EXPECT_FALSE(fs::exists(stopped.result.run_dir + "/summary.json"));
      const Trained resumed = run(keys, 0, stopped.result.run_dir);
      EXPECT_THAT(resumed.messages, ::testing::Contains("resumed at step " + std::to_string(stop)));
      EXPECT_EQ(resumed.result.steps, 11u);
      EXPECT_EQ(testing::difference(resumed.training->states(), whole.training->states()), "")
          << keys[0] << " at " << stop;
      EXPECT_EQ(metrics_of(resumed.result.run_dir), metrics_of(whole.result.run_dir))
          << keys[0] << " at " << stop;
      EXPECT_TRUE(fs::exists(resumed.result.run_dir + "/summary.json"));
    }
  }
}

TEST_F(TrainerTest, ABrokenCheckpointIsNamedAndTheOneBeforeUsed) {
  const std::vector<std::string> keys{"steps=9", "checkpoint.every=\"2 steps\"",
                                      "checkpoint.keep=2", "optimizer.momentum=0.9"};
  const Trained whole = run(keys);
  const Trained stopped = run(keys, 7);
  const std::string checkpoints = stopped.result.run_dir + "/checkpoints";
  EXPECT_THAT(list_checkpoints(checkpoints), ElementsAre("step-00000006", "step-00000007"));
  fs::resize_file(checkpoints + "/step-00000007/optimizer.safetensors", 20);
  const Trained resumed = run(keys, 0, stopped.result.run_dir);
  EXPECT_THAT(resumed.messages,
              ::testing::Contains(HasSubstr("checkpoint step-00000007 is broken")));
  EXPECT_THAT(resumed.messages, ::testing::Contains("resumed at step 6"));
  EXPECT_EQ(testing::difference(resumed.training->states(), whole.training->states()), "");
  EXPECT_EQ(metrics_of(resumed.result.run_dir), metrics_of(whole.result.run_dir));
  EXPECT_THAT(list_checkpoints(checkpoints), ElementsAre("step-00000008", "step-00000009"));
}

TEST_F(TrainerTest, WithoutAWholeCheckpointTheRunStartsAgain) {
  const Trained stopped = run({}, 3);
  fs::remove(stopped.result.run_dir + "/checkpoints/step-00000003/manifest.json");
  const Trained resumed = run({}, 0, stopped.result.run_dir);
  EXPECT_THAT(resumed.messages, ::testing::Contains(HasSubstr("starting from the beginning")));
  const Trained whole = run({});
  EXPECT_EQ(testing::difference(resumed.training->states(), whole.training->states()), "");
  EXPECT_EQ(metrics_of(resumed.result.run_dir).size(), 6u);
}

TEST_F(TrainerTest, AFinishedRunGoesOnWithMoreSteps) {
  const Trained first = run({"steps=4"});
  const Trained more = run({"steps=6"}, 0, first.result.run_dir);
  const Trained whole = run({"steps=6"});
  EXPECT_EQ(testing::difference(more.training->states(), whole.training->states()), "");
}

TEST_F(TrainerTest, AnEvaluationThatWasLoggedIsNotLoggedAgain) {
  eval_ = testing::small_data(7, 9);
  const Trained first = run({"steps=4", "eval.every=\"2 steps\""});
  fs::remove(first.result.run_dir + "/summary.json");  // as if killed just before it
  const Trained again = run({"steps=4", "eval.every=\"2 steps\""}, 0, first.result.run_dir);
  EXPECT_EQ(metrics_of(first.result.run_dir).size(), 6u);
  EXPECT_FALSE(again.result.evaluation.empty());
  EXPECT_TRUE(fs::exists(first.result.run_dir + "/summary.json"));
}

TEST_F(TrainerTest, AnotherOptimizerCannotResume) {
  const Trained stopped = run({}, 3);
  EXPECT_THAT(testing::error_text([&] { run({"optimizer.kind=adam"}, 0, stopped.result.run_dir); }),
              HasSubstr("optimizer kinds may not change on resume"));
}

// ---------------------------------------------------------------- evaluation

/// The loss over all samples of a source at once, with the parameters of `states`.
double whole_loss(const OperatorSet& operators, const RunConfig& config, const DataSource& source,
                  const StateStore& states, Accuracy& accuracy) {
  const std::int64_t samples = source.samples();
  TrainingRequest request;
  request.config = &config;
  request.fields = {{"labels", {DType::int64, {samples}}}};
  request.samples = {samples, samples};
  const Graph graph =
      build_evaluation_graph(operators, testing::small_network(operators, samples), request);
  std::vector<std::pair<std::string, HostTensor>> feeds = testing::states_of(states);
  std::vector<std::int64_t> order(static_cast<std::size_t>(samples));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  for (int field = 0; field < 2; ++field) {
    TensorType type = source.fields()[field].sample;
    type.shape.insert(type.shape.begin(), samples);
    HostTensor tensor(type);
    source.fill(field, order, nullptr, tensor.data());
    feeds.emplace_back(source.fields()[field].name, tensor);
  }
  const auto found = testing::evaluate(
      graph, feeds, {graph.find_output("loss")->value, graph.find_output("logits")->value});
  accuracy.add(found[1], feeds.back().second, config.loss.terms[0].ignore_index);
  return found[0].as<float>()[0];
}

TEST_F(TrainerTest, EvaluationCoversEachSampleOnce) {
  for (const std::int64_t samples : {1, 7, 8, 16, 19}) {
    for (const std::string& options :
         {std::string(), std::string(", reduction=\"sum\""),
          std::string(", ignore_index=-1, class_weights=[0.5, 2.0, 1.0]")}) {
      const bool holes = options.find("ignore") != std::string::npos;
      train_ = testing::small_data(22, 3, holes);
      eval_ = testing::small_data(samples, 9, holes);
      const std::vector<std::string> keys{
          terms(options), "steps=2", "eval.metrics=[\"accuracy\", \"loss\"]", "optimizer.lr=0.01"};
      const Trained run = this->run(keys);
      ASSERT_EQ(run.evaluations.size(), 1u);
      Accuracy accuracy;
      const double loss = whole_loss(engine_.operators, testing::small_config(folder_.path(), keys),
                                     *eval_, run.training->states(), accuracy);
      EXPECT_NEAR(Trained::value(run.evaluations[0], "loss"), loss, 1e-6 * loss)
          << samples << options;
      EXPECT_DOUBLE_EQ(Trained::value(run.evaluations[0], "accuracy"), accuracy.value())
          << samples << options;
    }
  }
}

TEST_F(TrainerTest, MetricsThatCannotBeComputedAreErrors) {
  eval_ = testing::small_data(7, 9);
  EXPECT_THAT(testing::error_text([&] { run({"eval.metrics=[\"mse\"]"}); }),
              HasSubstr("a term of kind mse"));
}

TEST_F(TrainerTest, TheBestCheckpointIsKept) {
  eval_ = testing::small_data(9, 9);
  // A rate that only hurts: the first evaluation is the best one.
  const Trained run =
      this->run({"steps=6", "optimizer.lr=3.0", "eval.every=\"1 steps\"", "eval.metrics=[\"loss\"]",
                 "eval.best=\"loss\"", "checkpoint.every=\"1 steps\"", "checkpoint.keep=1"});
  double best = 1e30;
  std::uint64_t best_step = 0;
  for (const TrainingProgress& p : run.evaluations) {
    if (Trained::value(p, "loss") < best) {
      best = Trained::value(p, "loss");
      best_step = p.step;
    }
  }
  const std::string checkpoints = run.result.run_dir + "/checkpoints";
  EXPECT_THAT(testing::lines_of(checkpoints + "/best"), ElementsAre(checkpoint_name(best_step)));
  EXPECT_TRUE(fs::exists(checkpoints + "/" + checkpoint_name(best_step)));
  EXPECT_TRUE(fs::exists(checkpoints + "/" + checkpoint_name(6)));
  EXPECT_LE(list_checkpoints(checkpoints).size(), 2u);
}

TEST_F(TrainerTest, PatienceEndsTheRun) {
  eval_ = testing::small_data(9, 9);
  const Trained run =
      this->run({"steps=100", "optimizer.lr=0.0", "eval.every=\"2 steps\"",
                 "eval.metrics=[\"loss\"]", "eval.best=\"loss\"", "eval.patience=3"});
  EXPECT_EQ(run.result.steps, 8u);  // the first is the best, then three that are not better
  EXPECT_EQ(run.evaluations.size(), 4u);
  EXPECT_THAT(run.messages, ::testing::Contains(HasSubstr("stopped early")));
  EXPECT_TRUE(fs::exists(run.result.run_dir + "/summary.json"));
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
    ASSERT_EQ(error.diagnostics().size(), 2u);
    EXPECT_THAT(error.what(),
                HasSubstr("data.labels: out of range: a label is not a class of \"logits\""));
    EXPECT_THAT(error.what(), HasSubstr("expected 0 to 2, got -1"));
  }
  EXPECT_EQ(run({terms(", ignore_index=-1")}).result.steps, 6u);
}

TEST_F(TrainerTest, BadIndicesAreErrorsWithTheirRow) {
  // A look-up in a table of 4 rows, by a field that the graph converts and reshapes first.
  GraphBuilder g(engine_.operators);
  State table;
  table.name = table.path = "table";
  table.trainable = true;
  table.start = HostTensor(TensorType{DType::float32, {4, 3}});
  const ValueId ids = g.reshape(g.cast(g.input("ids", {DType::int32, {8, 1}}), DType::int64), {8});
  g.set_scope({"embedding", Phase::forward, {}});
  g.output("logits", g.add_node("Gather", {g.state(table), ids}));
  RunParts parts = engine_.parts();
  parts.forward = [graph = g.finish()](std::int64_t, bool) { return graph; };
  HostTensor values(TensorType{DType::int32, {8, 1}});
  const HostTensor labels(TensorType{DType::int64, {8}});
  auto text = [&](std::int32_t last) {
    values.as<std::int32_t>()[7] = last;
    const DataSets data{make_array_source({{"ids", values}, {"labels", labels}}), nullptr};
    return testing::error_text(
        [&] { Training(testing::small_config(folder_.path()), parts, data, {}); });
  };
  EXPECT_EQ(text(3), "no error");
  EXPECT_THAT(text(4),
              HasSubstr("data.ids: out of range: an index of embedding: expected 0 to 3, got 4"));
  EXPECT_THAT(text(-1), HasSubstr("got -1"));
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
