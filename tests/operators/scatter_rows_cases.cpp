// Cases of updates of rows by indices.
#include "engine/operators/tables/rows.h"
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

void add_scatter_rows_cases(std::vector<OperatorCase>& cases) {
  const auto add = [&](const std::string& reduction, const std::string& name, CaseInput x,
                       CaseInput indices, CaseInput updates) -> OperatorCase& {
    cases.push_back(make_case("ScatterRows", reduction + " " + name,
                              {std::move(x), std::move(indices), std::move(updates)},
                              {{"reduction", reduction}}));
    return cases.back();
  };
  for (const std::string reduction : {"none", "add", "mul", "max", "min"}) {
    const Fill fill = reduction == "max" || reduction == "min" ? Fill::distinct : Fill::uniform;
    const auto numbers = [&](Shape shape) { return filled(std::move(shape), fill); };
    add(reduction, "once", numbers({6, 3}), values({3}, {4, 0, -1}, DType::int64), numbers({3, 3}));
    add(reduction, "again", numbers({4, 2, 3}), values({5}, {1, 3, 1, -1, 1}, DType::int32),
        numbers({5, 2, 3}));
    add(reduction, "elements", numbers({9}), typed(DType::int64, {20}, -9, 9), numbers({20}));
    add(reduction, "nothing", numbers({3, 2}), typed(DType::int64, {0}), numbers({0, 2}));
    add(reduction, "wide", numbers({5, 70}), values({4}, {2, 2, -5, 4}, DType::int64),
        numbers({4, 70}));
    add(reduction, "int64", typed(DType::int64, {4}), values({3}, {1, 1, 2}, DType::int64),
        typed(DType::int64, {3}));
    add(reduction, "float16", typed(DType::float16, {4}, -1, 1),
        values({3}, {1, 1, 2}, DType::int64), typed(DType::float16, {3}, -1, 1))
        .tolerance = 1e-2;
  }
  add("none", "bool", typed(DType::boolean, {5}), values({2}, {1, -1}, DType::int64),
      typed(DType::boolean, {2}));
  const CaseInput x = values({3}, {1, 2, -3}), u = values({3}, {5, -4, 0.5});
  const double absent = static_cast<double>(absent_id<std::int32_t>);
  const auto known = [&](const char* reduction, std::vector<double> y) {
    add(reduction, "known", x, values({3}, {1, 1, 2}, DType::int32), u).expected = y;
    y[1] = 2;  // unchanged
    add(reduction, "absent", x, values({3}, {absent, absent, 2}, DType::int32), u).expected = y;
  };
  known("none", {1, -4, 0.5});
  known("add", {1, 3, -2.5});
  known("mul", {1, -40, -1.5});
  known("max", {1, 5, 0.5});
  known("min", {1, -4, -3});
  // Products with zeros: none, one, two in a row's factors.
  add("mul", "zeros", values({4}, {2, 0, 3, 0}), values({4}, {0, 0, 2, 3}, DType::int64),
      values({4}, {0, 5, 7, 0}))
      .expected = {0, 0, 21, 0};
}

}  // namespace tandem::testing
