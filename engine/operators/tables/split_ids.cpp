// Sends each id of a table either to the table or to the cache that holds its row: the other one
// gets an absent id (engine/operators/tables/rows.h).
#include "engine/operators/tables/split_ids.h"

#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_split_ids(const NodeView& view) {
  require_index(view, 0);
  const std::int64_t rows = view.attributes().integer("rows");
  if (rows < 1) view.fail("rows is out of range", "at least 1", std::to_string(rows));
  const Shape words{CachedMarks::words(rows)};
  require_type(view, 1, {DType::int64, words});
  require_type(view, 2, {DType::int32, words});
  return {view.input(0), {DType::int32, view.input(0).shape}};
}

// The marks and the rank of one word for each id, not all of them.
Cost split_ids_cost(const NodeView& view) {
  const TensorType &ids = view.input(0), &cold = view.output(0), &hot = view.output(1);
  const double word =
      static_cast<double>(size_of(view.input(1).dtype) + size_of(view.input(2).dtype));
  return {0, element_number(ids) * word +
                 static_cast<double>(ids.bytes() + cold.bytes() + hot.bytes())};
}

}  // namespace

// Bit k of marks[w] says that row 64 w + k is cached, ranks[w] how many rows before row 64 w are;
// the place of a cached row is its rank. Negative ids count from the end; ids of no row go to the
// table, whose lookup reports them.
Operator split_ids() {
  return {.name = "SplitIds",
          .role = Role::id_split,
          .inputs = {{"ids"}, {"marks"}, {"ranks"}},
          .outputs = {{"cold"}, {"hot"}},
          .attributes = {{"rows", std::int64_t{0}, true}},
          .infer = infer_split_ids,
          .not_differentiable = "its results are integers",
          .cost = split_ids_cost,
          .engine_only = true};
}

}  // namespace tandem::operators

namespace tandem {

CachedMarks::CachedMarks(const std::vector<std::int64_t>& cached, std::int64_t rows)
    : marks(TensorType{DType::int64, {words(rows)}}),
      ranks(TensorType{DType::int32, {words(rows)}}) {
  const auto bits = marks.as<std::int64_t>();
  for (const std::int64_t row : cached) {
    bits[row / 64] = static_cast<std::int64_t>(static_cast<std::uint64_t>(bits[row / 64]) |
                                               std::uint64_t{1} << (row % 64));
  }
  std::size_t before = 0;
  const auto first = ranks.as<std::int32_t>();
  for (std::size_t w = 0; w < first.size(); ++w) {
    first[w] = static_cast<std::int32_t>(before);
    while (before < cached.size() && cached[before] / 64 == static_cast<std::int64_t>(w)) ++before;
  }
}

}  // namespace tandem
