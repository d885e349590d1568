// Rows of ONNX's functions of one number, of remainders and of bits: what they mean in double
// arithmetic.
#include <algorithm>
#include <cmath>

#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<VersionRow>;
using Given = std::vector<std::pair<std::string, NodeAttribute>>;

// In every float that the versions know; numbers that 16 bits hold exactly.
void add_real(Rows& rows) {
  struct Real {
    const char* op;
    double (*f)(double);
    Numbers x = {-2.5, -0.5, 0, 0.75, 1.5, 3.5};
    Given attributes = {};
  };
  const Numbers inside = {-0.75, -0.5, 0, 0.25, 0.5, 0.75};
  const std::vector<Real> list{
      {"Sin", [](double x) { return std::sin(x); }},
      {"Cos", [](double x) { return std::cos(x); }},
      {"Tan", [](double x) { return std::tan(x); }, inside},
      {"Asin", [](double x) { return std::asin(x); }, inside},
      {"Acos", [](double x) { return std::acos(x); }, inside},
      {"Atan", [](double x) { return std::atan(x); }},
      {"Sinh", [](double x) { return std::sinh(x); }},
      {"Cosh", [](double x) { return std::cosh(x); }},
      {"Asinh", [](double x) { return std::asinh(x); }},
      {"Acosh", [](double x) { return std::acosh(x); }, {1, 1.25, 1.5, 2, 3, 8}},
      {"Atanh", [](double x) { return std::atanh(x); }, inside},
      {"Floor", [](double x) { return std::floor(x); }},
      {"Ceil", [](double x) { return std::ceil(x); }},
      {"Round", [](double x) { return std::nearbyint(x); }},  // halves to even
      {"Elu", [](double x) { return x > 0 ? x : std::expm1(x); }},
      {"Elu",
       [](double x) { return x > 0 ? x : 0.25 * std::expm1(x); },
       {-8, -0.5, 0, 0.75, 1, 9},
       {{"alpha", 0.25}}},
      {"Selu",
       [](double x) {
         return 1.05070102214813232 * (x > 0 ? x : 1.67326319217681885 * std::expm1(x));
       }},
      {"Selu",
       [](double x) { return 3 * (x > 0 ? x : 2 * std::expm1(x)); },
       inside,
       {{"alpha", 2.0}, {"gamma", 3.0}}},
      {"Celu", [](double x) { return x > 0 ? x : std::expm1(x); }},
      {"Celu",
       [](double x) { return x > 0 ? x : 2 * std::expm1(x / 2); },
       inside,
       {{"alpha", 2.0}}},
      {"HardSigmoid", [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }},
      {"HardSigmoid",
       [](double x) { return std::clamp(0.5 * x + 0.25, 0.0, 1.0); },
       {-2.5, -0.5, 0, 0.75, 1.5, 3.5},
       {{"alpha", 0.5}, {"beta", 0.25}}},
      {"HardSwish",
       [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); },
       {-3.5, -3, -1, 0.5, 3, 4}},
      {"Mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
      {"Swish", [](double x) { return x / (1 + std::exp(-x)); }},
      {"Swish",
       [](double x) { return x / (1 + std::exp(-0.5 * x)); },
       {-2.5, -0.5, 0, 0.75, 1.5, 3.5},
       {{"alpha", 0.5}}},
      {"Softsign", [](double x) { return x / (1 + std::abs(x)); }},
      {"ThresholdedRelu", [](double x) { return x > 1 ? x : 0; }, {-2, 0.5, 1, 1.5, 3, 8}},
      {"ThresholdedRelu",
       [](double x) { return x > -0.5 ? x : 0; },
       {-2.5, -0.5, 0, 0.75, 1.5, 3.5},
       {{"alpha", -0.5}}},
      {"Shrink", [](double x) { return std::abs(x) > 0.5 ? x : 0; }},
      {"Shrink",
       [](double x) { return x < -1.5  ? x + 0.25
                             : x > 1.5 ? x - 0.25
                                       : 0; },
       {-2.5, -1.5, 0, 0.75, 1.5, 3.5},
       {{"lambd", 1.5}, {"bias", 0.25}}},
  };
  for (const Real& real : list) {
    for (DType dtype : {f32, f64, f16, bf16}) {
      const HostTensor x = typed(dtype, {2, 3}, real.x);
      rows.push_back({.op = real.op,
                      .inputs = {x},
                      .attributes = real.attributes,
                      .outputs = {map(x, real.f)},
                      .note = real.attributes.empty() ? "" : "attributes"});
    }
  }
  const HostTensor whole = integers({5}, {-3, -1, 0, 1, 4});
  rows.push_back({.op = "Shrink",
                  .inputs = {whole},
                  .attributes = {{"lambd", 1.5}, {"bias", 1.0}},
                  .outputs = {integers({5}, {-2, 0, 0, 0, 3})},
                  .note = "integers"});
}

void add_classes(Rows& rows) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (DType dtype : {f32, f64, f16, bf16}) {
    const HostTensor x = typed(dtype, {5}, {-infinity, -1, nan, 0, infinity});
    rows.push_back({.op = "IsNaN", .inputs = {x}, .outputs = {booleans({5}, {0, 0, 1, 0, 0})}});
    rows.push_back({.op = "IsInf", .inputs = {x}, .outputs = {booleans({5}, {1, 0, 0, 0, 1})}});
    rows.push_back({.op = "IsInf",
                    .inputs = {x},
                    .attributes = {{"detect_negative", 0}},
                    .outputs = {booleans({5}, {0, 0, 0, 0, 1})},
                    .note = "of positive sign"});
    rows.push_back({.op = "IsInf",
                    .inputs = {x},
                    .attributes = {{"detect_positive", 0}},
                    .outputs = {booleans({5}, {1, 0, 0, 0, 0})},
                    .note = "of negative sign"});
  }
}

// A slope for each channel in version 6, broadcast from 7 on, integers from 9.
void add_prelu(Rows& rows) {
  for (DType dtype : {f32, f64, f16, bf16, DType::int32, DType::int64}) {
    const HostTensor x = typed(dtype, {2, 3}, {-2, 0, 3, -4, -6, 8});
    rows.push_back({.op = "PRelu",
                    .inputs = {x, typed(dtype, {3}, {3, 2, 5})},
                    .outputs = {typed(dtype, {2, 3}, {-6, 0, 3, -12, -12, 8})}});
  }
  rows.push_back({.op = "PRelu",
                  .inputs = {floats({1, 2, 2}, {-2, 4, -6, -8}), floats({2, 1}, {0.5, 0.25})},
                  .outputs = {floats({1, 2, 2}, {-1, 4, -1.5, -2})},
                  .note = "channels"});
}

void add_bits(Rows& rows) {
  for (DType dtype : {DType::int8, DType::int16, DType::int32, DType::int64, DType::uint8,
                      DType::uint16, DType::uint32, DType::uint64}) {
    const HostTensor a = typed(dtype, {2, 2}, {12, 10, 7, 1}), b = typed(dtype, {2}, {10, 3});
    rows.push_back(
        {.op = "BitwiseAnd", .inputs = {a, b}, .outputs = {typed(dtype, {2, 2}, {8, 2, 2, 1})}});
    rows.push_back(
        {.op = "BitwiseOr", .inputs = {a, b}, .outputs = {typed(dtype, {2, 2}, {14, 11, 15, 3})}});
    rows.push_back(
        {.op = "BitwiseXor", .inputs = {a, b}, .outputs = {typed(dtype, {2, 2}, {6, 9, 13, 2})}});
    rows.push_back({.op = "BitShift",
                    .inputs = {a, typed(dtype, {2}, {1, 2})},
                    .attributes = {{"direction", "LEFT"}},
                    .outputs = {typed(dtype, {2, 2}, {24, 40, 14, 4})},
                    .note = dtype >= DType::uint8 ? "left" : "left, signed"});
    rows.push_back({.op = "BitShift",
                    .inputs = {a, typed(dtype, {2}, {1, 2})},
                    .attributes = {{"direction", "RIGHT"}},
                    .outputs = {typed(dtype, {2, 2}, {6, 2, 3, 0})},
                    .note = dtype >= DType::uint8 ? "right" : "right, signed"});
  }
  rows.push_back({.op = "BitwiseNot",
                  .inputs = {typed(DType::int8, {3}, {0, 5, -128})},
                  .outputs = {typed(DType::int8, {3}, {-1, -6, 127})}});
  rows.push_back({.op = "BitwiseNot",
                  .inputs = {typed(DType::uint16, {2}, {0, 5})},
                  .outputs = {typed(DType::uint16, {2}, {65535, 65530})}});
  // Negative places and too many of them leave only what the sign gives.
  const HostTensor signed_x = typed(DType::int32, {5}, {-8, -8, -8, 8, 8});
  const HostTensor places = typed(DType::int32, {5}, {1, 40, -1, 40, -1});
  rows.push_back({.op = "BitShift",
                  .inputs = {signed_x, places},
                  .attributes = {{"direction", "RIGHT"}},
                  .outputs = {typed(DType::int32, {5}, {-4, -1, -1, 0, 0})},
                  .note = "right, beyond the bits"});
  rows.push_back({.op = "BitShift",
                  .inputs = {signed_x, places},
                  .attributes = {{"direction", "LEFT"}},
                  .outputs = {typed(DType::int32, {5}, {-16, 0, 0, 0, 0})},
                  .note = "left, beyond the bits"});
  rows.push_back({.op = "BitShift",
                  .inputs = {typed(DType::uint8, {1}, {4}), typed(DType::uint8, {1}, {1})},
                  .attributes = {{"direction", "UP"}},
                  .note = "no direction",
                  .refused = "LEFT or RIGHT"});
}

}  // namespace

void add_functions_rows(std::vector<VersionRow>& rows) {
  add_real(rows);
  add_classes(rows);
  add_prelu(rows);
  add_bits(rows);
}

}  // namespace tandem::testing
