// tandem runs and tandem diff: lists and comparisons of run directories, complete ones and those
// that were cut short.
#include "api/program/runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/commands/runs/run_record.h"
#include "engine/train/checkpoints/run_directory.h"
#include "tests/api/error_of.h"
#include "tests/api/made_up_runs.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using tandem::testing::error_of;
using tandem::testing::MadeUpRun;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

class RunsTest : public ::testing::Test {
 protected:
  /// Writes a run below runs/, with files of that many seconds ago.
  std::string put(const std::string& name, const MadeUpRun& run = {}, int seconds_ago = 0) {
    std::string path = folder_ / ("runs/" + name);
    run.write(path);
    const auto then = fs::file_time_type::clock::now() - std::chrono::seconds(seconds_ago);
    for (const char* file : {"/metrics.jsonl", "/summary.json"}) {
      if (fs::exists(path + file)) fs::last_write_time(path + file, then);
    }
    return path;
  }
  std::vector<std::string> names() {
    std::vector<std::string> names;
    const Json all = Json::parse(list_runs(folder_.path()).json);
    for (const Json& run : all["runs"]) names.push_back(run["name"]);
    return names;
  }
  RunState state_of(const MadeUpRun& run) { return read_run(put("one", run)).state; }

  tandem::testing::TemporaryFolder folder_;
};

TEST_F(RunsTest, ARunIsReadAsItsFilesSay) {
  const RunRecord run = read_run(put("small-0001"));
  EXPECT_EQ(run.name, "small-0001");
  EXPECT_EQ(run.model, "/models/small net.onnx");
  EXPECT_EQ(run.step, 100u);
  EXPECT_EQ(run.loss, 0.25);
  EXPECT_EQ(run.seconds, 8.5);
  EXPECT_EQ(run.settings.at("optimizer.lr"), "0.01");
  EXPECT_EQ(run.settings.at("eval.metrics.0"), "\"accuracy\"");
  ASSERT_EQ(run.evaluation.size(), 2u);
  EXPECT_EQ(run.evaluation[1], std::make_pair(std::string("accuracy"), 0.875));
  ASSERT_TRUE(run.best);
  EXPECT_EQ(run.best->step, 100u);
  const RunSeries* const loss = run.find("loss", false);
  ASSERT_NE(loss, nullptr);
  EXPECT_THAT(loss->steps, ElementsAre(1, 50, 100));
  EXPECT_THAT(loss->values, ElementsAre(2.5, 0.5, 0.25));
  EXPECT_THAT(run.find("loss", true)->steps, ElementsAre(50, 100));
  EXPECT_EQ(run.find("wall", false), nullptr);
}

TEST_F(RunsTest, StatesFollowFromTheFiles) {
  EXPECT_EQ(state_of({}), RunState::stopped);
  MadeUpRun finished;
  finished.summary = R"({"steps":100,"best":{"metric":"accuracy","value":0.9,"step":50}})";
  EXPECT_EQ(state_of(finished), RunState::finished);
  EXPECT_EQ(read_run(folder_ / "runs/one").best->value, 0.9);  // the summary is more accurate
  fs::remove_all(folder_ / "runs/one");
  MadeUpRun diverged;
  diverged.metrics += "{\"step\":101,\"loss\":\"nan\"}\n";
  EXPECT_EQ(state_of(diverged), RunState::diverged);
  MadeUpRun told;
  told.log = "fc1:weight: values are not finite\n";
  EXPECT_EQ(state_of(told), RunState::diverged);
  told.log += "resumed at step 100\n";
  EXPECT_EQ(state_of(told), RunState::stopped);
  const auto lock = RunDirectory::lock(folder_ / "runs/one");
  EXPECT_EQ(read_run(folder_ / "runs/one").state, RunState::running);
}

TEST_F(RunsTest, OfALongLogTheEndCounts) {
  MadeUpRun run;
  run.log = "a note: some cells are not finite\n" + std::string(100'000, 'x') + "\ninterrupted\n";
  EXPECT_EQ(state_of(run), RunState::stopped);
  run.log += "the loss is not finite at step 7\n";
  EXPECT_EQ(state_of(run), RunState::diverged);
}

TEST_F(RunsTest, TheBestIsThatOfItsMetric) {
  MadeUpRun smaller;
  smaller.config += "[log]\n";
  smaller.config.replace(smaller.config.find("best = \"accuracy\""), 17, "best = \"loss\"");
  const RunRecord run = read_run(put("smaller", smaller));
  EXPECT_EQ(run.best->metric, "loss");
  EXPECT_EQ(run.best->value, 0.375);  // the smaller one, on held-out data
  MadeUpRun none;
  none.config = "model = \"m.onnx\"\n";
  EXPECT_FALSE(read_run(put("none", none)).best);
}

TEST_F(RunsTest, TimesOfSeveralStartsAreAddedUp) {
  MadeUpRun resumed;
  resumed.metrics +=
      "{\"step\":101,\"loss\":0.2,\"wall\":0.5}\n{\"step\":102,\"loss\":0.2,\"wall\":2}\n";
  EXPECT_EQ(read_run(put("resumed", resumed)).seconds, 10.5);
}

TEST_F(RunsTest, TornAndEmptyFilesAreReadAsFarAsTheyGo) {
  MadeUpRun torn;
  torn.metrics += "rubbish\n{\"step\":150,\"loss\":0.";
  const RunRecord run = read_run(put("torn", torn));
  EXPECT_EQ(run.step, 100u);
  EXPECT_EQ(run.bad_lines, 2u);
  MadeUpRun empty;
  empty.metrics = empty.policy = "";
  empty.config = "this is no TOML [";
  const RunRecord nothing = read_run(put("empty", empty));
  EXPECT_EQ(nothing.step, 0u);
  EXPECT_FALSE(nothing.loss);
  EXPECT_THAT(nothing.settings, IsEmpty());
  EXPECT_EQ(nothing.state, RunState::stopped);
}

TEST_F(RunsTest, TheNewestComesFirst) {
  put("old", {}, 5000);
  put("new", {}, 10);
  put("middle", {}, 300);
  fs::create_directories(folder_ / "runs/no run");
  EXPECT_THAT(names(), ElementsAre("new", "middle", "old"));
  const std::string text = list_runs(folder_ / "runs").text;
  EXPECT_THAT(text, HasSubstr("small net.onnx"));
  EXPECT_THAT(text, HasSubstr("accuracy 0.875 at step 100"));
  EXPECT_THAT(text, HasSubstr("5 min ago"));
  EXPECT_LT(text.find("new"), text.find("middle"));
}

TEST_F(RunsTest, NamesDoNotSteerATerminal) {
  put("a\x1b[31m");
  EXPECT_THAT(list_runs(folder_.path()).text, Not(HasSubstr("\x1b")));
  put("b\xff");  // no UTF-8
  EXPECT_EQ(names().size(), 2u);
}

TEST_F(RunsTest, WhatIsMissingIsNamed) {
  EXPECT_THAT(error_of([&] { list_runs(folder_ / "none"); }), HasSubstr("there is no such folder"));
  fs::create_directories(folder_ / "bare");
  EXPECT_THAT(list_runs(folder_ / "bare").text, HasSubstr("no runs in"));
  const std::string run = put("run");
  EXPECT_THAT(error_of([&] { compare_runs(run, folder_ / "bare"); }),
              HasSubstr("this is no run directory"));
}

TEST_F(RunsTest, ADifferenceIsToldKeyByKey) {
  MadeUpRun other;
  other.config.replace(other.config.find("lr = 0.01"), 9, "lr = 0.02\nmomentum = 0.9");
  other.policy = "policy = 1\nrules = []\n";
  other.metrics +=
      "{\"phase\":\"eval\",\"step\":120,\"loss\":0.3,\"accuracy\":0.9375,\"wall\":9}\n";
  const Report report = compare_runs(put("a"), put("b", other));
  const Json json = Json::parse(report.json);
  EXPECT_EQ(json["configuration"]["optimizer.lr"], Json::array({"0.01", "0.02"}));
  EXPECT_EQ(json["configuration"]["optimizer.momentum"], Json::array({nullptr, "0.9"}));
  EXPECT_EQ(json["configuration"].size(), 2u);
  EXPECT_FALSE(json["same_policy"]);
  EXPECT_EQ(json["runs"][1]["evaluation"]["accuracy"], 0.9375);
  EXPECT_THAT(report.text, HasSubstr("optimizer.lr        0.01  0.02"));
  EXPECT_THAT(report.text, HasSubstr("policy.toml differs"));
  EXPECT_THAT(report.text, HasSubstr("+0.0625"));
}

TEST_F(RunsTest, EqualRunsSaySo) {
  const std::string text = compare_runs(put("a"), put("b")).text;
  EXPECT_THAT(text, HasSubstr("configuration: the same"));
  EXPECT_THAT(text, Not(HasSubstr("policy.toml")));
}

TEST_F(RunsTest, NumbersThatAreNotFiniteAreTexts) {
  MadeUpRun bad;
  bad.metrics = "{\"step\":1,\"loss\":\"inf\"}\n{\"phase\":\"eval\",\"step\":1,\"auc\":\"nan\"}\n";
  put("bad", bad);
  const Json run = Json::parse(list_runs(folder_.path()).json)["runs"][0];
  EXPECT_EQ(run["loss"], "inf");
  EXPECT_EQ(run["evaluation"]["auc"], "nan");
  EXPECT_EQ(run["state"], "diverged");
}

}  // namespace
}  // namespace tandem::api
