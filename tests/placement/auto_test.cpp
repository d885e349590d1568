// The parts of automatic placement: groups, rules that express what was chosen, the search.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/graph/builder.h"
#include "placement/auto/groups.h"
#include "placement/auto/rules.h"
#include "placement/auto/search.h"
#include "tests/placement/support.h"

namespace tandem::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> devices = {"cpu", "gpu"};

std::vector<std::string> selectors_of(const AutoGroups& groups) {
  std::vector<std::string> all;
  for (const AutoGroup& group : groups.groups) {
    std::string text;
    for (const int scope : group.scopes)
      text += (text.empty() ? "" : " ") + selector_of(groups, scope);
    all.push_back(text);
  }
  return all;
}

std::string policy_of(const AutoGroups& groups, const AutoChoices& choices) {
  std::string text = "auto = [\n";
  for (const PolicyRule& rule : auto_rules(groups, choices, 0, devices))
    text += "  " + to_toml(rule) + ",\n";
  return text + "]\n";
}

TEST(AutoGroups, AreModulesAndTheHeavyOnesSplit) {
  EXPECT_THAT(selectors_of(make_auto_groups(shared_graph(), {}, 4)),
              ElementsAre("embed.**", "layers.**", "norm.**", "head.**"));
  const AutoGroups groups = make_auto_groups(shared_graph(), {{"loss.total", ""}}, 7);
  EXPECT_THAT(selectors_of(groups), ElementsAre("embed.**", "layers.0.**", "layers.1.**",
                                                "layers.10.**", "norm.**", "head.**", "loss.**"));
  EXPECT_TRUE(groups.groups[0].looks_up);
  EXPECT_EQ(groups.groups[0].bytes, 100u * 8 * 4);
  EXPECT_EQ(groups.groups[1].operators, 3);
  EXPECT_EQ(groups.groups[1].bytes, (8u * 8 + 8) * 4);
  EXPECT_FALSE(groups.groups[4].has_parameters);  // a buffer
  EXPECT_FALSE(groups.groups[6].has_parameters);
}

TEST(AutoGroups, NeighboursShareOneWhereThereAreTooMany) {
  const AutoGroups groups = make_auto_groups(shared_graph(), {}, 2);
  EXPECT_LT(groups.groups.size(), 4u);
  EXPECT_EQ(selectors_of(groups)[0], "embed.**");  // tables are groups of their own
}

TEST(AutoRules, AreFewAndGeneralOnesComeFirst) {
  const AutoGroups groups = make_auto_groups(shared_graph(), {}, 6);
  const AutoChoice host{0, 0, 0}, there{1, 1, 1}, state{1, 1, 0};
  const AutoChoice none{1, -1, -1};
  EXPECT_EQ(policy_of(groups, {host, host, host, host, {0, -1, -1}, host}), "auto = [\n]\n");
  EXPECT_EQ(policy_of(groups, {there, there, there, there, none, there}),
            "auto = [\n  { at = \"**\", on = \"gpu\" },\n]\n");
  EXPECT_EQ(policy_of(groups, {state, state, state, state, none, state}),
            "auto = [\n  { at = \"**\", on = \"gpu\", state = \"cpu\" },\n]\n");
  EXPECT_EQ(policy_of(groups, {host, there, there, there, none, host}),
            "auto = [\n  { at = \"{layers,norm}.**\", on = \"gpu\" },\n]\n");
  EXPECT_EQ(policy_of(groups, {there, there, there, there, none, state}),
            "auto = [\n  { at = \"**\", on = \"gpu\" },\n"
            "  { at = \"head.**\", state = \"cpu\" },\n]\n");
  EXPECT_EQ(policy_of(groups, {host, there, there, state, none, there}),
            "auto = [\n  { at = \"**\", on = \"gpu\" },\n  { at = \"embed.**\", on = \"cpu\" },\n"
            "  { at = \"layers.10.**\", state = \"cpu\" },\n]\n");
}

/// op_0 ... in a chain, none with a folder.
Graph flat_graph(int operators) {
  static const OperatorSet all = all_operators();
  GraphBuilder b(all);
  ValueId x = b.input("x", {DType::float32, {4, 8}});
  for (int i = 0; i < operators; ++i) {
    b.set_scope({"op_" + std::to_string(i), Phase::forward, {}});
    x = b.add_node("Relu", {x});
  }
  b.output("y", x);
  return b.finish();
}

TEST(AutoRules, ARangeStandsForNamesThatEndInNumbers) {
  const Graph graph = flat_graph(200);
  const AutoGroups groups = make_auto_groups(graph, {}, 20);
  ASSERT_EQ(groups.groups.size(), 20u);
  const AutoChoice host{0, -1, -1}, there{1, -1, -1};
  AutoChoices choices(20, host);
  std::fill(choices.begin(), choices.begin() + 6, there);
  EXPECT_EQ(policy_of(groups, choices), "auto = [\n  { at = \"op_{0..59}\", on = \"gpu\" },\n]\n");
  choices[8] = there;
  EXPECT_EQ(policy_of(groups, choices),
            "auto = [\n  { at = \"{op_{0..59},op_{80..89}}\", on = \"gpu\" },\n]\n");
}

TEST(AutoRules, SayWhatWasChosen) {
  for (const std::size_t most : {2, 4, 6, 12}) {
    const AutoGroups groups = make_auto_groups(shared_graph(), {}, most);
    std::mt19937 random(7);
    for (int trial = 0; trial < 60; ++trial) {
      AutoChoices choices;
      for (const AutoGroup& group : groups.groups) {
        const AutoChoice all[] = {{0, 0, 0}, {1, 1, 1}, {1, 1, 0}, {1, 0, 0}};
        AutoChoice choice = all[random() % 4];
        if (!group.has_parameters) choice.param = choice.state = -1;
        choices.push_back(choice);
      }
      const std::string text = policy_of(groups, choices);
      SCOPED_TRACE(text);
      const ResolvedPolicy resolved = resolve_text(text);
      const PolicyItems items(shared_graph(), {}, {});
      for (const PolicyItems::Operator& op : items.operators) {
        int scope = 0;
        for (std::size_t s = 0; s < groups.scopes.size(); ++s) {
          const std::string selector = selector_of(groups, static_cast<int>(s));
          if (s > 0 && Selector(selector).matches(op.path)) scope = static_cast<int>(s);
        }
        const AutoChoice& choice = choices[groups.scopes[scope].group];
        EXPECT_EQ(run_of(resolved, op.path), devices[choice.run]) << op.path;
        for (const int p : op.parameters) {
          const State& state = shared_graph().states[items.parameters[p].state];
          if (choice.param < 0 || state.kind != StateKind::parameter) continue;
          EXPECT_EQ(home_of(resolved, state.name),
                    devices[choice.param] + "/" + devices[choice.state]);
        }
      }
    }
  }
}

// Written as TOML and read again, each selector means its operator and no other.
TEST(AutoRules, OperatorsMayHaveAnyName) {
  const std::vector<std::string> paths = {R"(say "hi".Relu)", R"(back\slash.Relu)", "größe 2.Relu",
                                          "${home}.Relu",     "a{0..3},b*.Relu",    "re:x.Relu",
                                          "# no comment.Relu"};
  const OperatorSet operators = all_operators();
  GraphBuilder b(operators);
  ValueId x = b.input("x", {DType::float32, {4}});
  for (const std::string& path : paths) {
    b.set_scope({path, Phase::forward, {}});
    x = b.add_node("Relu", {x});
  }
  b.output("y", x);
  const AutoGroups groups = make_auto_groups(b.finish(), {}, 20);
  ASSERT_EQ(groups.groups.size(), paths.size());
  for (std::size_t g = 0; g < paths.size(); ++g) {
    AutoChoices choices(paths.size(), {0, -1, -1});
    choices[g] = {1, -1, -1};
    const std::string text = policy_of(groups, choices);
    const Policy policy = parse_policy("policy = 1\n" + text, "folder/policy.toml");
    ASSERT_EQ(policy.rules.size(), 1u) << text;
    for (std::size_t other = 0; other < paths.size(); ++other)
      EXPECT_EQ(policy.rules[0].at.matches(paths[other]), other == g) << text << paths[other];
  }
}

/// Work and bytes per group; what one group sends to the next costs where the device changes.
AutoScore score_of(const AutoChoices& choices) {
  const double work[] = {1, 6, 5, 7, 2, 9}, bytes[] = {8, 2, 2, 3, 1, 4};
  AutoScore score;
  double used = 0;
  for (std::size_t g = 0; g < choices.size(); ++g) {
    score.seconds += work[g] / (choices[g].run == 1 ? 10 : 1);
    if (choices[g].run == 1) used += bytes[g];
    if (g > 0 && choices[g].run != choices[g - 1].run) score.seconds += 1.5;
  }
  score.overflow = std::max(0.0, used - 9);
  return score;
}

TEST(AutoSearch, FindsTheBestOfAll) {
  AutoProblem problem;
  problem.options.assign(6, {{0, -1, -1}, {1, -1, -1}});
  int asked = 0;
  problem.score = [&](const AutoChoices& choices) -> std::optional<AutoScore> {
    ++asked;
    return score_of(choices);
  };
  AutoScore best{.possible = false};
  for (unsigned bits = 0; bits < 64; ++bits) {
    AutoChoices choices;
    for (unsigned g = 0; g < 6; ++g) choices.push_back({static_cast<int>(bits >> g & 1), -1, -1});
    if (better(score_of(choices), best)) best = score_of(choices);
  }
  const AutoChoices host(6, {0, -1, -1}), there(6, {1, -1, -1});
  const AutoResult found = search_placement(problem, {host, there});
  EXPECT_TRUE(found.finished);
  EXPECT_EQ(found.score.overflow, 0);
  EXPECT_DOUBLE_EQ(found.score.seconds, best.seconds);
  EXPECT_GT(score_of(host).seconds, best.seconds);
  EXPECT_GT(score_of(there).overflow, 0);

  // A limit ends it early, with the best so far.
  int left = 2;
  problem.score = [&](const AutoChoices& choices) -> std::optional<AutoScore> {
    if (left-- <= 0) return std::nullopt;
    return score_of(choices);
  };
  const AutoResult early = search_placement(problem, {host, there});
  EXPECT_FALSE(early.finished);
  EXPECT_EQ(early.choices, host);
}

}  // namespace
}  // namespace tandem::testing
