// log.also and log.histograms write metrics.csv and event files next to metrics.jsonl, also in
// resumed runs.
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "engine/formats/events/event.h"
#include "engine/formats/events/record.h"
#include "engine/formats/files.h"
#include "engine/graph/builder.h"
#include "engine/logs/graph_def.h"
#include "engine/logs/metrics_file.h"
#include "engine/train/checkpoints/run_directory.h"
#include "tests/harness/folders.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::Trained;

class LogsTest : public testing::TrainingRun {
 protected:
  void SetUp() override { eval_ = testing::small_data(9, 4); }

  /// Every event of a run's files: "STEP TAG" for its first value, or what else it is.
  static std::vector<std::string> events_of(const std::string& run_dir) {
    std::vector<std::string> events;
    for (const std::string& name : list_directory(run_dir + "/tensorboard")) {
      const std::string text = read_file(run_dir + "/tensorboard/" + name);
      TfRecords records(text);
      while (const auto record = records.next()) {
        const EventFacts facts = facts_of_event(*record);
        std::string what = facts.is_start ? "start" : facts.tag;
        if (record->find("brain.Event:2") != std::string_view::npos) what = "version";
        if (what.empty() && record->find("_output_shapes") != std::string_view::npos)
          what = "graph";
        events.push_back(std::to_string(facts.step) + " " + what);
      }
      EXPECT_EQ(records.offset(), text.size()) << name;
    }
    return events;
  }
  static std::vector<std::string> csv_of(const std::string& run_dir) {
    return testing::lines_of(run_dir + "/metrics.csv");
  }
  /// Steps and phases of a csv file.
  static std::vector<std::string> rows_of(const std::string& run_dir) {
    std::vector<std::string> rows = csv_of(run_dir);
    for (std::string& row : rows) row = row.substr(0, row.find(',', row.find(',') + 1));
    return rows;
  }
};

const std::vector<std::string> both{"log.also=['csv','tensorboard']", "steps=4",
                                    "eval.every='2 steps'"};

std::vector<std::string> with(std::vector<std::string> keys, const std::vector<std::string>& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

TEST_F(LogsTest, WithoutTheKeyNothingIsWritten) {
  const Trained run = this->run({"steps=2"});
  EXPECT_FALSE(path_exists(run.result.run_dir + "/metrics.csv"));
  EXPECT_FALSE(path_exists(run.result.run_dir + "/tensorboard"));
}

TEST_F(LogsTest, TheTableHasARowForEachLine) {
  const Trained run = this->run(both);
  const std::string dir = run.result.run_dir;
  EXPECT_THAT(rows_of(dir), ElementsAre("step,phase", "1,train", "2,train", "2,eval", "3,train",
                                        "4,train", "4,eval"));
  const std::vector<std::string> lines = csv_of(dir);
  EXPECT_THAT(lines[0], StartsWith("step,phase,loss,lr,wall"));
  const std::string loss = lines[1].substr(8, lines[1].find(',', 8) - 8);
  EXPECT_EQ(std::stod(loss), testing::metrics_of(dir)[0]["loss"].get<double>());
  for (const std::string& line : lines)
    EXPECT_EQ(std::count(line.begin(), line.end(), ','),
              std::count(lines[0].begin(), lines[0].end(), ','));
}

TEST_F(LogsTest, AColumnThatComesLaterWidensTheTable) {
  const std::string dir = folder_ / "run";
  RunDirectory directory = RunDirectory::create(dir, "", "");
  directory.log_also({"csv"}, 0);
  directory.log_metrics(1, "", {{"loss", 0.5}});
  EXPECT_THAT(csv_of(dir), ElementsAre("step,phase,loss", "1,train,0.5"));
  directory.log_metrics(1, "eval", {{"loss", 0.25}, {"a,\"b\"", std::nan("")}},
                        {{"f1", {"cat", "dog"}, {0.5, 1}}, {"confusion", {"0"}, {3}, true}});
  directory.log_metrics(2, "", {{"loss", 1e-9}});
  EXPECT_THAT(csv_of(dir),
              ElementsAre("step,phase,loss,\"a,\"\"b\"\"\",f1.cat,f1.dog", "1,train,0.5,,,",
                          "1,eval,0.25,nan,0.5,1", "2,train,1e-09,,,"));
}

TEST_F(LogsTest, EventsFollowTheLines) {
  const std::string dir = run(both).result.run_dir;
  EXPECT_THAT(list_directory(dir + "/tensorboard"), ElementsAre("events.out.tfevents.0001.tandem"));
  EXPECT_THAT(events_of(dir),
              ElementsAre("0 version", "1 start", "0 graph", "1 train/loss", "2 train/loss",
                          "2 eval/loss", "3 train/loss", "4 train/loss", "4 eval/loss"));
}

TEST_F(LogsTest, HistogramsComeWithCheckpointsOrWhenTheyAreAskedFor) {
  const std::vector<std::string> keys =
      with(both, {"log.histograms=['fc1:*']", "checkpoint.every='3 steps'"});
  const auto histograms = [&](const Trained& run) {
    std::vector<std::string> found;
    for (const std::string& event : events_of(run.result.run_dir)) {
      if (event.find("weights/") != std::string::npos) found.push_back(event);
    }
    return found;
  };
  EXPECT_THAT(histograms(run(keys)), ElementsAre("3 weights/fc1:weight", "3 weights/fc1:bias",
                                                 "4 weights/fc1:weight", "4 weights/fc1:bias"));
  EXPECT_THAT(histograms(run(with(keys, {"log.histograms_every='2 steps'"}))),
              ElementsAre("2 weights/fc1:weight", "2 weights/fc1:bias", "4 weights/fc1:weight",
                          "4 weights/fc1:bias"));
}

TEST_F(LogsTest, TheHistogramIsOfTheParameterAfterTheStep) {
  Trained run = this->run(with(both, {"log.histograms=['fc2:weight']"}));
  Histogram expected;
  expected.add(run.training->states().read("fc2.weight").as<float>());
  const std::string text =
      read_file(run.result.run_dir + "/tensorboard/events.out.tfevents.0001.tandem");
  TfRecords records(text);
  std::string last;
  while (const auto record = records.next()) {
    if (facts_of_event(*record).tag == "weights/fc2:weight") last = *record;
  }
  ASSERT_FALSE(last.empty());
  // Except for the time, which is its first field: a byte and 8 more.
  EXPECT_EQ(last.substr(9), histogram_event({0, 4}, "weights/fc2:weight", expected).substr(9));
}

TEST_F(LogsTest, ASelectorThatMatchesNoParameterIsAnError) {
  EXPECT_THAT(testing::error_text([&] { run(with(both, {"log.histograms=['fc9:weight']"})); }),
              HasSubstr("\"fc9:weight\" matches no parameter"));
}

TEST_F(LogsTest, KeysThatDoNotFitAreRefused) {
  const auto refusal = [&](const std::vector<std::string>& keys) {
    return testing::error_text([&] { testing::small_config(folder_.path(), keys); });
  };
  EXPECT_THAT(refusal({"log.also=['csv','exel']"}), HasSubstr("unknown value"));
  EXPECT_THAT(refusal({"log.also=['csv','csv']"}), HasSubstr("named twice"));
  EXPECT_THAT(refusal({"log.also=['csv']", "log.histograms=['a']"}),
              HasSubstr("no format of `log.also` can hold histograms"));
  EXPECT_THAT(refusal({"log.also=['tensorboard']", "log.histograms_every='2 steps'"}),
              HasSubstr("needs `log.histograms`"));
  EXPECT_THAT(
      refusal({"log.also=['tensorboard']", "log.histograms=['a']", "log.histograms_every='2 min'"}),
      HasSubstr("a time"));
}

TEST_F(LogsTest, ARunThatGoesOnDoublesNothing) {
  const std::vector<std::string> keys =
      with(both, {"checkpoint.every='2 steps'", "steps=6", "log.histograms=['fc1:bias']"});
  const Trained whole = run(keys);
  const Trained first = run(with(keys, {"steps=4"}));
  const std::string dir = first.result.run_dir;
  // As a run that was killed in step 4: the checkpoint of step 2 is the newest.
  std::filesystem::remove_all(dir + "/checkpoints/step-00000004");
  const Trained second = run(keys, 0, dir);
  EXPECT_EQ(rows_of(dir), rows_of(whole.result.run_dir));
  const auto counted = [&](const std::string& path) {
    std::map<std::string, int> events;
    for (const std::string& event : events_of(path)) ++events[event];
    return events;
  };
  std::map<std::string, int> events = counted(dir);
  EXPECT_EQ(events["0 version"], 2);
  EXPECT_EQ(events["3 start"], 1);
  events.erase("3 start");
  events["0 version"] = 1;
  EXPECT_EQ(events, counted(whole.result.run_dir));
}

TEST_F(LogsTest, ATornRecordIsCutOff) {
  const Trained first = run(with(both, {"checkpoint.every='2 steps'"}));
  const std::string dir = first.result.run_dir;
  std::ofstream(dir + "/tensorboard/events.out.tfevents.0001.tandem", std::ios::app)
      << tf_record("torn").substr(0, 13);
  const Trained second = run(with(both, {"steps=5"}), 0, dir);
  EXPECT_THAT(events_of(dir), ::testing::Contains("5 train/loss"));  // and no file has leftovers
}

TEST_F(LogsTest, AFormatThatComesLaterHasWhatItCan) {
  const Trained first = run({"steps=2", "checkpoint.every='2 steps'"});
  const std::string dir = first.result.run_dir;
  run(both, 0, dir);
  EXPECT_THAT(rows_of(dir), ElementsAre("step,phase", "1,train", "2,train", "2,eval", "3,train",
                                        "4,train", "4,eval"));  // from metrics.jsonl
  EXPECT_THAT(events_of(dir), ElementsAre("0 version", "3 start", "0 graph", "3 train/loss",
                                          "4 train/loss", "4 eval/loss"));
}

/// Takes its time for each sample.
class SlowSource final : public DataSource {
 public:
  explicit SlowSource(std::shared_ptr<const DataSource> whole) : whole_(std::move(whole)) {}

  const std::vector<DataField>& fields() const override { return whole_->fields(); }
  std::int64_t samples() const override { return whole_->samples(); }
  void fill(int field, std::span<const std::int64_t> samples, const Augmentation* augmentation,
            void* to) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    whole_->fill(field, samples, augmentation, to);
  }
  std::string describe(int field, std::int64_t sample) const override {
    return whole_->describe(field, sample);
  }
  void check_range(int field, std::int64_t limit, const std::int64_t* ignore) const override {
    whole_->check_range(field, limit, ignore);
  }
  void check_numbers(int field, double least, double most,
                     const std::string& expected) const override {
    whole_->check_numbers(field, least, most, expected);
  }

 private:
  std::shared_ptr<const DataSource> whole_;
};

// A step of the small network takes microseconds: nearly all of the time goes to the loader.
TEST_F(LogsTest, WaitingForDataIsTold) {
  train_ = std::make_shared<SlowSource>(train_);
  const Trained slow = run({"steps=6"});
  EXPECT_GT(slow.steps.back().data_wait, 0.5);
  EXPECT_LE(slow.steps.back().data_wait, 1);
  EXPECT_EQ(slow.steps.front().data_wait, 0);  // the loader starts with the run
  for (const std::string& line : testing::lines_of(slow.result.run_dir + "/metrics.jsonl")) {
    const auto json = nlohmann::json::parse(line);
    if (!json.contains("phase")) {
      EXPECT_TRUE(json["data.wait"].is_number()) << line;
    }
  }
}

TEST_F(LogsTest, TheTimeThatIsLeftFollowsFromThePaceOfThisProcess) {
  const std::vector<std::string> keys{"steps=8", "checkpoint.every='4 steps'"};
  const auto check = [](const Trained& run, double first) {
    for (const TrainingProgress& p : run.steps) {
      const double done = static_cast<double>(p.step) - first;
      EXPECT_NEAR(p.seconds_left, p.seconds / done * (8 - static_cast<double>(p.step)),
                  0.2 * p.seconds + 1e-3);
    }
    EXPECT_EQ(run.steps.back().seconds_left, 0);
  };
  const Trained first = run(keys, 4);
  check(run(keys, 0, first.result.run_dir), static_cast<double>(first.result.steps));
  const Trained endless = run({"max_time='1 h'", "steps=2"});
  EXPECT_LE(endless.steps.front().seconds_left, 3600);
}

TEST_F(LogsTest, NormsAreToldBesideTheValues) {
  const Trained run = this->run({"steps=1", "log.norms=['fc1:weight']"});
  ASSERT_EQ(run.steps[0].norms.size(), 2u);
  EXPECT_EQ(run.steps[0].norms[0].first, "norm.gradient.fc1:weight");
  EXPECT_GT(run.steps[0].norms[0].second, 0);
}

TEST(GraphDef, IsWhatProtocolBuffersWrite) {
  const auto expected =
      nlohmann::json::parse(read_file(source_folder() + "/tests/data/tensorboard/expected.json"));
  const OperatorSet operators = all_operators();
  GraphBuilder g(operators);
  const ValueId x = g.input("x", {DType::float32, {2, 3}});
  State state;
  state.name = "weight_0";
  state.path = "blocks.0.fc:weight";
  state.start = HostTensor(TensorType{DType::float32, {3, 4}});
  const ValueId weight = g.state(std::move(state));
  g.set_scope({"blocks.0.fc.MatMul", Phase::forward, {}});
  const ValueId product = g.matmul(x, weight);
  g.set_scope({"blocks.0.act.Relu", Phase::forward, {}});
  g.output("y", g.add_node("Relu", {g.add_node("Relu", {product})}));
  std::string hex;
  for (const char c : graph_def(g.finish())) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(c));
    hex += digits;
  }
  EXPECT_EQ(hex, expected["graph"]);
}

TEST(MetricsFile, LinesThatAreNoneArePassedOver) {
  testing::TemporaryFolder folder;
  std::ofstream(folder / "metrics.jsonl")
      << "{\"step\":1,\"loss\":0.5,\"accuracy\":\"nan\",\"note\":\"x\"}\nnot "
         "JSON\n{\"loss\":1}\n[]\n"
         "{\"phase\":\"eval\",\"step\":1,\"f1\":{\"a\":1,\"b\":\"nan\"},\"confusion\":[[1,2],[3,4]]"
         ","
         "\"bad\":[[1],[2,3]]}\n{\"step\":-1}\n{\"step\":2,\"loss\":0.2";
  std::vector<LoggedLine> lines;
  EXPECT_EQ(read_metrics_file(folder / "metrics.jsonl",
                              [&](LoggedLine&& line) { lines.push_back(std::move(line)); }),
            5u);
  ASSERT_EQ(lines.size(), 2u);
  ASSERT_EQ(lines[0].values.size(), 2u);
  EXPECT_EQ(lines[0].values[0], std::make_pair(std::string("loss"), 0.5));
  EXPECT_TRUE(std::isnan(lines[0].values[1].second));
  EXPECT_EQ(lines[1].phase, "eval");
  ASSERT_EQ(lines[1].tables.size(), 2u);
  EXPECT_THAT(lines[1].tables[0].names, ElementsAre("a", "b"));
  EXPECT_TRUE(lines[1].tables[1].is_matrix);
  EXPECT_THAT(lines[1].tables[1].numbers, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(read_metrics_file(folder / "none", [](LoggedLine&&) {}), 0u);
}

TEST(MetricsFile, ClassesOfAMatrixHaveTheirWords) {
  const auto tables = [](const std::string& value) {
    return logged_line("{\"phase\":\"eval\",\"step\":1,\"confusion\":" + value + "}")->tables;
  };
  const auto words = tables(R"({"classes":["cat","dog"],"rows":[[3,1],[0,12]]})");
  ASSERT_EQ(words.size(), 1u);
  EXPECT_TRUE(words[0].is_matrix);
  EXPECT_THAT(words[0].names, ElementsAre("cat", "dog"));
  EXPECT_THAT(words[0].numbers, ElementsAre(3, 1, 0, 12));
  for (const char* broken :
       {R"({"classes":["cat"],"rows":[[3,1],[0,12]]})", R"({"rows":[[3,1],[0,12]]})",
        R"({"classes":["cat",7],"rows":[[3,1],[0,12]]})",
        R"({"classes":["cat","dog"],"rows":[7]})"})
    EXPECT_TRUE(tables(broken).empty()) << broken;
  // Classes with these names.
  EXPECT_THAT(tables(R"({"classes":0.5,"rows":1})")[0].names, ElementsAre("classes", "rows"));
}

}  // namespace
}  // namespace tandem
