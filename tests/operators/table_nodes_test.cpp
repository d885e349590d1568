// Which nodes look up rows.
#include "engine/operators/tables/table_nodes.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/operators/operator.h"

namespace tandem {
namespace {

Node node_of(const OperatorSet& operators, const std::string& op) {
  Node node;
  node.op = &operators.get(op);
  for (const AttributeSpec& spec : node.op->attributes) node.attributes.set(spec.name, spec.value);
  return node;
}

TEST(TableNodes, RowsAreLookedUpAlongTheFirstAxis) {
  const OperatorSet operators = all_operators();
  Node gather = node_of(operators, "Gather");
  EXPECT_TRUE(is_row_lookup(gather));
  gather.attributes.set("axis", std::int64_t{1});
  EXPECT_FALSE(is_row_lookup(gather));
  EXPECT_FALSE(looks_up_rows(gather));
  EXPECT_TRUE(is_row_lookup(node_of(operators, "EmbeddingBag")));
  EXPECT_FALSE(looks_up_rows(node_of(operators, "EmbeddingBag")));
  EXPECT_FALSE(is_row_lookup(node_of(operators, "GatherGrad")));
  EXPECT_FALSE(is_row_lookup(node_of(operators, "GatherRows")));
}

}  // namespace
}  // namespace tandem
