// The memory and crossings that a training prints before its first step equal those of `policy
// plan`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "tandem/tandem.h"
#include "tests/api/digits.h"

namespace tandem::api {
namespace {

using tandem::testing::digits;
using ::testing::HasSubstr;
using Keys = std::vector<std::string>;

/// The sizes in the first line that begins with `start`.
std::multiset<std::string> sizes_in(const std::string& text, const std::string& start) {
  std::multiset<std::string> sizes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(start)) continue;
    const std::regex size("[0-9.]+ (B|KiB|MiB)");
    for (std::sregex_iterator at(line.begin(), line.end(), size), end; at != end; ++at)
      sizes.insert(at->str());
    return sizes;
  }
  return sizes;
}

/// Steps of several micro-batches, evaluations of another size, and parameters that thaw.
class RunMemory : public ::testing::TestWithParam<Keys> {};

TEST_P(RunMemory, IsThatOfThePlan) {
  TrainOptions train;
  train.overrides = GetParam();
  train.place = {"{ at = \"**\", on = \"gpu\" }", "{ at = \"fc1*\", on = \"cpu\" }"};
  train.devices = {"gpu=emulated:0,memory=64MiB"};
  train.dry_run = true;
  PolicyOptions options;
  options.config = digits + "train.toml";
  options.overrides = train.overrides;
  options.place = train.place;
  options.devices = train.devices;
  const std::string printed = Trainer(digits + "train.toml", train).summary();
  const Plan plan = policy_plan(options);
  const std::string& planned = plan.text;
  for (const std::string device : {"cpu", "gpu"}) {
    std::multiset<std::string> told = sizes_in(printed, "memory     " + device + ":");
    std::multiset<std::string> expected = sizes_in(planned, "  " + device + " ");
    ASSERT_GE(told.size(), 6u) << printed;
    if (device == "gpu") expected.erase(expected.find("64.0 MiB"));  // its limit
    EXPECT_EQ(told, expected) << device << "\n" << printed << planned;
  }
  // "copies      13 a step, 727680 bytes (710.6 KiB)"
  std::smatch copies;
  ASSERT_TRUE(
      std::regex_search(planned, copies, std::regex("copies +([0-9]+) a step, .*\\((.*?)\\)")))
      << planned;
  EXPECT_THAT(printed,
              HasSubstr(" | " + copies[1].str() + " crossings, " + copies[2].str() + "/step | "));
}

INSTANTIATE_TEST_SUITE_P(
    All, RunMemory,
    ::testing::Values(Keys{"policy="}, Keys{"policy=", "micro_batch=8"},
                      Keys{"policy=", "batch_size=30", "micro_batch=10"},
                      Keys{"policy=", "parameters.freeze=[{at=\"conv1*\", until=\"1 epoch\"}]"}));

}  // namespace
}  // namespace tandem::api
