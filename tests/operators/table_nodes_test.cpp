// What operators do with tables and ids.
#include "engine/operators/tables/table_nodes.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "engine/operators/operator.h"

namespace tandem {
namespace {

Node node_of(const OperatorSet& operators, const std::string& op) {
  Node node;
  node.op = &operators.get(op);
  for (const AttributeSpec& spec : node.op->attributes) node.attributes.set(spec.name, spec.value);
  return node;
}

TEST(TableNodes, AreKnownByTheirOperators) {
  const OperatorSet operators = all_operators();
  const std::pair<const char*, TableWork> works[] = {
      {"Gather", TableWork::looks_up},
      {"EmbeddingBag", TableWork::sums_rows},
      {"GatherAdd", TableWork::adds_cached_rows},
      {"SplitIds", TableWork::splits_ids},
      {"UniqueIndices", TableWork::groups_ids},
      {"MarkRows", TableWork::marks_rows},
      {"TouchedRows", TableWork::finds_marked_rows},
      {"GatherRows", TableWork::packs_rows},
      {"PlanRows", TableWork::plans_rows},
      {"RowsUpdate", TableWork::updates_rows},
      {"RowsSumOfSquares", TableWork::norms_rows},
      {"GatherGrad", TableWork::none},
      {"Add", TableWork::none},
  };
  for (const auto& [op, work] : works) EXPECT_EQ(table_work(node_of(operators, op)), work) << op;
}

TEST(TableNodes, RowsAreLookedUpAlongTheFirstAxis) {
  const OperatorSet operators = all_operators();
  Node gather = node_of(operators, "Gather");
  EXPECT_TRUE(is_row_lookup(gather));
  gather.attributes.set("axis", std::int64_t{1});
  EXPECT_FALSE(is_row_lookup(gather));
  EXPECT_EQ(table_work(gather), TableWork::none);
  EXPECT_TRUE(is_row_lookup(node_of(operators, "EmbeddingBag")));
  EXPECT_FALSE(is_row_lookup(node_of(operators, "GatherRows")));
}

}  // namespace
}  // namespace tandem
