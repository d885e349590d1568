// Cases of flat indices from tuples of indices.
#include "engine/operators/tables/rows.h"
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

void add_flat_indices_cases(std::vector<OperatorCase>& cases) {
  const auto add = [&](const std::string& name, CaseInput indices, Ints extents, Ints strides,
                       Ints positions) -> OperatorCase& {
    cases.push_back(make_case("FlatIndices", name, {std::move(indices)},
                              {{"extents", std::move(extents)},
                               {"strides", std::move(strides)},
                               {"position_strides", std::move(positions)}}));
    return cases.back();
  };
  add("pairs", typed(DType::int64, {4, 5, 2}, -3, 3), {3, 4}, {4, 1}, {0, 0});
  add("int32", typed(DType::int32, {7, 1}, -7, 7), {7}, {3}, {0});
  add("batches", typed(DType::int64, {3, 2, 2}, -2, 2), {2, 2}, {2, 1}, {4, 0});
  add("no places", typed(DType::int64, {0, 2}), {2, 2}, {2, 1}, {0});
  add("one place", typed(DType::int64, {3}, -2, 2), {2, 2, 2}, {4, 2, 1}, {});
  // For x [3, 4]: elements (1, -1) and (-3, 2); then column 2 of row 0 and column -1 of row 1.
  add("known pairs", values({2, 2}, {1, -1, -3, 2}, DType::int64), {3, 4}, {4, 1}, {0}).expected = {
      7, 2};
  add("known columns", values({2, 1, 1}, {2, -1}, DType::int32), {4}, {1}, {4, 0}).expected = {2,
                                                                                               7};
  const double absent = static_cast<double>(absent_id<std::int64_t>);
  add("absent", values({2, 2}, {absent, 1, 2, 1}, DType::int64), {3, 4}, {4, 1}, {0}).expected = {
      absent, 9};
}

}  // namespace tandem::testing
