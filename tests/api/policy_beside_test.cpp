// Times that policy commands print: of placements that are compared with the one found, and of
// explained ones. Each equals that of `policy plan` for the placement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tandem/tandem.h"
#include "tests/api/placed_networks.h"

namespace tandem::api {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class PolicyBesideTest : public testing::PlacedNetworks {
 protected:
  void write_policy(const std::string& name, const std::string& rule) const {
    write(name, "policy = 1\nrules = [ " + rule + " ]\n");
  }
  Json step_ms(PolicyOptions options, const std::string& policy) const {
    options.policy = folder_ / policy;
    return Json::parse(policy_plan(options).json)["time"]["step_ms"];
  }
};

class PolicyBesideOf : public PolicyBesideTest,
                       public ::testing::WithParamInterface<const char*> {};

// This holds even where rules of the file place everything.
TEST_P(PolicyBesideOf, PlacementsAreWhatTheyAreCalled) {
  const std::pair<const char*, const char*> alone[] = {
      {"all on cpu", R"({ at = "**", on = "cpu" })"},
      {"all on gpu", R"({ at = "**", on = "gpu" })"},
      {"optimizer state on cpu, else gpu", R"({ at = "**", on = "gpu", state = "cpu" })"},
      {"weights on cpu, computed with on gpu",
       R"({ at = "**", on = "gpu", param = "cpu", state = "cpu" })"}};
  for (const char* rule : {"", R"({ at = "**", on = "gpu" })", R"({ at = "**", on = "cpu" })"}) {
    SCOPED_TRACE(rule);
    write_policy("policy.toml", rule);
    const PolicyOptions with = options(GetParam(), "policy.toml");
    PolicyAutoOptions automatic;
    automatic.most_plans = 20;
    automatic.to = folder_ / "found.toml";
    std::filesystem::remove(automatic.to);
    const Json report = Json::parse(policy_auto(with, automatic).json);
    EXPECT_EQ(report["before"]["step_ms"], step_ms(with, "policy.toml"));
    for (const auto& [name, only] : alone) {
      write_policy("alone.toml", only);
      const Json time = step_ms(with, "alone.toml");
      bool any = false;
      for (const Json& beside : report["baselines"]) {
        if (beside["name"] != name) continue;
        EXPECT_EQ(beside["step_ms"], time) << name;
        any = true;
      }
      EXPECT_TRUE(any) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, PolicyBesideOf, ::testing::Values("mlp", "lenet5"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(PolicyBesideTest, SaysThatNothingFasterWasFound) {
  write_policy("best.toml", "");
  const PolicyOptions with = options("mlp", "best.toml");
  policy_auto(with, {});
  const Report again = policy_auto(with, {});
  EXPECT_THAT(again.text, HasSubstr("nothing faster was found among "));
  EXPECT_TRUE(Json::parse(again.json)["nothing_faster"]);
}

// Rules that leave nothing to search may exclude a faster placement.
TEST_F(PolicyBesideTest, TellsWhatRulesOfTheFileRuleOut) {
  write_policy("slow.toml", R"({ at = "**", on = "cpu" })");
  const Report report = policy_auto(options("lenet5", "slow.toml"), {});
  EXPECT_THAT(report.text, HasSubstr("faster    without these rules: "));
}

TEST_F(PolicyBesideTest, ExplainTellsWhatItCosts) {
  write_policy("all.toml", R"({ at = "**", on = "gpu", state = "cpu" })");
  const PolicyOptions with = options("mlp", "all.toml");
  const Report report = policy_explain(with, "**");
  EXPECT_THAT(report.text, HasSubstr("\n  cost       "));
  const Json cost = Json::parse(report.json)["cost"];
  EXPECT_EQ(cost["step_ms"], step_ms(with, "all.toml"));
  EXPECT_GT(cost["forward_ms"].get<double>(), 0);
  EXPECT_GT(cost["backward_ms"].get<double>(), 0);
  EXPECT_GT(cost["update_ms"].get<double>(), 0);
  EXPECT_GT(cost["copied_bytes"].get<std::int64_t>(), 0) << "gradients and weights cross";
}

}  // namespace
}  // namespace tandem::api
