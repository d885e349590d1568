// Cases of the reductions.
#include <limits>

#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

namespace {

Attributes reducing(Ints axes, std::int64_t keepdims) {
  return {{"axes", std::move(axes)}, {"keepdims", keepdims}};
}

}  // namespace

void add_reduction_cases(std::vector<OperatorCase>& cases) {
  const std::vector<std::pair<Shape, Ints>> reductions = {{{3, 5}, {1}},
                                                          {{3, 5}, {0}},
                                                          {{3, 5}, {0, 1}},
                                                          {{2, 3, 4}, {1}},
                                                          {{2, 3, 4}, {0, 2}},
                                                          {{2, 3, 4, 5}, {2, 3}},
                                                          {{2, 3, 4, 5}, {0, 2, 3}},
                                                          {{3, 5}, {}},
                                                          {{}, {}},
                                                          {{1, 4}, {0}},
                                                          {{300}, {0}},
                                                          {{67, 33}, {1}}};
  for (const auto& [shape, axes] : reductions) {
    for (std::int64_t keepdims : {0, 1}) {
      const std::string name =
          to_string(shape) + " over " + to_string(axes) + (keepdims != 0 ? " kept" : "");
      cases.push_back(make_case("ReduceSum", name, {uniform(shape)}, reducing(axes, keepdims)));
      cases.push_back(make_case("ReduceMean", name, {uniform(shape)}, reducing(axes, keepdims)));
      cases.push_back(
          make_case("ReduceProd", name, {uniform(shape, -2, 2)}, reducing(axes, keepdims)));
      cases.push_back(
          make_case("ReduceMax", name, {filled(shape, Fill::distinct)}, reducing(axes, keepdims)));
    }
  }
  cases.push_back(
      expecting(make_case("ReduceSum", "of nothing", {uniform({2, 0})}, reducing({1}, 0)), {0, 0}));
  cases.push_back(make_case("ReduceSum", "to nothing", {uniform({0, 3})}, reducing({1}, 1)));
  cases.push_back(make_case("ReduceMean", "to nothing", {uniform({0, 3})}, reducing({1}, 1)));
  cases.push_back(expecting(
      make_case("ReduceProd", "of nothing", {uniform({2, 0})}, reducing({1}, 0)), {1, 1}));
  // The product of the other elements is p / x; for the only zero it is p, and next to one it is 0.
  cases.push_back(
      expecting(make_case("ReduceProd", "zeros", {values({3, 3}, {2, 3, 4, 2, 0, 5, 0, 7, 0})},
                          reducing({1}, 0)),
                {24, 0, 0}));
  const CaseInput known = values({2, 3}, {1, 2, 3, 4, 5, 9});
  cases.push_back(
      expecting(make_case("ReduceSum", "known", {known}, reducing({0}, 0)), {5, 7, 12}));
  cases.push_back(expecting(make_case("ReduceMean", "known", {known}, reducing({1}, 0)), {2, 6}));
  cases.push_back(expecting(make_case("SumOfSquares", "known", {known}), {136}));
  const double infinity = std::numeric_limits<double>::infinity();
  cases.push_back(
      expecting(make_case("ReduceMax", "of nothing", {uniform({2, 0})}, reducing({1}, 0)),
                {-infinity, -infinity}));
  cases.push_back(without_gradient(
      expecting(
          make_case("ReduceMax", "ties", {values({2, 3}, {1, 3, 3, 2, 2, 2})}, reducing({1}, 0)),
          {3, 2}),
      "at a kink; the share of equal elements has its own test"));
  for (DType dtype : {DType::int8, DType::int32, DType::int64, DType::uint8, DType::uint64}) {
    for (const char* op : {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax"}) {
      cases.push_back(make_case(op, std::string(name_of(dtype)), {typed(dtype, {3, 4}, 0, 9)},
                                reducing({1}, 1)));
    }
  }
  for (DType dtype : {DType::float16, DType::bfloat16}) {
    for (const char* op : {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax"}) {
      cases.push_back(coarse(make_case(op, std::string(name_of(dtype)),
                                       {typed(dtype, {3, 4}, -1, 1)}, reducing({1}, 1))));
    }
  }
  cases.push_back(
      make_case("ReduceMax", "bool", {typed(DType::boolean, {4, 3})}, reducing({1}, 0)));
  for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{0}, Shape{2, 3, 4, 5}, Shape{1030}}) {
    cases.push_back(make_case("SumOfSquares", to_string(shape), {uniform(shape)}));
  }
}

}  // namespace tandem::testing
