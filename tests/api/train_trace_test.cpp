// train --trace: chosen steps, each with a mark, from time zero on, next to the cost model's
// prediction, with the contents of memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "api/train/step_trace.h"
#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/api/error_of.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using Json = nlohmann::json;

class TrainTraceTest : public ::testing::Test {
 protected:
  /// Events of a run of 8 steps.
  Json run(const std::string& name, const TrainOptions& with) {
    TrainOptions options = with;
    options.overrides.insert(options.overrides.end(), {"steps=8", "eval.every=100 epochs"});
    options.run_dir = folder_ / name;
    options.trace_path = folder_ / (name + ".json");
    Trainer(source_folder() + "/models/digits/train.toml", options).run();
    return Json::parse(read_file(options.trace_path))["traceEvents"];
  }
  static std::vector<Json> of_category(const Json& events, const std::string& category) {
    std::vector<Json> found;
    for (const Json& event : events) {
      if (event.value("cat", "") == category) found.push_back(event);
    }
    return found;
  }
  static std::vector<std::string> marks(const Json& events) {
    std::vector<std::string> names;
    for (const Json& event : of_category(events, "step")) names.push_back(event["name"]);
    return names;
  }
  static double end_of(const Json& slice) {
    return slice["ts"].get<double>() + slice["dur"].get<double>();
  }
  /// Names of the tracks of a process, or of processes, from the events that name them.
  static std::map<int, std::string> names(const Json& events, const char* of, const char* id,
                                          int process = 0) {
    std::map<int, std::string> found;
    for (const Json& event : events) {
      if (event["ph"] != "M" || event["name"] != of) continue;
      if (process > 0 && event["pid"] != process) continue;
      EXPECT_TRUE(found.emplace(event[id], event["args"]["name"]).second) << event;
    }
    return found;
  }
  static std::set<std::string> tracks(const Json& events, int process) {
    std::set<std::string> found;
    for (const auto& [track, name] : names(events, "thread_name", "tid", process))
      found.insert(name);
    return found;
  }
  /// Checks that every slice lies within the mark of a step, that the first begins at 0, and that
  /// each measured slice has a predicted one on a track of the same name.
  static void check(const Json& events) {
    double earliest = 1e300;
    for (const Json& event : events) {
      if (event.contains("ts")) earliest = std::min(earliest, event["ts"].get<double>());
    }
    EXPECT_EQ(earliest, 0);
    EXPECT_EQ(names(events, "process_name", "pid"),
              (std::map<int, std::string>{{1, "measured"}, {2, "predicted"}}));
    const std::vector<Json> steps = of_category(events, "step"),
                            predicted = of_category(events, "predicted step");
    ASSERT_EQ(steps.size(), predicted.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(steps[i]["pid"], 1);
      EXPECT_EQ(predicted[i]["pid"], 2);
      EXPECT_EQ(steps[i]["name"], predicted[i]["name"]);
      EXPECT_EQ(steps[i]["ts"], predicted[i]["ts"]);
      if (i == 0) continue;
      EXPECT_GE(steps[i]["ts"], std::max(end_of(steps[i - 1]), end_of(predicted[i - 1])) - 0.01);
    }
    using Node = std::tuple<std::string, std::string, std::string>;  // step, track, name
    std::multiset<Node> nodes[2];
    // Starts and ends of slices on predicted tracks.
    std::map<int, std::map<double, double>> spans;
    for (const int process : {1, 2}) {
      const std::map<int, std::string> tracks = names(events, "thread_name", "tid", process);
      const std::vector<Json>& around = process == 1 ? steps : predicted;
      for (const Json& event : events) {
        if (event["ph"] != "X" || event["pid"] != process || event["tid"] == 0) continue;
        ASSERT_TRUE(tracks.contains(event["tid"])) << event;
        const double begin = event["ts"], end = end_of(event);
        const auto step = std::find_if(around.begin(), around.end(), [&](const Json& mark) {
          return begin >= mark["ts"].get<double>() - 0.01 && end <= end_of(mark) + 0.01;
        });
        ASSERT_NE(step, around.end()) << event;
        if (process == 2) spans[event["tid"]][begin] = end;
        if (event["cat"] != "kernel" && event["cat"] != "copy") continue;
        nodes[process - 1].emplace((*step)["name"], tracks.at(event["tid"]), event["name"]);
      }
    }
    EXPECT_GT(nodes[0].size(), 20u);
    EXPECT_EQ(nodes[0], nodes[1]);
    for (const auto& [track, ends] : spans) {
      double last = 0;
      for (const auto& [begin, end] : ends) {
        EXPECT_GE(begin, last - 0.002) << "two at a time on track " << track;
        last = end;
      }
    }
  }
  /// Checks that the maximum of a device is the peak of the plan in the run's directory.
  void check_memory(const Json& events, const std::string& run) const {
    std::map<std::string, double> highest, arena;
    for (const Json& event : of_category(events, "memory")) {
      EXPECT_EQ(event["ph"], "C");
      const Json& bytes = event["args"];
      double sum = 0;
      for (const auto& [kind, value] : bytes.items()) sum += value.get<double>();
      double& most = highest[event["name"]];
      most = std::max(most, sum);
      double& live = arena[event["name"]];
      live = std::max(live, bytes["gradients"].get<double>() + bytes["activations"].get<double>() +
                                bytes["workspace"].get<double>());
    }
    const Json plan = Json::parse(read_file(folder_ / run + "/plan.json"));
    std::size_t devices = 0;
    for (const Json& device : plan["devices"]) {
      if (device["peak"] == 0) continue;
      ++devices;
      const std::string name = "memory of " + device["name"].get<std::string>();
      EXPECT_EQ(highest[name], device["peak"].get<double>()) << name;
      double planned = 0;
      for (std::size_t i = 0; i < device["at"].size(); ++i) {
        double sum = 0;
        for (const char* kind : {"gradients", "activations", "workspace"})
          sum += device[kind][i].get<double>();
        planned = std::max(planned, sum);
      }
      // With a single device, everything happens in the plan's order.
      if (plan["devices"].size() == 1) {
        EXPECT_EQ(arena[name], planned);
      } else {
        EXPECT_LE(arena[name], device["peak"].get<double>());
      }
    }
    EXPECT_EQ(highest.size(), devices);
  }

  tandem::testing::TemporaryFolder folder_;
};

TEST_F(TrainTraceTest, TheThirdToTheFifthStepAreTraced) {
  const Json events = run("cpu", {});
  EXPECT_THAT(marks(events), ElementsAre("step 3", "step 4", "step 5"));
  check(events);
  check_memory(events, "cpu");
  EXPECT_EQ(tracks(events, 1), (std::set<std::string>{"steps", "cpu"}));
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
  check_memory(events, "emulated");
  EXPECT_THAT(tracks(events, 1), IsSupersetOf({"steps", "gpu", "gpu.in", "cpu.feed"}));
  EXPECT_THAT(tracks(events, 2), IsSupersetOf({"steps", "gpu", "gpu.in"}));
  std::vector<std::string> in_order;
  std::map<int, int> places;
  for (const Json& event : events) {
    if (event["name"] == "thread_sort_index" && event["pid"] == 1)
      places.emplace(event["args"]["sort_index"], event["tid"]);
  }
  const std::map<int, std::string> named = names(events, "thread_name", "tid", 1);
  ASSERT_EQ(places.size(), named.size());
  for (const auto& [place, track] : places) in_order.push_back(named.at(track));
  EXPECT_EQ(in_order.front(), "steps");
  const auto at = [&](const char* name) {
    return std::find(in_order.begin(), in_order.end(), name);
  };
  EXPECT_LT(at("cpu.feed"), at("gpu"));  // device by device
  EXPECT_LT(at("gpu"), at("gpu.in"));
}

TEST_F(TrainTraceTest, MicroBatchesOfAStepFollowEachOther) {
  TrainOptions options;
  options.overrides = {"micro_batch=8"};
  const Json cpu = run("micro", options);
  check(cpu);
  options.place = {"{ at = \"**\", on = \"gpu\" }"};
  options.devices = {"gpu=emulated:0"};
  const Json gpu = run("micro_gpu", options);
  EXPECT_THAT(marks(gpu), ElementsAre("step 3", "step 4", "step 5"));
  check(gpu);
}

TEST_F(TrainTraceTest, AnInterruptedRunLeavesWhatItHasTraced) {
  TrainOptions options;
  options.overrides = {"log.every=2 steps"};
  options.trace_first = 3;
  options.trace_last = 100;
  options.on_progress = [stop = options.stop](const Progress& progress) {
    if (progress.step >= 4) stop.request_stop();
  };
  const Json events = run("interrupted", options);
  EXPECT_THAT(marks(events), ElementsAre("step 3", "step 4"));
  check(events);
}

TEST_F(TrainTraceTest, AFailedRunLeavesWhatItHasTraced) {
  TrainOptions options;
  options.overrides = {"log.every=2 steps"};
  options.trace_first = 2;
  options.trace_last = 100;
  options.on_progress = [](const Progress& progress) {
    if (progress.step >= 4)
      throw Error(ErrorKind::runtime, Diagnostic{.message = "the display is gone"});
  };
  EXPECT_THAT(error_of([&] { run("failed", options); }, ErrorKind::runtime),
              HasSubstr("the display is gone"));
  const Json events = Json::parse(read_file(folder_ / "failed.json"))["traceEvents"];
  EXPECT_THAT(marks(events), ElementsAre("step 2", "step 3"));
  check(events);
}

// Steps do not overlap, even where the cost model predicts more time than they take.
TEST_F(TrainTraceTest, AStepBeginsBehindThePredictionOfTheLastOne) {
  const auto slice = [](double ts, double dur) {
    return nlohmann::ordered_json{{"name", "x"}, {"ph", "X"}, {"pid", 2},
                                  {"tid", 1},    {"ts", ts},  {"dur", dur}};
  };
  StepTrace trace(folder_ / "trace.json", 1, 2);
  trace.add_step(1, 10.0, 10.001, nlohmann::ordered_json::array({slice(10e6, 5000)}));
  trace.add_step(2, 10.002, 10.003, nlohmann::ordered_json::array({slice(10.002e6, 100)}));
  trace.write(/*at_end=*/false);
  const Json events = Json::parse(read_file(folder_ / "trace.json"))["traceEvents"];
  const std::vector<Json> steps = of_category(events, "step"),
                          predicted = of_category(events, "predicted step");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_DOUBLE_EQ(steps[0]["ts"], 0);
  EXPECT_DOUBLE_EQ(steps[0]["dur"], 1000);
  EXPECT_DOUBLE_EQ(predicted[0]["dur"], 5000);
  EXPECT_DOUBLE_EQ(steps[1]["ts"], 5000);  // 2000 by the clock
  EXPECT_DOUBLE_EQ(steps[1]["dur"], 1000);
  EXPECT_DOUBLE_EQ(predicted[1]["ts"], 5000);
  EXPECT_DOUBLE_EQ(predicted[1]["dur"], 100);
}

TEST_F(TrainTraceTest, ATraceChangesNoNumber) {
  run("traced", {});
  TrainOptions plain;
  plain.overrides = {"steps=8", "eval.every=100 epochs"};
  plain.run_dir = folder_ / "plain";
  Trainer(source_folder() + "/models/digits/train.toml", plain).run();
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

// With a full disk or a missing folder the run continues, since it is worth more than its trace.
TEST_F(TrainTraceTest, ATraceThatCannotBeWrittenEndsNoRun) {
  std::filesystem::create_directory(folder_ / "traces");
  std::vector<std::string> messages;
  TrainOptions options;
  options.overrides = {"steps=8", "eval.every=100 epochs", "log.every=1 steps"};
  options.run_dir = folder_ / "run";
  options.trace_path = folder_ / "traces/trace.json";
  options.on_message = [&](const std::string& text) { messages.push_back(text); };
  options.on_progress = [&](const Progress&) { std::filesystem::remove_all(folder_ / "traces"); };
  const TrainResult result = Trainer(source_folder() + "/models/digits/train.toml", options).run();
  EXPECT_EQ(result.steps, 8u);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/summary.json"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/checkpoints/step-00000008"));
  int told = 0;
  for (const std::string& text : messages)
    told += text.starts_with("warning    the trace was not written");
  EXPECT_EQ(told, 1);
}

TEST_F(TrainTraceTest, AFileThatIsNoTraceStays) {
  write_file(folder_ / "mine.json", "{}");
  EXPECT_THAT(error_of([&] { StepTrace(folder_ / "mine.json", 0, 0); }), HasSubstr("--trace"));
  EXPECT_EQ(read_file(folder_ / "mine.json"), "{}");
}

}  // namespace
}  // namespace tandem::api
