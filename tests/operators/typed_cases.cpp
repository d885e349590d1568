// Cases of element-wise operators over integers, bool and float64: all forms of broadcasting,
// lengths beyond the blocks in which kernels work, and the limits of the types.
#include <cmath>

#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

namespace {

void add_broadcast_forms(std::vector<OperatorCase>& cases) {
  // (name, shapes of a and b)
  const std::vector<std::tuple<std::string, Shape, Shape>> shapes = {
      {"long", {1300}, {1300}},
      {"long and scalar", {1300}, {}},
      {"scalar and long", {}, {1300}},
      {"rows and column", {2, 3, 600}, {3, 1}},
      {"both", {3, 1, 4}, {2, 1}},
      {"maps and bias", {2, 3, 4, 5}, {3, 1, 1}},
      {"scalars", {}, {}},
      {"empty", {0, 4}, {1, 4}}};
  for (const DType dtype : {DType::int32, DType::int64, DType::uint8}) {
    for (const char* op : {"Add", "Sub", "Mul", "Max", "Equal", "Less"}) {
      for (const auto& [name, a, b] : shapes) {
        cases.push_back(make_case(op, std::string(name_of(dtype)) + ", " + name,
                                  {typed(dtype, a, 0, 9), typed(dtype, b, 0, 9)}));
      }
    }
  }
  const auto condition = [](Shape shape) { return typed(DType::boolean, std::move(shape)); };
  for (const DType dtype : {DType::int64, DType::int16, DType::boolean}) {
    const std::string name(name_of(dtype));
    cases.push_back(
        make_case("Where", name + ", all broadcast",
                  {condition({4, 1, 1}), typed(dtype, {3, 1}, 0, 9), typed(dtype, {5}, 0, 9)}));
    cases.push_back(
        make_case("Where", name + ", long",
                  {condition({2, 700}), typed(dtype, {2, 700}, 0, 9), typed(dtype, {}, 0, 9)}));
    cases.push_back(
        make_case("Where", name + ", scalar condition",
                  {condition({}), typed(dtype, {2, 3, 4}, 0, 9), typed(dtype, {2, 3, 4}, 0, 9)}));
  }
}

void add_long_casts(std::vector<OperatorCase>& cases) {
  for (const auto& [from, to] : {std::pair{DType::int64, DType::int32},
                                 {DType::boolean, DType::int64},
                                 {DType::int32, DType::int64},
                                 {DType::float64, DType::int32},
                                 {DType::int64, DType::float64},
                                 {DType::uint8, DType::int16}}) {
    const Attributes attributes{{"to", std::string(name_of(to))}};
    for (const Shape& shape : {Shape{2, 3, 700}, Shape{2, 3, 4, 5}}) {
      cases.push_back(without_gradient(make_case("Cast",
                                                 std::string(name_of(from)) + to_string(shape) +
                                                     " to " + std::string(name_of(to)),
                                                 {typed(from, shape, 0, 100)}, attributes),
                                       "rounds, or has no slope"));
    }
  }
}

// Integers wrap around like NumPy's; comparisons are made in the type, not in float32.
void add_ends(std::vector<OperatorCase>& cases) {
  const auto known = [&](const char* op, const std::string& name, std::vector<CaseInput> inputs,
                         std::vector<double> y, Attributes attributes = {}) {
    cases.push_back(without_gradient(
        expecting(make_case(op, name, std::move(inputs), std::move(attributes)), std::move(y)),
        "at an end of the type"));
  };
  const auto of = [](DType dtype, std::vector<double> numbers) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    return values({count}, std::move(numbers), dtype);
  };
  known("Add", "end of int32", {of(DType::int32, {2147483647}), of(DType::int32, {1})},
        {-2147483648.0});
  known("Sub", "ends of int8", {of(DType::int8, {-128, 127}), of(DType::int8, {1, -1})},
        {127, -128});
  known("Sub", "below 0 of uint8", {of(DType::uint8, {3}), of(DType::uint8, {5})}, {254});
  known("Mul", "beyond int8", {of(DType::int8, {100}), of(DType::int8, {3})}, {44});
  known("Neg", "lowest int8", {of(DType::int8, {-128, 5})}, {-128, -5});
  // float32 cannot represent 2^24 + 1.
  known("Equal", "neighbours beyond float32",
        {of(DType::int32, {16777217, 16777217}), of(DType::int32, {16777216, 16777217})}, {0, 1});
  known("Less", "neighbours beyond float32",
        {of(DType::int64, {16777216, 16777217}), of(DType::int64, {16777217, 16777217})}, {1, 0});
  known("Max", "neighbours beyond float32",
        {of(DType::int32, {16777216}), of(DType::int32, {16777217})}, {16777217});
  const CaseInput x = of(DType::float64, {-infinity, infinity, nan, 0, 1e300});
  known("IsInf", "float64", {x}, {1, 1, 0, 0, 0});
  known("IsInf", "float64, positive", {x}, {0, 1, 0, 0, 0}, {{"detect_negative", std::int64_t{0}}});
  known("IsNaN", "float64", {x}, {0, 0, 1, 0, 0});
  known("Greater", "float64", {of(DType::float64, {1, 2, nan}), of(DType::float64, {1, 1, 0})},
        {0, 1, 0});
  known("Add", "float64", {of(DType::float64, {0.5, 1e300}), of(DType::float64, {0.25, 1e300})},
        {0.75, 2e300});
}

}  // namespace

void add_typed_cases(std::vector<OperatorCase>& cases) {
  add_broadcast_forms(cases);
  add_long_casts(cases);
  add_ends(cases);
}

}  // namespace tandem::testing
