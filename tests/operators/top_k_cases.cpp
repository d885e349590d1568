// Cases of largest and smallest elements.
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

void add_top_k_cases(std::vector<OperatorCase>& cases) {
  const auto attributes = [](std::int64_t axis, std::int64_t k, std::int64_t largest) {
    return Attributes{{"axis", axis}, {"k", k}, {"largest", largest}};
  };
  for (std::int64_t largest : {0, 1}) {
    const std::string kind = largest != 0 ? " largest" : " smallest";
    for (const auto& [shape, axis, k] :
         std::vector<std::tuple<Shape, std::int64_t, std::int64_t>>{{{7}, 0, 3},
                                                                    {{3, 5}, 1, 1},
                                                                    {{3, 5}, 0, 2},
                                                                    {{2, 4, 3}, 1, 4},
                                                                    {{2, 6}, 1, 0},
                                                                    {{0, 3}, 1, 2},
                                                                    {{40, 30}, 1, 5}}) {
      cases.push_back(make_case(
          "TopK",
          to_string(shape) + " axis " + std::to_string(axis) + " " + std::to_string(k) + kind,
          {filled(shape, Fill::distinct)}, attributes(axis, k, largest)));
    }
  }
  const CaseInput x = values({2, 4}, {3, 1, 3, 2, -1, -1, 5, 0});
  const char* ties = "at a kink: equal elements change places";
  cases.push_back(without_gradient(
      expecting(make_case("TopK", "known", {x}, attributes(1, 2, 1)), {3, 3, 5, 0}), ties));
  cases.push_back(
      without_gradient(expecting(make_case("TopK", "known smallest", {x}, attributes(1, 3, 0)),
                                 {1, 2, 3, -1, -1, 0}),
                       ties));
  cases.push_back(make_case("TopK", "int64", {typed(DType::int64, {6})}, attributes(0, 3, 1)));
  cases.push_back(
      make_case("TopK", "uint8", {typed(DType::uint8, {6}, 0, 9)}, attributes(0, 3, 0)));
  cases.push_back(make_case("TopK", "float16", {typed(DType::float16, {6})}, attributes(0, 3, 1)));
}

}  // namespace tandem::testing
