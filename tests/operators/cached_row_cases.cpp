// Cases of SplitIds, whose exact numbers are in cached_rows_test.cpp, and of GatherAdd.
#include "engine/operators/tables/rows.h"
#include "tests/operators/network_cases.h"

namespace tandem::testing {

void add_cached_row_cases(Cases& cases) {
  const auto add = [&](const char* name, const CaseInput& ids, Attributes rows,
                       std::vector<double> marks, std::vector<double> ranks) {
    const auto words = static_cast<std::int64_t>(marks.size());
    add_case(cases, "SplitIds", name,
             {ids, valued({words}, std::move(marks), DType::int64),
              valued({words}, std::move(ranks), DType::int32)},
             std::move(rows));
  };
  // Caches rows 1, 64 and 69 of 70.
  add("some", valued({2, 3}, {1, 0, 64, 69, -1, 63}, DType::int64), {{"rows", 70}}, {2, 33},
      {0, 1});
  add("other_rows", valued({4}, {1, 0, 5, -6}, DType::int32), {{"rows", 6}}, {33}, {0});

  const double none32 = static_cast<double>(absent_id<std::int32_t>),
               none64 = static_cast<double>(absent_id<std::int64_t>);
  const auto add_sum = [&](const char* name, Shape base, Shape x, CaseInput indices) {
    add_case(cases, "GatherAdd", name,
             {patterned(std::move(base)), patterned(std::move(x), 1), std::move(indices)});
  };
  add_sum("rows", {4, 3}, {5, 3}, valued({4}, {4, none32, 0, -2}, DType::int32));
  add_sum("in_two_axes", {2, 3, 17}, {3, 17},
          valued({2, 3}, {none64, 2, none64, 0, 0, -3}, DType::int64));
  add_sum("numbers", {5}, {2}, valued({5}, {1, none32, 0, 1, none32}, DType::int32));
  add_sum("none", {2, 4}, {1, 4}, valued({2}, {none32, none32}, DType::int32));
  const std::vector<double> base = pattern(12), x = pattern(15, 1);
  for (OperatorCase& each : cases) {
    if (each.op != "GatherAdd" || each.name != "rows") continue;
    each.expected = base;
    for (std::size_t c = 0; c < 3; ++c) {
      each.expected[c] += x[12 + c];
      each.expected[6 + c] += x[c];
      each.expected[9 + c] += x[9 + c];
    }
  }
}

}  // namespace tandem::testing
