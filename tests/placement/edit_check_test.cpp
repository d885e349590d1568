// `policy edit` with a model: which rules would have no effect there.
#include "placement/edit_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/placement/support.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

ItemCounts checked(const PolicyEdit& edit, const std::string& text = "policy = 1\n") {
  ResolveOptions options;
  options.added.push_back({"loss.total", ""});
  const ResolvedPolicy resolved = resolve_text("", {}, options);
  const PolicyItems items(shared_graph(), {}, added_parts(resolved));
  return check_edit(edit_policy(text, "p.toml", edit), "p.toml", edit,
                    {shared_graph(), items, resolved});
}

std::vector<std::string> refused(const PolicyEdit& edit, const std::string& text = "policy = 1\n") {
  std::vector<std::string> all;
  try {
    checked(edit, text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    for (const Diagnostic& d : error.diagnostics()) all.push_back(to_string(d));
  }
  return all;
}

TEST(EditCheck, CountsWhatTheRuleMatches) {
  EXPECT_EQ(checked({.at = "layers.1.**", .set = {{"on", "cpu"}, {"acts", "recompute"}}}),
            (ItemCounts{.operators = 3, .parameters = 2}));
  EXPECT_EQ(checked({.at = "embed:weight", .set = {{"ship", "rows"}, {"cache", "1KiB"}}}),
            (ItemCounts{.parameters = 1}));
  EXPECT_EQ(checked({.at = "loss.**", .set = {{"run", "cpu"}}}), (ItemCounts{.added = 1}));
  EXPECT_EQ(checked({.at = "**", .filters = {{"op", "Relu"}}, .set = {{"acts", "offload"}}}),
            (ItemCounts{.operators = 3}));
}

TEST(EditCheck, RefusesSelectorsAndFiltersThatMatchNothing) {
  const std::vector<std::string> selector =
      refused({.at = "layer.1.**", .set = {{"on", "cpu"}, {"acts", "recompute"}}});
  ASSERT_EQ(selector.size(), 1u);
  EXPECT_THAT(selector[0], HasSubstr("p.toml: layer.1.**: matches nothing in this model"));
  EXPECT_THAT(selector[0], HasSubstr("did you mean \"layers.1.**\"? (3 operators, 2 parameters)"));
  const std::vector<std::string> filter =
      refused({.at = "**", .filters = {{"op", "Rellu"}}, .set = {{"run", "cpu"}}});
  ASSERT_EQ(filter.size(), 1u);
  EXPECT_THAT(filter[0], HasSubstr("did you mean \"Relu\"?"));
}

TEST(EditCheck, NamesAllAttributesThatNothingCanHave) {
  const std::vector<std::string> weight = refused(
      {.at = "layers.1:weight", .set = {{"acts", "offload"}, {"state", "cpu"}, {"ship", "rows"}}});
  ASSERT_EQ(weight.size(), 2u);
  EXPECT_THAT(weight[0],
              HasSubstr("`acts` applies to operators, and this rule matches none: expected "
                        "one of on, param, state, lookahead, shard, got acts, for 1 "
                        "parameter"));
  EXPECT_THAT(weight[1], HasSubstr("`ship` applies to tables that only lookups read"));
  EXPECT_EQ(refused({.at = "norm.running_mean", .set = {{"state", "cpu"}}}).size(), 1u);
}

TEST(EditCheck, RulesThatMayMatchNothingOrSetNothingPass) {
  EXPECT_EQ(checked({.at = "x.**", .set = {{"on", "cpu"}, {"optional", "true"}}}), ItemCounts{});
  const std::string text =
      "policy = 1\nrules = [\n  { at = \"x.**\", on = \"cpu\", optional = true },\n]\n";
  EXPECT_EQ(checked({.at = "x.**", .set = {{"run", "gpu"}}}, text), ItemCounts{});
}

}  // namespace
}  // namespace tandem::testing
