// What a search proposes, as changes of a policy's text that are taken over one by one or together.
#include "placement/moves/proposed_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/edit.h"

namespace tandem::testing {
namespace {

using ::testing::ElementsAre;

const char* const file = R"(# Mine
policy = 1
auto  = [
  { at = "**", on = "gpu" },       # 12 operators, 1.5 KiB
  { at = "old.**", on = "cpu" },   # 3 operators, 2 B
]
rules = [
  { at = "**", on = "gpu" },
  # the head is small
  { at = "head.**", on = "cpu", why = "small" },   # mine
  { at = "wide.**", acts = "offload" },
]
)";

const std::vector<std::string> lines{"{ at = \"**\", on = \"gpu\" },       # 12 operators, 1.5 KiB",
                                     "{ at = \"embed.**\", on = \"cpu\" },  # 1 operator, 4.0 MiB",
                                     "{ at = \"head.**\", on = \"cpu\" },   # 2 operators, 8 B"};

std::vector<std::string> described(const ProposedRules& proposal, const std::string& text = file) {
  std::vector<std::string> all;
  for (const RuleChange& change : changes_to(proposal, text, "p.toml")) {
    all.push_back((change.kind == RuleChange::Kind::add ? "+" : "-") + change.list + " " +
                  change.rule + (change.comment.empty() ? "" : " # " + change.comment) +
                  (change.line > 0 ? " :" + std::to_string(change.line) : ""));
  }
  return all;
}

std::string taken(const ProposedRules& proposal, const std::vector<int>& changes,
                  const std::string& text = file) {
  return with_changes(proposal, text, "p.toml", changes);
}

TEST(ProposedRules, ReplacesTheListAutoWhereMyRulesAreKept) {
  const ProposedRules proposal{lines, true};
  EXPECT_THAT(described(proposal),
              ElementsAre("-auto { at = \"old.**\", on = \"cpu\" } :5",
                          "+auto { at = \"embed.**\", on = \"cpu\" } # 1 operator, 4.0 MiB",
                          "+auto { at = \"head.**\", on = \"cpu\" } # 2 operators, 8 B"));
  EXPECT_EQ(taken(proposal, {0, 1, 2}), replace_auto(file, "p.toml", lines));
  EXPECT_THAT(described(proposal, taken(proposal, {0, 1, 2})), ElementsAre());
}

TEST(ProposedRules, TakesThePlaceOfMyRulesWhereTheyAreNotKept) {
  const ProposedRules proposal{lines, false};
  EXPECT_THAT(described(proposal),
              ElementsAre("-auto { at = \"**\", on = \"gpu\" } :4",
                          "-auto { at = \"old.**\", on = \"cpu\" } :5",
                          "+rules { at = \"embed.**\", on = \"cpu\" } # 1 operator, 4.0 MiB",
                          "-rules { at = \"wide.**\", acts = \"offload\" } :11"));
  EXPECT_EQ(taken(proposal, {0, 1, 2, 3}), R"(# Mine
policy = 1
auto  = [
]
rules = [
  { at = "**", on = "gpu" },
  { at = "embed.**", on = "cpu" },
  # the head is small
  { at = "head.**", on = "cpu", why = "small" },   # mine
]
)");
}

TEST(ProposedRules, OneByOneInAnyOrderLeadsToTheSameRules) {
  for (const bool keeps : {true, false}) {
    const ProposedRules proposal{lines, keeps};
    const std::string wanted = taken(proposal, {0, 1, 2, 3});
    for (const bool last_first : {true, false}) {
      std::string text = file;
      for (std::size_t left = described(proposal, text).size(); left > 0; --left) {
        text = taken(proposal, {last_first ? static_cast<int>(left) - 1 : 0}, text);
        EXPECT_EQ(described(proposal, text).size(), left - 1) << text;
      }
      EXPECT_EQ(text, wanted);
    }
  }
}

TEST(ProposedRules, MakesTheListsThatAreMissing) {
  const std::string rules =
      "  { at = \"**\", on = \"gpu\" },\n  { at = \"embed.**\", on = \"cpu\" },\n"
      "  { at = \"head.**\", on = \"cpu\" },\n]\n";
  EXPECT_EQ(taken({lines, false}, {0, 1, 2}, "policy = 1\n"), "policy = 1\nrules = [\n" + rules);
  EXPECT_EQ(taken({lines, false}, {0, 1, 2}, "policy = 1\nrules = []\n"),
            "policy = 1\nrules = [\n" + rules);
  EXPECT_EQ(taken({lines, true}, {0, 1, 2}, "policy = 1\n"),
            replace_auto("policy = 1\n", "p.toml", lines));
  EXPECT_EQ(taken({lines, true}, {}, file), file);
}

TEST(ProposedRules, OnOneLineToo) {
  const std::string text =
      "policy = 1\nrules = [ { at = \"wide.**\", acts = \"offload\" }, { at = \"head.**\", on = "
      "\"cpu\" } ]\n";
  EXPECT_EQ(
      taken({lines, false}, {0, 1, 2}, text),
      "policy = 1\nrules = [ { at = \"**\", on = \"gpu\" }, { at = \"embed.**\", on = \"cpu\" }, "
      "{ at = \"head.**\", on = \"cpu\" } ]\n");
}

}  // namespace
}  // namespace tandem::testing
