#include "engine/operators/tables/table_nodes.h"

#include <string_view>
#include <utility>

#include "engine/operators/operator.h"

namespace tandem {

TableWork table_work(const Node& node) {
  using enum TableWork;
  constexpr std::pair<std::string_view, TableWork> works[] = {
      {"Gather", looks_up},
      {"EmbeddingBag", sums_rows},
      {"GatherAdd", adds_cached_rows},
      {"SplitIds", splits_ids},
      {"UniqueIndices", groups_ids},
      {"MarkRows", marks_rows},
      {"TouchedRows", finds_marked_rows},
      {"GatherRows", packs_rows},
      {"PlanRows", plans_rows},
      {"RowsUpdate", updates_rows},
      {"RowsSumOfSquares", norms_rows},
  };
  for (const auto& [op, work] : works) {
    if (node.op->name != op) continue;
    return work == looks_up && node.attributes.integer("axis") != 0 ? none : work;
  }
  return none;
}

}  // namespace tandem
