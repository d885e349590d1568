// Plans of runs in which parameters thaw: policy plan and a dry run predict what the run will need.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tandem/tandem.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::digits;
using ::testing::HasSubstr;
using PlanJson = nlohmann::json;

class FreezePlans : public ::testing::Test {
 protected:
  FreezePlans() {
    std::ofstream(folder_ / "gpu.toml")
        << "policy = 1\nrules = [ { at = \"**\", on = \"gpu\" } ]\n";
  }
  std::vector<std::string> keys(const std::string& rules) const {
    return {"policy=" + folder_ / "gpu.toml", "steps=3", "checkpoint.every=\"9 steps\"",
            "parameters.freeze=" + rules};
  }
  Plan plan(const std::string& rules, const std::string& memory = "") const {
    PolicyOptions options;
    options.config = digits + "train.toml";
    options.overrides = keys(rules);
    options.policy = folder_ / "gpu.toml";
    options.devices = {"gpu=emulated:0" + memory};
    return policy_plan(options);
  }
  std::size_t peak(const std::string& rules) const {
    return PlanJson::parse(plan(rules).json)["devices"]["gpu"]["peak"];
  }
  /// The outcome of a run with this many bytes of memory.
  std::string trained(const std::string& rules, std::size_t bytes, bool dry) const {
    TrainOptions options;
    options.overrides = keys(rules);
    options.devices = {"gpu=emulated:0,memory=" + std::to_string(bytes) + "B"};
    options.run_dir = folder_ / ("run" + std::to_string(bytes) + (dry ? "dry" : ""));
    options.dry_run = dry;
    return tandem::testing::error_of([&] { Trainer(digits + "train.toml", options).run(); },
                                     ErrorKind::does_not_fit);
  }

  tandem::testing::TemporaryFolder folder_;
};

TEST_F(FreezePlans, APlanHoldsEveryPhase) {
  const std::string layer = "[{ at = \"fc1.**\" }]";
  const std::string later = "[{ at = \"fc1.**\", until = \"1 step\" }]";
  const std::string from = "[{ at = \"fc1.**\", from = \"2 steps\" }]";
  const std::size_t frozen = peak(layer), thawing = peak(later), whole = peak("[]");
  EXPECT_GT(thawing, frozen);
  EXPECT_GE(thawing, whole);
  EXPECT_GE(peak(from), whole);
  // This much is enough for the run, and a little less is refused before its first step.
  EXPECT_TRUE(plan(later, ",memory=" + std::to_string(thawing) + "B").fits);
  EXPECT_EQ(trained(later, thawing, false), "no error");
  EXPECT_FALSE(plan(later, ",memory=" + std::to_string(thawing - 64) + "B").fits);
  EXPECT_THAT(trained(later, thawing - 64, true), HasSubstr("does not fit into gpu"));
}

}  // namespace
}  // namespace tandem::api
