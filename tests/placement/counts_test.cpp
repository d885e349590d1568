// What "operators" and "parameters" count in reports, and how the counts are written.
#include "placement/counts.h"

#include <gtest/gtest.h>

#include "placement/match.h"
#include "placement/names.h"
#include "placement/report/check.h"
#include "tests/placement/support.h"

namespace tandem::testing {
namespace {

// embed, head and three layers of a weight and a bias; the buffer of norm; loss.total in addition.
const ItemCounts all{.operators = 13, .parameters = 8, .buffers = 1, .added = 1};

PolicyItems items_with_loss() { return {shared_graph(), {}, {{"loss.total", ""}}}; }

TEST(ItemCounts, AddedPartsAndBuffersAreNeitherOperatorsNorParameters) {
  const PolicyItems items = items_with_loss();
  EXPECT_EQ(counts_of(shared_graph(), items), all);
  PolicyRule rule;
  const auto matched = [&](const char* at) {
    rule.at = Selector(at);
    return counts_of(shared_graph(), items, RuleMatcher(shared_graph(), items).match(rule));
  };
  EXPECT_EQ(matched("**"), all);
  EXPECT_EQ(matched("loss.**"), (ItemCounts{.added = 1}));
  EXPECT_EQ(matched("norm.**"), (ItemCounts{.operators = 1, .buffers = 1}));
  EXPECT_EQ(matched("optimizer.embed:weight"), (ItemCounts{.parameters = 1}));
  EXPECT_EQ(matched("nothing.**"), ItemCounts{});
}

TEST(ItemCounts, AreTheSameOfNamesAndDevices) {
  ItemCounts of_model = all;
  of_model.added = 0;
  EXPECT_EQ(counts_of(policy_names(shared_graph())), of_model);
  ResolveOptions options;
  options.added.push_back({"loss.total", ""});
  const ResolvedPolicy resolved =
      resolve_text("rules = [ { at = \"**\", on = \"gpu\" } ]\n", {}, options);
  EXPECT_EQ(resolved.rules[0].matched, all);
  ASSERT_EQ(resolved.counts_by_device().size(), 2u);
  EXPECT_EQ(resolved.counts_by_device()[0], ItemCounts{});
  EXPECT_EQ(resolved.counts_by_device()[1], of_model);
  EXPECT_EQ(devices_text(resolved),
            "gpu 13 operators, 8 parameters, 1 buffer | cpu 0 operators, 0 parameters");
}

TEST(ItemCounts, AreTold) {
  EXPECT_EQ(counts_text(all), "13 operators, 8 parameters, 1 buffer, 1 added part");
  EXPECT_EQ(counts_text({.operators = 1}), "1 operator, 0 parameters");
  EXPECT_EQ(nonzero_counts({.parameters = 1, .added = 2}),
            (std::vector<std::string>{"1 parameter", "2 added parts"}));
  EXPECT_TRUE(nonzero_counts({}).empty());
}

}  // namespace
}  // namespace tandem::testing
