// Policies as values: rules to text and back, decisions as data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using Json = nlohmann::json;

const std::string digits_folder = source_folder() + "/models/digits/";

PolicyOptions digits_options() {
  PolicyOptions options;
  options.model = digits_folder + "model.onnx";
  options.bind = {{"batch", 32}};
  options.devices = {"gpu=emulated:0,memory=64MiB"};
  return options;
}

/// A rule with every member.
Rule whole_rule() {
  Rule rule;
  rule.at = "wide.**";
  rule.op = "Gather";
  rule.min = std::uint64_t{64} << 20;
  rule.after = "first";
  rule.before = "last";
  rule.run = "gpu";
  rule.param = "cpu";
  rule.state = "gpu1";
  rule.acts = Rule::Acts::recompute;
  rule.lookahead = 2;
  rule.ship = Rule::Ship::rows;
  rule.cache = {std::uint64_t{2} << 30, 0};
  rule.shard = Rule::Shard::state_and_gradient;
  rule.prefer = true;
  rule.optional = true;
  rule.why = "because";
  return rule;
}

TEST(PolicyObject, WritesRulesAsAFileHasThem) {
  const Policy policy =
      Policy::of({{.at = "**", .on = "gpu"},
                  {.at = "blocks.{0..3}.**", .state = "cpu", .acts = Rule::Acts::offload}});
  EXPECT_EQ(policy.text(),
            "policy = 1\n"
            "rules = [\n"
            "  { at = \"**\", on = \"gpu\" },\n"
            "  { at = \"blocks.{0..3}.**\", state = \"cpu\", acts = \"offload\" },\n"
            "]\n");
  EXPECT_EQ(Policy().text(), "policy = 1\n");
  EXPECT_THAT(Policy().rules(), IsEmpty());
}

TEST(PolicyObject, RulesSurviveTextAndFile) {
  std::vector<Rule> rules{whole_rule()};
  for (const Rule::Shard shard : {Rule::Shard::whole, Rule::Shard::rows, Rule::Shard::columns,
                                  Rule::Shard::state, Rule::Shard::table, Rule::Shard::heads})
    rules.push_back({.shard = shard});
  for (const Rule::Ship ship : {Rule::Ship::automatic, Rule::Ship::results})
    rules.push_back({.ship = ship});
  for (const Rule::Acts acts : {Rule::Acts::keep, Rule::Acts::offload})
    rules.push_back({.acts = acts});
  rules.push_back({.cache = Rule::Cache{0, 0.125}});
  const Policy policy = Policy::of(rules);
  EXPECT_EQ(policy.rules(), rules);
  EXPECT_EQ(Policy::parse(policy.text()).rules(), rules);
  const tandem::testing::TemporaryFolder folder;
  policy.save(folder / "policy.toml");
  const Policy read = Policy::open(folder / "policy.toml");
  EXPECT_EQ(read.rules(), rules);
  EXPECT_EQ(read.name(), folder / "policy.toml");
  EXPECT_EQ(read.text(), policy.text());
}

TEST(PolicyObject, ReadsThePolicyOfDigits) {
  const std::vector<Rule> rules = Policy::open(digits_folder + "policy.toml").rules();
  ASSERT_THAT(rules, SizeIs(4));
  EXPECT_EQ(rules[0].on, "gpu");
  EXPECT_EQ(rules[1].after, "MaxPool");
  EXPECT_EQ(rules[1].on, "cpu");
  EXPECT_EQ(rules[2].run, "cpu");
  EXPECT_FALSE(rules[2].on);
  EXPECT_EQ(rules[3].at, "conv*:*");
  EXPECT_EQ(rules[3].state, "cpu");
}

TEST(PolicyObject, AllMistakesAreOneError) {
  const auto problems = [](const auto& make) {
    try {
      make();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.diagnostics().size();
    }
    return std::size_t{0};
  };
  EXPECT_EQ(problems([] { Policy::of({{.at = "a"}, {.at = "b"}}); }), 2u);  // they set nothing
  EXPECT_EQ(problems([] {
              Policy::of({{.at = "a{", .on = "cpu"}, {.at = "b{", .on = "cpu"}});
            }),
            2u);
  EXPECT_EQ(problems([] { Policy::of({{.lookahead = 65}}); }), 1u);
  EXPECT_EQ(problems([] { Policy::open(digits_folder + "none.toml"); }), 1u);
  EXPECT_EQ(problems([] { Policy::parse("rules = 1"); }), 2u);  // the version is missing, too
}

TEST(PolicyObject, SavingReplacesNoOtherFile) {
  const tandem::testing::TemporaryFolder folder;
  std::ofstream(folder / "notes.txt") << "something else";
  EXPECT_THROW(Policy().save(folder / "notes.txt"), Error);
  Policy().save(folder / "policy.toml");
  Policy::of({{.on = "cpu"}}).save(folder / "policy.toml");
  EXPECT_THAT(Policy::open(folder / "policy.toml").rules(), SizeIs(1));
}

TEST(PolicyObject, ChecksEqualTheirJson) {
  PolicyOptions options = digits_options();
  options.policy = digits_folder + "policy.toml";
  const PolicyCheck check = policy_check(options);
  const Json json = Json::parse(check.json);
  ASSERT_EQ(json["rules"].size(), 4u);
  ASSERT_THAT(check.rules, SizeIs(4));
  for (std::size_t r = 0; r < 4; ++r) {
    const PolicyCheck::Use& use = check.rules[r];
    EXPECT_EQ(json["rules"][r]["at"], use.at);
    EXPECT_EQ(json["rules"][r]["line"], use.line);
    EXPECT_EQ(json["rules"][r]["operators"], use.matched.operators);
    EXPECT_EQ(json["rules"][r]["parameters"], use.matched.parameters);
    EXPECT_EQ(json["rules"][r]["decided"], use.decided);
  }
  EXPECT_EQ(check.rules[3].line, 10);
  EXPECT_EQ(check.rules[3].matched.parameters, 4);  // weights and biases of two convolutions
  EXPECT_EQ(check.rules[3].matched.operators, 0);
  EXPECT_EQ(json["warnings"].size(), check.problems.size());
}

TEST(PolicyObject, DecisionsNameTheirLines) {
  PolicyOptions options = digits_options();
  options.policy = digits_folder + "policy.toml";
  const Explanation explained = policy_explain(options, "conv1:weight");
  EXPECT_EQ(explained.path, "conv1:weight");
  ASSERT_THAT(explained.decisions, SizeIs(3));
  const Decision &param = explained.decisions[0], &state = explained.decisions[1];
  EXPECT_EQ(param.attribute, Attribute::param);
  EXPECT_EQ(param.value, "gpu");
  EXPECT_EQ(param.line, 7);
  EXPECT_EQ(state.attribute, Attribute::state);
  EXPECT_EQ(state.value, "cpu");
  EXPECT_EQ(state.line, 10);
  EXPECT_EQ(state.file, options.policy);
  EXPECT_EQ(state.why_not, "");
  EXPECT_EQ(explained.decisions[2].line, 0);  // the default
  const Json attributes = Json::parse(explained.json)["attributes"];
  for (const Decision& decision : explained.decisions) {
    const Json& printed = attributes[std::string(name(decision.attribute))];
    EXPECT_EQ(printed["value"], decision.value);
    EXPECT_EQ(printed["reason"], decision.reason);
  }
  EXPECT_THAT(policy_explain(options, "**").decisions, IsEmpty());
}

TEST(PolicyObject, FindReturnsWhatAutoWrites) {
  const tandem::testing::TemporaryFolder folder;
  const PolicyOptions options = digits_options();
  const Policy found = find_policy(options, {});
  PolicyAutoOptions automatic;
  automatic.to = folder / "found.toml";
  policy_auto(options, automatic);
  EXPECT_EQ(found.text(), read_file(automatic.to, 1 << 20));
  EXPECT_FALSE(found.rules().empty());
}

// Rules that are given hold, and the search fills the list `auto` before them.
TEST(PolicyObject, FindKeepsTheRulesOfAPolicyInCode) {
  PolicyOptions options = digits_options();
  const Rule pinned{.at = "fc1.**", .on = "gpu"};
  options.made = Policy::of({pinned});
  const std::vector<Rule> rules = find_policy(options, {}).rules();
  ASSERT_FALSE(rules.empty());
  EXPECT_EQ(rules.back(), pinned);
}

}  // namespace
}  // namespace tandem::api
