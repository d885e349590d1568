// Searches: drawn settings, trials that fail or are interrupted, halving, and errors before
// anything runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "api/commands/tune/search_space.h"
#include "api/program/tune.h"
#include "tests/api/error_of.h"
#include "tests/api/trained_runs.h"
#include "tests/harness/program.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

TEST(SearchSpace, DrawsWithinRangesAndTheSameAgain) {
  const SearchSpace space({"optimizer.lr=log(1e-5, 1e-1)", "batch_size=uniform(8,16)",
                           "optimizer.kind=[sgd, \"adam\"]"});
  const std::vector<TrialSettings> trials = space.trials(7, 400);
  ASSERT_EQ(trials.size(), 400u);
  EXPECT_EQ(space.trials(7, 20), std::vector<TrialSettings>(trials.begin(), trials.begin() + 20));
  EXPECT_NE(space.trials(8, 20), space.trials(7, 20));
  std::set<std::string> sizes, kinds;
  int below = 0;  // below the middle of the range's logarithm
  for (const TrialSettings& settings : trials) {
    const double lr = std::stod(settings[0].second);
    EXPECT_GE(lr, 1e-5);
    EXPECT_LE(lr, 1e-1);
    below += lr < 1e-3 ? 1 : 0;
    sizes.insert(settings[1].second);
    kinds.insert(settings[2].second);
  }
  EXPECT_NEAR(below, 200, 50);  // five deviations of 10
  EXPECT_EQ(sizes.size(), 9u) << "both ends";
  EXPECT_EQ(kinds, (std::set<std::string>{"sgd", "\"adam\""}));
  EXPECT_EQ(overrides_of({{"a.b", "1"}, {"c", "[2]"}}),
            (std::vector<std::string>{"a.b=1", "c=[2]"}));
}

TEST(SearchSpace, NoTwoTrialsAreAlike) {
  const SearchSpace space({"batch_size=[8,16,32]", "optimizer.kind=[sgd,adam]"});
  const std::vector<TrialSettings> trials = space.trials(0, 50);
  EXPECT_EQ(trials.size(), 6u);
  EXPECT_EQ(std::set<TrialSettings>(trials.begin(), trials.end()).size(), 6u);
  const SearchSpace lists({"eval.metrics=[[\"auc\", \"log_loss\"], [\"accuracy\"]]"});
  EXPECT_EQ(lists.keys()[0].choices.size(), 2u);
}

std::string space_error(const std::string& over) {
  return error_of([&] { SearchSpace({over}); });
}

TEST(SearchSpace, RangesThatAreNoneAreRefused) {
  EXPECT_THAT(space_error("optimizer.lrr=log(1e-5,1)"), HasSubstr("optimizer.lr"));
  EXPECT_THAT(space_error("optimizer.lr=log(-1,1)"), HasSubstr("above 0"));
  EXPECT_THAT(space_error("optimizer.lr=log(0,1)"), HasSubstr("above 0"));
  for (const char* range : {"uniform(2,1)", "uniform(1,1)"})
    EXPECT_THAT(space_error(std::string("optimizer.lr=") + range), HasSubstr("empty range"));
  for (const char* range : {"uniform(1)", "uniform(a,b)", "uniform(nan,1)", "uniform(0,inf)",
                            "uniform(1,2,3)", "log()", "uniform(1e400,2)"})
    EXPECT_THAT(space_error(std::string("optimizer.lr=") + range), HasSubstr("two finite numbers"))
        << range;
  EXPECT_THAT(space_error("batch_size=uniform(1.5,4)"), HasSubstr("whole numbers"));
  EXPECT_THAT(space_error("optimizer.kind=uniform(1,4)"), HasSubstr("takes no numbers"));
  EXPECT_THAT(space_error("optimizer.lr=0.1"), HasSubstr("a single value is given among the keys"));
  EXPECT_THAT(space_error("optimizer.lr"), HasSubstr("not a key"));
  EXPECT_THAT(space_error("=log(1,2)"), HasSubstr("not a key"));
  EXPECT_THAT(space_error("optimizer.kind=[sgd,,adam]"), HasSubstr("empty value"));
  EXPECT_THAT(space_error("optimizer.kind=[sgd,sgd]"), HasSubstr("twice"));
  EXPECT_THAT(space_error("optimizer.kind=['sgd]"), HasSubstr("quotes"));
  EXPECT_THAT(space_error("run_dir=[a,b]"), HasSubstr("sets this key itself"));
  EXPECT_THAT(error_of([] { SearchSpace({}); }), HasSubstr("nothing varies"));
  EXPECT_THAT(error_of([] {
                SearchSpace({"optimizer.lr=log(1,2)", "optimizer.lr=[1]", "seed=uniform(3,1)"});
              }),
              AllOf(HasSubstr("is given twice"), HasSubstr("empty range")));  // both at once
}

class TuneTest : public ::testing::Test {
 protected:
  TuneTest() {
    write_digits(folder_);
    options_.to = folder_ / "search";
    options_.overrides = {"steps=8"};
    options_.over = {"optimizer.lr=[1e-3,3e-3,1e-2,1e30]"};  // the last one diverges
    options_.trials = 4;
    options_.on_message = [this](const std::string& text) { said_.push_back(text); };
  }
  TuneReport run() {
    said_.clear();
    return tune(config_, options_);
  }
  std::string refusal() {
    return error_of([&] { run(); });
  }
  Json results() const { return Json::parse(read_file(options_.to + "/tune.json")); }
  int begun() const {
    int count = 0;
    for (const std::string& text : said_) {
      const std::size_t gap = std::min(text.find("  "), text.size());
      count += text.starts_with("trial ") && text.substr(gap).starts_with("  optimizer.lr=");
    }
    return count;
  }

  TemporaryFolder folder_;
  const std::string config_ = folder_ / "train.toml";
  TuneOptions options_;
  std::vector<std::string> said_;
};

TEST_F(TuneTest, TrialsAreRunOnceAndAFailureIsARow) {
  const TuneReport report = run();
  EXPECT_EQ(begun(), 4);
  EXPECT_EQ(report.finished, 3);
  EXPECT_EQ(report.failed, 1);
  EXPECT_FALSE(report.interrupted);
  const Json json = results();
  ASSERT_EQ(json["trials"].size(), 4u);
  double best = 1e300;
  std::string best_lr;
  int failed = 0;
  for (const Json& trial : json["trials"]) {
    if (trial["status"] == "failed") {
      ++failed;
      EXPECT_EQ(trial["settings"]["optimizer.lr"], "1e30");
      EXPECT_THAT(trial["error"].get<std::string>(), Not(IsEmpty()));
      continue;
    }
    EXPECT_EQ(trial["status"], "finished");
    EXPECT_EQ(trial["steps"], 8);
    // The run's own record of the evaluation.
    const Json summary = Json::parse(
        read_file(options_.to + "/" + trial["folder"].get<std::string>() + "/summary.json"));
    EXPECT_EQ(trial["value"], summary["eval"]["loss"]);
    if (trial["value"].get<double>() < best) {
      best = trial["value"].get<double>();
      best_lr = trial["settings"]["optimizer.lr"].get<std::string>();
    }
  }
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(report.command, "tandem train " + config_ + " steps=8 optimizer.lr=" + best_lr);
  EXPECT_TRUE(report.text.ends_with(report.command));
  EXPECT_THAT(read_file(options_.to + "/tune.svg"), HasSubstr("<svg"));
  EXPECT_EQ(lines_of(read_file(options_.to + "/tune.csv")).size(), 5u);

  const std::string before = read_file(options_.to + "/tune.json");
  const TuneReport again = run();
  EXPECT_EQ(begun(), 0) << "all are there";
  EXPECT_EQ(again.text, report.text);
  EXPECT_EQ(read_file(options_.to + "/tune.json"), before);
}

TEST_F(TuneTest, InterruptedSearchesGoOn) {
  run();
  const Json whole = results();
  options_.to = folder_ / "other";
  const StopToken stop = options_.stop;
  options_.on_message = [&](const std::string& text) {
    said_.push_back(text);
    if (text.starts_with("trial 2/4  optimizer")) stop.request_stop();
  };
  const TuneReport report = run();
  EXPECT_TRUE(report.interrupted);
  EXPECT_EQ(begun(), 2);
  options_.stop = StopToken();
  options_.on_message = [this](const std::string& text) { said_.push_back(text); };
  EXPECT_FALSE(run().interrupted);
  EXPECT_EQ(begun(), 3);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(results()["trials"][i]["value"], whole["trials"][i]["value"]) << i;
}

TEST_F(TuneTest, HalvingLetsTheBestGoOn) {
  options_.over = {"optimizer.lr=log(1e-4,1e-2)"};
  options_.halving = 2;
  const TuneReport report = run();
  EXPECT_EQ(report.failed, 0);
  std::multiset<int> steps;
  double worst_that_went_on = -1e300, best_that_did_not = 1e300;  // after the first round
  const Json all = results();
  for (const Json& trial : all["trials"]) {
    steps.insert(trial["steps"].get<int>());
    const double first = trial["values"][0].get<double>();
    EXPECT_EQ(trial["status"], trial["values"].size() == 3 ? "finished" : "stopped");
    if (trial["values"].size() > 1)
      worst_that_went_on = std::max(worst_that_went_on, first);
    else
      best_that_did_not = std::min(best_that_did_not, first);
  }
  EXPECT_EQ(steps, (std::multiset<int>{2, 2, 4, 8}));  // 8 / 4, 8 / 2, 8
  EXPECT_LT(worst_that_went_on, best_that_did_not);
  EXPECT_EQ(begun(), 4 + 2 + 1);
  run();
  EXPECT_EQ(begun(), 0);
}

TEST_F(TuneTest, MistakesAreToldBeforeAnythingRuns) {
  const TuneOptions good = options_;
  const auto with = [&](const auto& change) {
    options_ = good;
    change();
    const std::string error = refusal();
    EXPECT_EQ(begun(), 0);
    return error;
  };
  EXPECT_THAT(with([&] { options_.trials = 0; }), HasSubstr("--trials: out of range"));
  EXPECT_THAT(with([&] { options_.trials = 1'000'000'000; }), HasSubstr("1 to 10000"));
  EXPECT_THAT(with([&] { options_.halving = 1; }), HasSubstr("--halving: out of range"));
  EXPECT_THAT(with([&] { options_.over = {"optimizer.lrr=[1]"}; }), HasSubstr("optimizer.lr"));
  EXPECT_THAT(with([&] { options_.over = {"optimizer.kind=[adam,adamm]"}; }),
              HasSubstr("did you mean"));
  EXPECT_THAT(with([&] { options_.over = {"optimizer.lr=uniform(-1,1)"}; }),
              HasSubstr("out of range"));
  EXPECT_THAT(with([&] {
                options_.over = {"batch_size=[32,33]"};
                options_.overrides.push_back("micro_batch=16");
              }),
              HasSubstr("does not divide"));
  EXPECT_THAT(with([&] { options_.metric = "auc"; }), HasSubstr("not one of the metrics"));
  EXPECT_THAT(with([&] {
                options_.halving = 2;
                options_.over = {"steps=[2,4]"};
              }),
              HasSubstr("sets the length"));
  write_file(folder_ / "file", "text");
  EXPECT_THAT(with([&] { options_.to = folder_ / "file"; }), HasSubstr("this is a file"));
  EXPECT_THAT(with([&] { options_.to = folder_.path(); }), HasSubstr("holds other files"));
  options_ = good;
  EXPECT_THAT(error_of([&] { tune(folder_ / "model.onnx", options_); }),
              HasSubstr("needs a train.toml"));
  EXPECT_FALSE(fs::exists(good.to)) << "nothing was made";
}

TEST_F(TuneTest, AFolderIsOfOneSearch) {
  run();
  options_.seed = 5;
  EXPECT_THAT(refusal(), AllOf(HasSubstr("another search"), HasSubstr("--seed")));
  options_.seed = 0;
  options_.overrides = {"steps=9"};
  EXPECT_THAT(refusal(), HasSubstr("the configuration is not the same"));
  options_.overrides = {"steps=8"};
  write_file(options_.to + "/tune.json", "{\"over\": [1]}");
  EXPECT_THROW(run(), Error);
}

TEST_F(TuneTest, TheCommandLineRunsASearch) {
  const Ended ended =
      run_program("tune " + config_ + " steps=2 --over 'optimizer.lr=[1e-3,1e-2]' --to " +
                  options_.to + " 2>/dev/null");
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(lines_of(ended.text).back(), HasSubstr("tandem train " + config_ + " steps=2"));
  const Ended bad = run_program("tune " + config_ + " --over optimizer.lr=[1] --trials 1e9 2>&1");
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.text, HasSubstr("--trials"));
}

}  // namespace
}  // namespace tandem::api
