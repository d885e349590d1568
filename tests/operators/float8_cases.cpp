// Cases of conversions to and from 8-bit floats. Known numbers are those of ml_dtypes
// (tests/scripts/float8_values.py, whose file float8_test.cpp reads).
#include <limits>

#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

namespace {

// Operators that move elements by their size accept 8-bit floats, too.
void add_float8_moves(std::vector<OperatorCase>& cases) {
  const DType dtype = DType::float8_e5m2;
  const std::string name(name_of(dtype));
  const CaseInput x = typed(dtype, {4, 6});
  const auto add = [&](const char* op, std::vector<CaseInput> inputs, Attributes attributes = {}) {
    cases.push_back(make_case(op, name, std::move(inputs), std::move(attributes)));
  };
  add("Identity", {x});
  add("Reshape", {x}, {{"shape", Ints{3, 8}}});
  add("Expand", {typed(dtype, {4, 1})}, {{"shape", Ints{4, 6}}});
  add("Slice", {x}, {{"starts", Ints{3, 1}}, {"sizes", Ints{2, 3}}, {"steps", Ints{-2, 2}}});
  add("Split", {x}, {{"axis", std::int64_t{1}}, {"sizes", Ints{2, 4}}});
  add("Concat", {x, typed(dtype, {1, 6})}, {{"axis", std::int64_t{0}}});
  add("Gather", {x, values({3}, {5, 0, -1}, DType::int64)}, {{"axis", std::int64_t{1}}});
  add("BitCast", {x}, {{"to", std::string("uint8")}});
}

}  // namespace

void add_float8_cases(std::vector<OperatorCase>& cases) {
  add_float8_moves(cases);
  const DType all[] = {DType::float8_e4m3fn, DType::float8_e4m3fnuz, DType::float8_e5m2,
                       DType::float8_e5m2fnuz, DType::float8_e8m0fnu};
  const auto to = [](DType dtype, std::int64_t saturate = 1, const char* rounding = "up") {
    return Attributes{{"to", std::string(name_of(dtype))},
                      {"saturate", saturate},
                      {"rounding", std::string(rounding)}};
  };
  // Only float32 is rounded to 8 bits.
  const auto fixed = [](CaseInput input) {
    input.fixed = true;
    return input;
  };
  for (const DType dtype : all) {
    const std::string name(name_of(dtype));
    const double low = dtype == DType::float8_e8m0fnu ? 0.1 : -5;
    for (const Shape& shape :
         {Shape{3, 5}, Shape{}, Shape{0, 3}, Shape{2, 3, 4}, Shape{300, 500}}) {
      const std::string of = name + " " + to_string(shape);
      cases.push_back(make_case("ToFloat8", of, {fixed(uniform(shape, low, 5))}, to(dtype)));
      cases.push_back(make_case("FromFloat8", of, {typed(dtype, shape, low, 6)}));
    }
  }
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const CaseInput x = fixed(values({6}, {0.3, -17, 500, -1e6, 1e-9, 2}));
  const auto known = [&](const char* name, Attributes attributes, std::vector<double> y) {
    cases.push_back(
        expecting(make_case("ToFloat8", name, {x}, std::move(attributes)), std::move(y)));
  };
  known("saturating", to(DType::float8_e4m3fn), {0.3125, -16, 448, -448, 0, 2});
  known("to NaN", to(DType::float8_e4m3fn, 0), {0.3125, -16, nan, nan, 0, 2});
  const CaseInput scales = fixed(values({4}, {3, 0.3, 2.5, 1}));
  const auto power = [&](const char* rounding, std::vector<double> y) {
    cases.push_back(expecting(make_case("ToFloat8", std::string("powers ") + rounding, {scales},
                                        to(DType::float8_e8m0fnu, 1, rounding)),
                              std::move(y)));
  };
  power("up", {4, 0.5, 4, 1});
  power("down", {2, 0.25, 2, 1});
  power("nearest", {4, 0.25, 2, 1});
  cases.push_back(
      expecting(make_case("FromFloat8", "known",
                          {values({4}, {448, -0.001953125, 0.3125, nan}, DType::float8_e4m3fn)}),
                {448, -0.001953125, 0.3125, nan}));
}

}  // namespace tandem::testing
