// Cases of the operators that fetch rows a step ahead.
#include "tests/operators/network_cases.h"

namespace tandem::testing {
namespace {

CaseInput rows(std::vector<double> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return valued({count}, std::move(values), DType::int64);
}
CaseInput step_input(double step) { return valued({}, {step}, DType::int64); }

void add_without(Cases& cases) {
  const auto add = [&](const char* name, const CaseInput& from, double count,
                       const CaseInput& without, double without_count, std::vector<double> kept) {
    const CaseInput old = rows(std::vector<double>(from.values.size(), 9));
    add_case(cases, "RowsWithout", name,
             {from, count_of(count), without, count_of(without_count), step_input(7), old,
              count_of(2), step_input(3)})
        .expected = std::move(kept);
  };
  const CaseInput from = rows({2, 5, 7, 9, -1, -1}), without = rows({1, 5, 9, -1});
  add("some", from, 4, without, 3, {2, 7, -1, -1, -1, -1});
  add("all_stay", from, 4, without, 0, {2, 5, 7, 9, -1, -1});
  add("none_stays", from, 4, from, 4, {-1, -1, -1, -1, -1, -1});
  add("of_none", from, 0, without, 3, {-1, -1, -1, -1, -1, -1});
  add("none", rows({}), 0, rows({}), 0, {});
}

void add_plans(Cases& cases) {
  const auto add = [&](const char* name, double kept_step, double step, std::vector<double> late) {
    add_case(cases, "PlanRows", name,
             {rows({1, 4, 6, 8, -1}), count_of(4), rows({2, 4, 8, -1}), count_of(3),
              step_input(kept_step), step_input(step)})
        .expected = std::move(late);
  };
  add("some", 7, 7, {1, 6, -1, -1, -1});
  add("kept_for_another_step", 7, 8, {1, 4, 6, 8, -1});
  add_case(cases, "PlanRows", "all_are_there",
           {rows({3, 5}), count_of(2), rows({3, 5}), count_of(2), step_input(2), step_input(2)})
      .expected = {-1, -1};
  add_case(cases, "PlanRows", "none",
           {rows({}), count_of(0), rows({}), count_of(0), step_input(1), step_input(1)});
}

void add_lookups_ahead(Cases& cases) {
  const CaseInput kept = patterned({3, 2}), late = patterned({2, 2}, 1);
  const std::vector<double> a = pattern(6), b = pattern(4, 1);
  add_case(cases, "GatherParts", "both",
           {kept, late, ints({3, 0, 4, 2}), ints({1, 0, 3, -2147483648.0, 2, 1})})
      .expected = {a[0], a[1], b[0], b[1], a[4], a[5], 0, 0, b[2], b[3], a[0], a[1]};
  add_case(cases, "GatherParts", "wide_rows",
           {random_input({4, 3, 11}), random_input({6, 3, 11}), ints({9, 8, 1, 2, 0, 5}),
            valued({2, 3}, {0, 5, 1, 3, 3, 4}, DType::int32)});
}

}  // namespace

void add_rows_ahead_cases(Cases& cases) {
  add_without(cases);
  add_plans(cases);
  add_lookups_ahead(cases);
}

}  // namespace tandem::testing
