// train --trace: chosen steps, each with a mark, from time zero on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "api/train/step_trace.h"
#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class TrainTraceTest : public ::testing::Test {
 protected:
  /// Events of a run of 8 steps.
  Json run(const std::string& name, const TrainOptions& with) {
    TrainOptions options = with;
    options.overrides.insert(options.overrides.end(), {"steps=8", "eval.every=100 epochs"});
    options.run_dir = folder_ / name;
    options.trace_path = folder_ / (name + ".json");
    Trainer(TANDEM_SOURCE_DIR "/models/digits/train.toml", options).run();
    return Json::parse(read_file(options.trace_path))["traceEvents"];
  }
  static std::vector<std::string> marks(const Json& events) {
    std::vector<std::string> names;
    for (const Json& event : events) {
      if (event.value("cat", "") == "step") names.push_back(event["name"]);
    }
    return names;
  }
  /// Every slice lies within the mark of some step, and the first begins at 0.
  static void check(const Json& events) {
    double earliest = 1e300;
    std::vector<std::pair<double, double>> steps;
    for (const Json& event : events) {
      if (event.contains("ts")) earliest = std::min(earliest, event["ts"].get<double>());
      if (event.value("cat", "") == "step")
        steps.emplace_back(event["ts"], event["ts"].get<double>() + event["dur"].get<double>());
    }
    EXPECT_EQ(earliest, 0);
    std::set<std::pair<int, std::string>> tracks;
    int slices = 0;
    for (const Json& event : events) {
      if (event["ph"] == "M") {
        EXPECT_TRUE(tracks.emplace(event["tid"], event["args"]["name"]).second) << event;
      }
      if (event["ph"] != "X" || event.value("cat", "") == "step") continue;
      ++slices;
      const double begin = event["ts"], end = begin + event["dur"].get<double>();
      EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), [&](const auto& step) {
        return begin >= step.first - 1 && end <= step.second + 1;
      })) << event;
    }
    EXPECT_GT(slices, 20);
    for (std::size_t i = 1; i < steps.size(); ++i)
      EXPECT_GE(steps[i].first, steps[i - 1].second - 1);
  }

  tandem::testing::TemporaryFolder folder_;
};

TEST_F(TrainTraceTest, TheThirdToTheFifthStepAreTraced) {
  const Json events = run("cpu", {});
  EXPECT_THAT(marks(events), ElementsAre("step 3", "step 4", "step 5"));
  check(events);
}

TEST_F(TrainTraceTest, StepsOfSeveralDevicesHaveTheirTracks) {
  TrainOptions options;
  options.place = {"{ at = \"**\", on = \"gpu\" }"};
  options.devices = {"gpu=emulated:0"};
  options.trace_first = 6;
  options.trace_last = 7;
  const Json events = run("emulated", options);
  EXPECT_THAT(marks(events), ElementsAre("step 6", "step 7"));
  check(events);
  std::set<std::string> tracks;
  for (const Json& event : events) {
    if (event["ph"] == "M") tracks.insert(event["args"]["name"]);
  }
  EXPECT_GE(tracks.size(), 3u);
}

TEST_F(TrainTraceTest, ATraceChangesNoNumber) {
  run("traced", {});
  TrainOptions plain;
  plain.overrides = {"steps=8", "eval.every=100 epochs"};
  plain.run_dir = folder_ / "plain";
  Trainer(TANDEM_SOURCE_DIR "/models/digits/train.toml", plain).run();
  const std::string model = "/checkpoints/step-00000008/model.safetensors";
  EXPECT_EQ(hash_file(folder_ / "traced" + model).sha256,
            hash_file(folder_ / "plain" + model).sha256);
}

TEST_F(TrainTraceTest, OperatorsAreLoggedBesideATrace) {
  TrainOptions options;
  options.log_operators = true;
  options.overrides = {"log.every=2 steps"};
  options.trace_first = options.trace_last = 4;
  EXPECT_THAT(marks(run("both", options)), ElementsAre("step 4"));
  const Json operators = Json::parse(read_file(folder_ / "both/operators.json"));
  EXPECT_EQ(operators["step"], 8);
  EXPECT_GT(operators["operators"].size(), 5u);
  EXPECT_THAT(read_file(folder_ / "both/train.log"), HasSubstr("operators of step 8, by time"));
}

TEST_F(TrainTraceTest, AStepThatNeverComesLeavesAnEmptyTrace) {
  TrainOptions options;
  options.trace_first = options.trace_last = 100;
  EXPECT_TRUE(run("short", options).empty());
}

TEST_F(TrainTraceTest, AFileThatIsNoTraceStays) {
  write_file(folder_ / "mine.json", "{}");
  EXPECT_THAT(error_of([&] { StepTrace(folder_ / "mine.json", 0, 0); }), HasSubstr("--trace"));
  EXPECT_EQ(read_file(folder_ / "mine.json"), "{}");
}

}  // namespace
}  // namespace tandem::api
