// plan.json of a run: contents of memory over a step, phases, copies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using Json = nlohmann::json;

class PlanRecordTest : public ::testing::Test {
 protected:
  Json run(const TrainOptions& with) {
    TrainOptions options = with;
    options.overrides = {"steps=1"};
    options.run_dir = folder_ / "run";
    Trainer(source_folder() + "/models/digits/train.toml", options).run();
    return Json::parse(read_file(folder_ / "run/plan.json"));
  }
  /// Checks for lists of equal length, launches in order, and nothing above the peak.
  static void check(const Json& plan) {
    for (const Json& device : plan["devices"]) {
      SCOPED_TRACE(device["name"]);
      const std::vector<std::uint64_t> at = device["at"];
      EXPECT_TRUE(std::is_sorted(at.begin(), at.end()));
      EXPECT_LE(at.size(), 400u);
      if (!at.empty()) {
        EXPECT_LT(at.back(), plan["launches"].get<std::uint64_t>());
      }
      std::uint64_t highest = 0;
      for (std::size_t i = 0; i < at.size(); ++i) {
        std::uint64_t all = 0;
        for (const char* kind : {"gradients", "activations", "workspace"}) {
          ASSERT_EQ(device[kind].size(), at.size());
          all += device[kind][i].get<std::uint64_t>();
        }
        highest = std::max(highest, all);
      }
      EXPECT_LE(device["parameters"].get<std::uint64_t>() + device["state"].get<std::uint64_t>() +
                    highest,
                device["peak"].get<std::uint64_t>());
    }
  }

  tandem::testing::TemporaryFolder folder_;
};

TEST_F(PlanRecordTest, ARunOnTheHostHasItsMemoryOverAStep) {
  const Json plan = run({});
  check(plan);
  ASSERT_EQ(plan["devices"].size(), 1u);
  const Json& cpu = plan["devices"][0];
  EXPECT_GE(cpu["parameters"].get<std::uint64_t>(), 4u * 38282u);  // the model's parameters
  EXPECT_GE(cpu["state"].get<std::uint64_t>(), 8u * 38282u);       // two moments of Adam
  EXPECT_GT(cpu["at"].size(), 5u);
  std::vector<std::string> phases;
  for (const Json& phase : plan["phases"]) phases.push_back(phase["phase"]);
  EXPECT_THAT(phases, ::testing::ElementsAre("forward", "backward", "update"));
  EXPECT_TRUE(plan["copies"].empty());
}

TEST_F(PlanRecordTest, CopiesBetweenDevicesAreListedLargestFirst) {
  TrainOptions options;
  options.place = {"{ at = \"**\", on = \"gpu\" }", "{ at = \"**:*\", state = \"cpu\" }"};
  options.devices = {"gpu=emulated:0"};
  const Json plan = run(options);
  check(plan);
  EXPECT_EQ(plan["devices"].size(), 2u);
  ASSERT_GT(plan["copies"].size(), 2u);
  std::uint64_t before = ~std::uint64_t{0};
  for (const Json& copy : plan["copies"]) {
    EXPECT_LE(copy["bytes"].get<std::uint64_t>(), before);
    before = copy["bytes"];
    EXPECT_NE(copy["from"], copy["to"]);
  }
  EXPECT_EQ(plan["more_copies"], 0);
}

}  // namespace
}  // namespace tandem::api
