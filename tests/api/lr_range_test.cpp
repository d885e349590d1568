// The learning-rate range test: its results for given losses (NumPy's numbers), and a sweep of a
// network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "api/commands/tune/range_test.h"
#include "api/program/tune.h"
#include "tests/api/error_of.h"
#include "tests/api/trained_runs.h"
#include "tests/harness/folders.h"
#include "tests/harness/program.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using namespace tandem::testing;
using ::testing::HasSubstr;
using Json = nlohmann::json;

TEST(RangeTest, SaysWhatNumpySays) {
  const Json cases = Json::parse(read_file(source_folder() + "/tests/data/lr_range.json"));
  ASSERT_EQ(cases.size(), 4u);
  int divergences = 0;
  for (const Json& one : cases) {
    SCOPED_TRACE(one["name"].get<std::string>());
    RangeTest test;
    for (std::size_t i = 0; i < one["rates"].size(); ++i) {
      if (!test.add(one["rates"][i].get<double>(), one["losses"][i].get<double>())) break;
    }
    ASSERT_EQ(test.points().size(), one["points"].get<std::size_t>());
    EXPECT_NEAR(test.points().back().smoothed, one["last_mean"].get<double>(), 1e-9);
    if (one["steepest"].is_null())
      EXPECT_TRUE(std::isnan(test.steepest()));
    else
      EXPECT_DOUBLE_EQ(test.steepest(), one["steepest"].get<double>());
    if (one["diverged"].is_null())
      EXPECT_TRUE(std::isnan(test.diverged()));
    else
      EXPECT_DOUBLE_EQ(test.diverged(), one["diverged"].get<double>());
    divergences += one["diverged"].is_null() ? 0 : 1;
    EXPECT_EQ(lines_of(to_csv(test)).size(), test.points().size() + 1);
    EXPECT_THAT(to_picture(test), HasSubstr("<polyline"));
  }
  EXPECT_GE(divergences, 2);
}

TEST(RangeTest, ALossThatIsNoNumberEndsIt) {
  RangeTest test;
  EXPECT_TRUE(test.add(1e-3, 1.0));
  EXPECT_FALSE(test.add(1e-2, std::nan("")));
  EXPECT_EQ(test.diverged(), 1e-2);
  EXPECT_THAT(to_csv(test), HasSubstr("nan"));
  EXPECT_THAT(to_picture(test), HasSubstr("</svg>"));
}

class LrRangeTest : public ::testing::Test {
 protected:
  LrRangeTest() {
    write_digits(folder_);
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
      before_.insert(entry.path().string());
    options_.folder = folder_ / "out";
    options_.from = 1e-5;
    options_.to = 1e4;
  }
  TemporaryFolder folder_;
  const std::string config_ = folder_ / "train.toml";
  std::set<std::string> before_;
  LrRangeOptions options_;
};

TEST_F(LrRangeTest, RatesRiseUntilTheLossDiverges) {
  std::vector<double> rates;
  options_.on_progress = [&](const Progress& p) { rates.push_back(p.values.at(1).second); };
  const LrRangeReport report = lr_range(config_, options_);
  ASSERT_GE(rates.size(), 10u);
  EXPECT_DOUBLE_EQ(rates[0], 1e-5);
  const double factor = std::pow(1e9, 1.0 / 99);
  for (std::size_t i = 1; i < rates.size(); ++i)
    EXPECT_NEAR(rates[i] / rates[i - 1], factor, 1e-6) << i;
  EXPECT_LT(rates.size(), 100u);
  EXPECT_NEAR(report.diverged, rates.back(), 1e-9 * report.diverged);
  EXPECT_GT(report.steepest, 1e-5);
  EXPECT_LT(report.steepest, report.diverged);
  EXPECT_THAT(report.text, HasSubstr("tandem train " + config_ + " optimizer.lr="));
  const Json json = Json::parse(report.json);
  EXPECT_EQ(json["points"].size(), rates.size());
  // The first loss is that of the untrained network with ten classes.
  EXPECT_NEAR(json["points"][0]["loss"].get<double>(), std::log(10.0), 0.5);
  EXPECT_EQ(lines_of(read_file(folder_ / "out/lr_range.csv")).size(), rates.size() + 1);
  EXPECT_THAT(read_file(folder_ / "out/lr_range.svg"), HasSubstr("diverged"));
  // No other file was written.
  std::set<std::string> now;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
    const std::string path = entry.path().string();
    if (!path.starts_with(options_.folder)) now.insert(path);
  }
  EXPECT_EQ(now, before_);
  EXPECT_EQ(list_directory(options_.folder).size(), 2u);
  EXPECT_EQ(lr_range(config_, options_).text, report.text) << "over its own files, the same again";
}

TEST_F(LrRangeTest, MicroBatchesHaveTheSameRates) {
  options_.steps = 10;
  options_.to = 1e-3;
  const Json whole = Json::parse(lr_range(config_, options_).json);
  options_.overrides = {"micro_batch=8"};
  const Json cut = Json::parse(lr_range(config_, options_).json);
  ASSERT_EQ(cut["points"].size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(cut["points"][i]["lr"], whole["points"][i]["lr"]);
}

TEST_F(LrRangeTest, GroupsFollowInProportion) {
  options_.overrides = {"optimizer.lr=0.01", "optimizer.groups=[{at='**', lr=0.1}]"};
  options_.steps = 10;
  options_.to = 1e-4;
  const LrRangeReport report = lr_range(config_, options_);
  EXPECT_TRUE(std::isnan(report.diverged));
  EXPECT_THAT(report.text, HasSubstr("not up to 0.0001"));
}

TEST_F(LrRangeTest, StopsWhenAsked) {
  options_.on_progress = [&](const Progress& p) {
    if (p.step == 4) options_.stop.request_stop();
  };
  const LrRangeReport report = lr_range(config_, options_);
  EXPECT_TRUE(report.interrupted);
  EXPECT_EQ(Json::parse(report.json)["points"].size(), 4u);
}

TEST_F(LrRangeTest, MistakesAreRefused) {
  const LrRangeOptions good = options_;
  const auto with = [&](const auto& change) {
    options_ = good;
    change();
    return error_of([&] { lr_range(config_, options_); });
  };
  for (const auto& [from, to] : std::vector<std::pair<double, double>>{
           {0, 1}, {-1, 1}, {1, 1}, {2, 1}, {1, INFINITY}, {NAN, 1}}) {
    EXPECT_THAT(with([&] {
                  options_.from = from;
                  options_.to = to;
                }),
                HasSubstr("not a range of learning rates"));
  }
  EXPECT_THAT(with([&] { options_.steps = 1; }), HasSubstr("--lr-steps: out of range"));
  write_file(folder_ / "file", "text");
  EXPECT_THAT(with([&] { options_.folder = folder_ / "file"; }), HasSubstr("this is a file"));
  fs::create_directory(good.folder);
  write_file(good.folder + "/lr_range.csv", "the user's");
  EXPECT_THAT(with([] {}), HasSubstr("another file of this name"));
  EXPECT_EQ(read_file(good.folder + "/lr_range.csv"), "the user's");
}

TEST_F(LrRangeTest, TheCommandLineTakesARange) {
  const Ended ended =
      run_program("train " + config_ + " --lr-range 1e-4,1 --lr-steps 10 --run-dir " +
                  options_.folder + " 2>/dev/null");
  EXPECT_EQ(ended.code, 0) << ended.text;
  EXPECT_THAT(ended.text, HasSubstr("of 10, rates 0.0001 to"));
  const Ended bad = run_program("train " + config_ + " --lr-range one 2>&1");
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.text, HasSubstr("not a range of learning rates"));
  EXPECT_EQ(run_program("train " + config_ + " --resume --lr-range 2>&1").code, 2);
}

}  // namespace
}  // namespace tandem::api
