// Cases of running sums.
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

void add_cum_sum_cases(std::vector<OperatorCase>& cases) {
  const auto attributes = [](std::int64_t axis, std::int64_t exclusive, std::int64_t reverse) {
    return Attributes{{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}};
  };
  const std::vector<std::pair<Shape, std::int64_t>> shapes = {
      {{5}, 0}, {{3, 4}, 0}, {{3, 4}, 1}, {{2, 3, 37}, 1}, {{0, 2}, 1}, {{2, 0}, 1}, {{65, 20}, 0}};
  for (std::int64_t exclusive : {0, 1}) {
    for (std::int64_t reverse : {0, 1}) {
      const std::string kind =
          std::string(exclusive != 0 ? " exclusive" : "") + (reverse != 0 ? " reverse" : "");
      for (const auto& [shape, axis] : shapes) {
        cases.push_back(make_case("CumSum",
                                  to_string(shape) + " axis " + std::to_string(axis) + kind,
                                  {uniform(shape)}, attributes(axis, exclusive, reverse)));
      }
    }
  }
  const CaseInput x = values({2, 3}, {1, 2, 4, 8, 16, 32});
  const auto known = [&](std::int64_t exclusive, std::int64_t reverse, std::vector<double> y) {
    const std::string name = "known " + std::to_string(exclusive) + std::to_string(reverse);
    cases.push_back(
        expecting(make_case("CumSum", name, {x}, attributes(1, exclusive, reverse)), std::move(y)));
  };
  known(0, 0, {1, 3, 7, 8, 24, 56});
  known(1, 0, {0, 1, 3, 0, 8, 24});
  known(0, 1, {7, 6, 4, 56, 48, 32});
  known(1, 1, {6, 4, 0, 48, 32, 0});
  for (DType dtype : {DType::int32, DType::uint64, DType::int64}) {
    cases.push_back(make_case("CumSum", std::string(name_of(dtype)), {typed(dtype, {4, 3}, 0, 9)},
                              attributes(0, 0, 0)));
  }
  for (DType dtype : {DType::float16, DType::bfloat16}) {
    cases.push_back(coarse(make_case("CumSum", std::string(name_of(dtype)),
                                     {typed(dtype, {4, 3}, -1, 1)}, attributes(1, 0, 0))));
  }
}

}  // namespace tandem::testing
