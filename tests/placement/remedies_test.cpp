// Remedies for a plan that does not fit: which rules are tried, which are reported, in what order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "engine/graph/error.h"
#include "placement/report/plan.h"
#include "placement/report/remedies.h"
#include "tests/placement/support.h"

namespace tandem::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* state = R"({ at = "**", state = "cpu" })";
constexpr const char* weights = R"({ at = "**", param = "cpu", state = "cpu" })";
constexpr const char* recompute = R"({ at = "**", acts = "recompute" })";
constexpr const char* offload = R"({ at = "**", acts = "offload" })";
constexpr const char* state_recompute = R"({ at = "**", state = "cpu", acts = "recompute" })";
constexpr const char* host = R"({ at = "**", on = "cpu" })";
constexpr const char* table = R"({ at = "embed.**", on = "cpu" })";
constexpr std::size_t limit = 1000;

TriedPlan of_gpu(std::size_t bytes) {
  return {.peaks = {{"cpu", 50, true}, {"gpu", bytes, bytes <= limit}}, .seconds = 1e-3};
}

struct Tried {
  std::vector<std::string> rules;  // the rules that were tried
  std::vector<Remedy> remedies;
};

/// `peaks`: the gpu's with a rule; rules without one are not possible. It is 1500 without any rule.
Tried remedies_of(const std::map<std::string, std::size_t>& peaks) {
  Tried tried;
  const ResolvedPolicy resolved = resolve_text("rules = [ { at = \"**\", on = \"gpu\" } ]\n");
  tried.remedies = find_remedies(resolved, of_gpu(1500), [&](const PolicyRule& rule) {
    tried.rules.push_back(to_toml(rule));
    const auto known = peaks.find(tried.rules.back());
    if (known == peaks.end()) throw Error(ErrorKind::usage, Diagnostic{.message = "no kernel"});
    return of_gpu(known->second);
  });
  return tried;
}

std::vector<std::string> rules_of(const std::vector<Remedy>& remedies) {
  std::vector<std::string> rules;
  for (const Remedy& remedy : remedies) rules.push_back(to_toml(remedy.rule));
  return rules;
}

TEST(Remedies, ThoseThatFitComeFirstThenThoseThatFreeMost) {
  const Tried tried = remedies_of(
      {{state, 1200}, {weights, 900}, {recompute, 1000}, {offload, 1400}, {table, 1100}});
  EXPECT_THAT(rules_of(tried.remedies), ElementsAre(weights, recompute, table, state, offload));
  EXPECT_THAT(tried.rules, ElementsAre(state, weights, recompute, offload, host, table));
  EXPECT_EQ(tried.remedies[0].bytes, 600u);
  EXPECT_TRUE(tried.remedies[1].suffices) << "to the byte";
  EXPECT_FALSE(tried.remedies[2].suffices);
}

// The fastest one that fits comes first; one that takes more than twice as long is no remedy, and
// neither is one that does not even fit.
TEST(Remedies, TheFastestComesFirstAndMuchSlowerOnesAreLeftOut) {
  const ResolvedPolicy resolved = resolve_text("rules = [ { at = \"**\", on = \"gpu\" } ]\n");
  const std::map<std::string, std::pair<std::size_t, double>> plans{
      {state, {900, 3e-3}},    {weights, {100, 20e-3}}, {recompute, {990, 1.8e-3}},
      {offload, {1200, 5e-3}}, {host, {0, 1.6e-3}},     {table, {1100, 1.7e-3}}};
  const std::vector<Remedy> remedies =
      find_remedies(resolved, of_gpu(1500), [&](const PolicyRule& rule) {
        const auto known = plans.find(to_toml(rule));
        if (known == plans.end()) throw Error(ErrorKind::usage, Diagnostic{.message = "no kernel"});
        TriedPlan plan = of_gpu(known->second.first);
        plan.seconds = known->second.second;
        return plan;
      });
  EXPECT_THAT(rules_of(remedies), ElementsAre(host, recompute, state));
}

TEST(Remedies, TwoTogetherAreTriedWhereNoneIsEnough) {
  const Tried tried = remedies_of({{state, 1200}, {recompute, 1300}, {state_recompute, 990}});
  EXPECT_THAT(rules_of(tried.remedies), ElementsAre(state_recompute, state, recompute));
  EXPECT_TRUE(tried.remedies[0].suffices);
}

TEST(Remedies, RulesThatFreeNothingMoreAreLeftOut) {
  // The weights are on the host already, and so are activations.
  const Tried tried = remedies_of({{state, 1200},
                                   {weights, 1200},
                                   {recompute, 1500},
                                   {offload, 1600},
                                   {state_recompute, 1200}});
  EXPECT_THAT(rules_of(tried.remedies), ElementsAre(state));
  EXPECT_THAT(remedies_of({}).remedies, IsEmpty());
}

TEST(Remedies, TheTextSaysWhichIsEnough) {
  EXPECT_EQ(remedies_text({}), "");
  EXPECT_EQ(
      remedies_text(remedies_data(
          {{rule_on("a.**", "cpu"), 2048, true, 1.5e-3}, {rule_on("b", "cpu"), 512, false, 2e-3}})),
      "remedies    add one of these after the policy's rules:\n"
      "  { at = \"a.**\", on = \"cpu\" }  frees 2.0 KiB, fits; 1.500 ms a step\n"
      "  { at = \"b\", on = \"cpu\" }     frees 512 B, not enough by itself; 2.000 ms a step\n");
}

}  // namespace
}  // namespace tandem::testing
