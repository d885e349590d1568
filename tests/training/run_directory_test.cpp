// The run directory: numbered up, never overwritten, metrics cut back on resume.
#include "engine/train/checkpoints/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/graph/error.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RunDirectoryTest : public ::testing::Test {
 protected:
  std::string runs() const { return folder_ / "runs"; }
  RunDirectory numbered(const std::string& name = "digits") {
    return RunDirectory::create("", runs(), name);
  }

  /// Logs these steps, "e" for an evaluation of the step before, and returns the path of the run.
  std::string logged(std::initializer_list<int> steps) {
    RunDirectory run = numbered();
    for (const int step : steps) {
      run.log_metrics(static_cast<std::uint64_t>(std::abs(step)), step < 0 ? "eval" : "",
                      {{"loss", 0.5}});
    }
    return run.path();
  }
  static std::vector<int> steps_in(const std::string& path) {
    std::vector<int> steps;
    for (const std::string& line : testing::lines_of(path + "/metrics.jsonl")) {
      const auto json = nlohmann::json::parse(line);
      const int step = json["step"];
      steps.push_back(json.value("phase", "") == "eval" ? -step : step);
    }
    return steps;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(RunDirectoryTest, RunsAreNumberedUp) {
  EXPECT_EQ(numbered().path(), runs() + "/digits-0001");
  EXPECT_EQ(numbered().path(), runs() + "/digits-0002");
  EXPECT_EQ(numbered("other").path(), runs() + "/other-0001");
  fs::create_directories(runs() + "/digits-0041");
  fs::create_directories(runs() + "/digits-x");
  fs::create_directories(runs() + "/digits-0099-old");
  EXPECT_EQ(numbered().path(), runs() + "/digits-0042");
  EXPECT_TRUE(fs::is_directory(runs() + "/digits-0042/checkpoints"));
}

TEST_F(RunDirectoryTest, ANumberThatAnotherProcessTakesAtThatMomentIsItsOwn) {
  set_file_hook([&](std::string_view operation, std::string_view path) {
    if (operation == "make_directory" && path.ends_with("digits-0001"))
      fs::create_directories(runs() + "/digits-0001");
  });
  EXPECT_EQ(numbered().path(), runs() + "/digits-0002");
  set_file_hook({});
}

TEST_F(RunDirectoryTest, ARunThatCannotBeWrittenSaysWhatToDo) {
  const std::string path = logged({1});
  write_file(path + "/summary.json", "{}");
  set_file_hook([](std::string_view operation, std::string_view file) {
    if (operation != "remove" && operation != "make_directory") return;
    throw Error(ErrorKind::runtime,
                Diagnostic{.message = "cannot do it", .file = std::string(file)});
  });
  EXPECT_EQ(testing::error_text([&] { RunDirectory::resume(path, 1).begin(); }),
            path +
                "/summary.json: cannot do it (a run continues in its own directory: make it and "
                "its files writable)");
  EXPECT_EQ(testing::error_text([&] { numbered(); }),
            runs() + "/digits-0002: cannot do it (name another folder with --run-dir or run_dir)");
  set_file_hook({});
}

TEST_F(RunDirectoryTest, AGivenDirectoryIsNeverOverwritten) {
  const std::string path = folder_ / "a/b/run";
  EXPECT_EQ(RunDirectory::create(path, runs(), "digits").path(), path);
  EXPECT_THAT(testing::error_text([&] { RunDirectory::create(path, runs(), "digits"); }),
              HasSubstr("this directory holds a run already"));
  fs::remove(path + "/metrics.jsonl");
  fs::create_directories(path + "/checkpoints/step-00000003");
  EXPECT_THAT(testing::error_text([&] { RunDirectory::create(path, runs(), "digits"); }),
              HasSubstr("this directory holds a run already"));
}

TEST_F(RunDirectoryTest, TheNewestUnfinishedRun) {
  EXPECT_EQ(RunDirectory::newest_unfinished(runs(), "digits"), "");
  for (int i = 0; i < 3; ++i) numbered();
  numbered("other");
  std::ofstream(runs() + "/digits-0003/summary.json") << "{}";
  EXPECT_EQ(RunDirectory::newest_unfinished(runs(), "digits"), runs() + "/digits-0002");
  EXPECT_EQ(RunDirectory::newest_unfinished(runs(), "none"), "");
}

// The run ended with it: a resumed one evaluates again.
TEST_F(RunDirectoryTest, AnEvaluationThatWasNotFiniteIsCut) {
  RunDirectory run = numbered();
  for (const std::uint64_t step : {2, 4}) {
    run.log_metrics(step, "", {{"loss", 0.5}});
    run.log_metrics(step, "eval", {{"loss", 0.5}, {"mse", std::nan("")}});
  }
  EXPECT_EQ(RunDirectory::resume(run.path(), 4).evaluated_step(), 2u);
  EXPECT_THAT(steps_in(run.path()), ElementsAre(2, -2, 4));
}

TEST_F(RunDirectoryTest, OneObjectALine) {
  RunDirectory run = numbered();
  run.log_metrics(3, "", {{"loss", 0.25}, {"lr", 1e-3}});
  run.log_metrics(3, "eval", {{"accuracy", 0.5}});
  const double inf = std::numeric_limits<double>::infinity();
  run.log_metrics(4, "", {{"loss", std::nan("")}, {"a", inf}, {"b", -inf}});
  EXPECT_THAT(testing::lines_of(run.path() + "/metrics.jsonl"),
              ElementsAre(R"({"step":3,"loss":0.25,"lr":0.001})",
                          R"({"phase":"eval","step":3,"accuracy":0.5})",
                          R"({"step":4,"loss":"nan","a":"inf","b":"-inf"})"));
}

TEST_F(RunDirectoryTest, MetricsAreCutBackToTheResumedStep) {
  const std::string path = logged({1, 2, -2, 3, 4, -4, 5});
  RunDirectory run = RunDirectory::resume(path, 3);
  EXPECT_THAT(steps_in(path), ElementsAre(1, 2, -2, 3));
  EXPECT_EQ(run.evaluated_step(), 2u);
  run.log_metrics(4, "", {{"loss", 1}});
  EXPECT_THAT(steps_in(path), ElementsAre(1, 2, -2, 3, 4));
}

TEST_F(RunDirectoryTest, ATornLastLineGoes) {
  const std::string path = logged({1, 2});
  for (const std::string& torn : {std::string("{\"step\":3,\"lo"), std::string("{\"step\":3}"),
                                  std::string(8, '\0')}) {  // none ends its line
    std::ofstream(path + "/metrics.jsonl", std::ios::app) << torn;
    RunDirectory::resume(path, 5);
    EXPECT_THAT(steps_in(path), ElementsAre(1, 2));
  }
  std::ofstream(path + "/metrics.jsonl", std::ios::app) << "not JSON\n{\"step\":3}\n";
  RunDirectory::resume(path, 5);
  EXPECT_THAT(steps_in(path), ElementsAre(1, 2));
}

TEST_F(RunDirectoryTest, TablesOfMetricsAreKept) {
  const std::string path = logged({1, 2});
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i) names.push_back(std::to_string(i));
  {
    RunDirectory run = RunDirectory::resume(path, 2);
    run.log_metrics(2, "eval", {{"loss", 0.5}},
                    {{"auc_by_country", {"1", "2"}, {0.75, std::nan("")}},
                     {"confusion", names, std::vector<double>(1000 * 1000, 7), true}});
  }
  const RunDirectory run = RunDirectory::resume(path, 2);
  EXPECT_EQ(run.evaluated_step(), 2u);  // a slice without a number is no evaluation that failed
  EXPECT_EQ(run.evaluated(2, "loss"), 0.5);
  EXPECT_EQ(run.evaluated(2, "confusion"), std::nullopt);
  EXPECT_THAT(testing::lines_of(path + "/metrics.jsonl").back(),
              HasSubstr("\"auc_by_country\":{\"1\":0.75,\"2\":\"nan\"},\"confusion\":[[7,7,"));
}

TEST_F(RunDirectoryTest, ResumingFromTheStartKeepsNoLine) {
  const std::string path = logged({1, 2, -2});
  EXPECT_EQ(RunDirectory::resume(path, 0).evaluated_step(), std::nullopt);
  EXPECT_TRUE(steps_in(path).empty());
}

TEST_F(RunDirectoryTest, AResumedRunIsUnfinishedAgain) {
  const std::string path = logged({1});
  std::ofstream(path + "/summary.json") << "{}";
  RunDirectory run = RunDirectory::resume(path, 1);
  EXPECT_EQ(RunDirectory::newest_unfinished(runs(), "digits"), "");  // it may still be refused
  run.begin();
  EXPECT_EQ(RunDirectory::newest_unfinished(runs(), "digits"), path);
}

TEST_F(RunDirectoryTest, TextGoesToTheLog) {
  RunDirectory run = numbered();
  run.log_text("resumed at step 4");
  run.write_file("policy.toml", "policy = 1\n");
  EXPECT_THAT(testing::lines_of(run.path() + "/train.log"), ElementsAre("resumed at step 4"));
  EXPECT_THAT(testing::lines_of(run.path() + "/policy.toml"), ElementsAre("policy = 1"));
}

TEST_F(RunDirectoryTest, OneProcessTrainsInIt) {
  const std::string path = logged({1});
  auto held = RunDirectory::lock(path);
  EXPECT_THAT(testing::error_text([&] { RunDirectory::lock(path); }),
              HasSubstr("another process trains in this directory"));
  held.reset();
  EXPECT_EQ(testing::error_text([&] { RunDirectory::lock(path); }), "no error");
}

TEST_F(RunDirectoryTest, LinesThatAreNoMetricsAreCutOff) {
  for (const char* line : {R"({"step":"x"})", R"({"step":-1})", R"({"step":null})", "[]", "3"}) {
    const std::string path = logged({1, 2});
    std::ofstream(path + "/metrics.jsonl", std::ios::app) << line << "\n";
    RunDirectory::resume(path, 5);
    EXPECT_THAT(steps_in(path), ElementsAre(1, 2)) << line;
  }
}

}  // namespace
}  // namespace tandem
