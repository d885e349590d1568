// Rows of element-wise operators; what they mean in double arithmetic.
#include <algorithm>
#include <cmath>

#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<VersionRow>;

// Each in every type that its versions know; numbers that 16 bits hold exactly.
void add_unary(Rows& rows) {
  struct Unary {
    const char* op;
    double (*f)(double);
    bool known = false, integers = false;
  };
  const std::vector<Unary> list{
      {"Neg", [](double x) { return -x; }, false, true},
      {"Abs", [](double x) { return std::abs(x); }, false, true},
      {"Sign", [](double x) { return double(x > 0) - double(x < 0); }, false, true},
      {"Relu", [](double x) { return std::max(x, 0.0); }, false, true},
      {"Exp", [](double x) { return std::exp(x); }},
      {"Log", [](double x) { return std::log(x); }},
      {"Sqrt", [](double x) { return std::sqrt(x); }},
      {"Reciprocal", [](double x) { return 1 / x; }},
      {"Erf", [](double x) { return std::erf(x); }},
      {"Tanh", [](double x) { return std::tanh(x); }},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Softplus", [](double x) { return std::log1p(std::exp(x)); }},
      {"Floor", [](double x) { return std::floor(x); }, true},  // also where shapes are computed
      {"Ceil", [](double x) { return std::ceil(x); }, true},
      {"Round", [](double x) { return std::nearbyint(x); }, true},
      {"LeakyRelu", [](double x) { return x < 0 ? 0.01 * x : x; }},
  };
  for (const Unary& unary : list) {
    const std::string op = unary.op;
    const bool positive = op == "Log" || op == "Sqrt";
    const Numbers values =
        positive ? Numbers{0.25, 0.5, 1, 1.5, 2.5, 8} : Numbers{-2.5, -0.5, 0.75, 1, 1.5, 2.5};
    for (DType dtype : {f32, f64, f16, bf16}) {
      const HostTensor x = typed(dtype, {2, 3}, values);
      rows.push_back({.op = op, .inputs = {x}, .outputs = {map(x, unary.f)}, .known = unary.known});
    }
    if (!unary.integers) continue;
    for (DType dtype : {DType::int8, i32, i64}) {
      const HostTensor x = typed(dtype, {2, 2}, {-7, 0, 3, 100});
      rows.push_back({.op = op, .inputs = {x}, .outputs = {map(x, unary.f)}, .note = "integers"});
    }
  }
  const HostTensor x = floats({4}, {-2, -0.5, 0, 3});
  const auto leaky = [](double v) { return v < 0 ? 0.3 * v : v; };
  rows.push_back({.op = "LeakyRelu",
                  .inputs = {x},
                  .attributes = {{"alpha", 0.3}},
                  .outputs = {map(x, leaky)},
                  .note = "alpha"});
  const auto exact = [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); };
  const auto by_tanh = [](double v) {
    return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  };
  rows.push_back({.op = "Gelu", .inputs = {x}, .outputs = {map(x, exact)}});
  rows.push_back({.op = "Gelu",
                  .inputs = {x},
                  .attributes = {{"approximate", "tanh"}},
                  .outputs = {map(x, by_tanh)},
                  .note = "tanh"});
  const HostTensor flags = booleans({2, 2}, {0, 1, 1, 0});
  rows.push_back({.op = "Not", .inputs = {flags}, .outputs = {booleans({2, 2}, {1, 0, 0, 1})}});
}

// From version 7 on the shapes broadcast from both sides.
void add_binary(Rows& rows) {
  struct Binary {
    const char* op;
    double (*f)(double, double);
    bool compares = false;
  };
  const std::vector<Binary> list{
      {"Add", [](double a, double b) { return a + b; }},
      {"Sub", [](double a, double b) { return a - b; }},
      {"Mul", [](double a, double b) { return a * b; }},
      {"Div", [](double a, double b) { return a / b; }},
      {"Pow", [](double a, double b) { return std::pow(a, b); }},
      {"Equal", [](double a, double b) { return double(a == b); }, true},
      {"Less", [](double a, double b) { return double(a < b); }, true},
      {"Greater", [](double a, double b) { return double(a > b); }, true},
      {"LessOrEqual", [](double a, double b) { return double(a <= b); }, true},
      {"GreaterOrEqual", [](double a, double b) { return double(a >= b); }, true},
  };
  for (const Binary& binary : list) {
    for (DType dtype : {f32, f64, f16, bf16, i32, i64, DType::uint8}) {
      const bool whole = !is_float(dtype);
      const HostTensor a = typed(dtype, {2, 3}, {1, 2, 8, 4, 6, 12});
      const HostTensor b = typed(dtype, {3}, {1, 2, 4});
      const auto result = [&](double x, double y) {
        const double value = binary.f(x, y);
        return whole && !binary.compares ? std::trunc(value) : value;
      };
      const DType type = binary.compares ? DType::boolean : dtype;
      rows.push_back({.op = binary.op, .inputs = {a, b}, .outputs = {map(a, b, type, result)}});
      if (std::string(binary.op) == "Mul") {
        rows.push_back({.op = "Mul", .inputs = {b, a}, .outputs = {map(a, b, type, result)}});
      }
    }
  }
  struct Logical {
    const char* op;
    Numbers result;
  };
  const HostTensor p = booleans({2, 2}, {0, 0, 1, 1}), q = booleans({2}, {0, 1});
  for (const Logical& logical : std::vector<Logical>{{"And", {0, 0, 0, 1}},
                                                     {"Or", {0, 1, 1, 1}},
                                                     {"Xor", {0, 1, 1, 0}},
                                                     {"Equal", {1, 0, 0, 1}}}) {
    rows.push_back({.op = logical.op,
                    .inputs = {p, q},
                    .outputs = {booleans({2, 2}, logical.result)},
                    .note = "bool"});
  }
  // 12: the exponent has a type of its own; the result has the base's.
  const HostTensor base = typed(i32, {3}, {2, 3, -4});
  rows.push_back({.op = "Pow",
                  .first = 12,
                  .inputs = {base, floats({3}, {3, 2, 2})},
                  .outputs = {typed(i32, {3}, {8, 9, 16})},
                  .note = "integer base, real exponent"});
  rows.push_back({.op = "Pow",
                  .first = 12,
                  .inputs = {floats({3}, {0.5, 1.5, -2}), integers({3, 2, 3})},
                  .outputs = {floats({3}, {0.125, 2.25, -8})},
                  .note = "real base, integer exponent"});
}

// Variadic ones: equal shapes in version 6, broadcast from 8, integers from 12 (Max, Min).
void add_variadic(Rows& rows) {
  struct Variadic {
    const char* op;
    double (*f)(double, double);
    double scale = 1;  // factor of the result over three operands
  };
  const std::vector<Variadic> list{
      {"Max", [](double a, double b) { return std::max(a, b); }},
      {"Min", [](double a, double b) { return std::min(a, b); }},
      {"Sum", [](double a, double b) { return a + b; }},
      {"Mean", [](double a, double b) { return a + b; }, 1.0 / 3},
  };
  for (const Variadic& variadic : list) {
    const auto expect = [&](const HostTensor& a, const HostTensor& b, const HostTensor& c) {
      const HostTensor sum = map(map(a, b, f64, variadic.f), c, f64, variadic.f);
      return map(sum, [&](double x) { return x * variadic.scale; }).converted(a.dtype());
    };
    const auto add = [&](int first, std::vector<HostTensor> x, const std::string& note) {
      const HostTensor y = expect(x[0], x[1], x[2]);
      rows.push_back({.op = variadic.op,
                      .first = first,
                      .inputs = std::move(x),
                      .outputs = {y},
                      .note = note});
    };
    for (DType dtype : {f32, f64, bf16, i32, i64}) {
      const HostTensor a = typed(dtype, {2, 2}, {1, -2, 3, 4}),
                       b = typed(dtype, {2, 2}, {0, 7, -3, 4}),
                       c = typed(dtype, {2, 2}, {5, 1, 9, -8});
      add(1, {a, b, c}, "equal shapes");
      add(8, {a, typed(dtype, {2}, {-1, 5}), typed(dtype, {}, {3})}, "broadcast");
    }
    const HostTensor one = floats({2}, {1, -2});
    rows.push_back({.op = variadic.op, .inputs = {one}, .outputs = {one}, .note = "one operand"});
  }
}

// Bounds: attributes in version 6; inputs, each optional, from 11; integers from 12.
void add_clip(Rows& rows) {
  const HostTensor x = floats({5}, {-3, -1, 0, 0.5, 7});
  const auto add = [&](int first, int last, std::vector<HostTensor> inputs, double low, double high,
                       const std::string& note,
                       std::vector<std::pair<std::string, NodeAttribute>> attributes = {}) {
    const HostTensor y = map(inputs[0], [&](double v) { return std::min(std::max(v, low), high); });
    rows.push_back({.op = "Clip",
                    .first = first,
                    .last = last,
                    .inputs = std::move(inputs),
                    .attributes = std::move(attributes),
                    .outputs = {y},
                    .note = note});
  };
  const double infinity = std::numeric_limits<double>::infinity();
  add(6, 6, {x}, -1.5, 0.25, "attributes", {{"min", -1.5}, {"max", 0.25}});
  add(6, 6, {x}, -infinity, 0.25, "one attribute", {{"max", 0.25}});
  add(1, newest, {x}, -infinity, infinity, "no bounds");
  add(11, newest, {x, floats({}, {-1.5}), floats({}, {0.25})}, -1.5, 0.25, "inputs");
  add(11, newest, {x, HostTensor(), floats({}, {0.25})}, -infinity, 0.25, "maximum alone");
  add(11, newest, {x, floats({}, {-1.5})}, -1.5, infinity, "minimum alone");
  for (DType dtype : {i32, i64, DType::uint8, bf16}) {
    add(12, newest,
        {typed(dtype, {4}, {0, 3, 9, 100}), typed(dtype, {}, {2}), typed(dtype, {}, {50})}, 2, 50,
        "other types");
  }
  rows.push_back({.op = "Clip",
                  .first = 11,
                  .inputs = {x},
                  .attributes = {{"max", 0.25}},
                  .note = "attributes no more",
                  .refused = "max"});
}

void add_where(Rows& rows) {
  const HostTensor flags = booleans({2, 1}, {1, 0});
  for (DType dtype : {f32, f64, bf16, i32, i64, DType::uint8}) {
    const HostTensor x = typed(dtype, {2, 2}, {1, 2, 3, 4}), y = typed(dtype, {2}, {7, 8});
    rows.push_back(
        {.op = "Where", .inputs = {flags, x, y}, .outputs = {typed(dtype, {2, 2}, {1, 2, 7, 8})}});
  }
}

}  // namespace

void add_elementwise_rows(std::vector<VersionRow>& rows) {
  add_unary(rows);
  add_binary(rows);
  add_variadic(rows);
  add_clip(rows);
  add_where(rows);
}

}  // namespace tandem::testing
