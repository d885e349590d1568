// Cases of the element-wise operators.
#include <cmath>

#include "tests/harness/scalar_examples.h"
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

namespace {

void add_unary(std::vector<OperatorCase>& cases) {
  // Shapes for every operator of one operand: empty, a scalar, more than a vector register.
  const auto shapes = [&](const std::string& op, double low, double high,
                          Attributes attributes = {}) {
    cases.push_back(make_case(op, "matrix", {uniform({3, 5}, low, high)}, attributes));
    cases.push_back(make_case(op, "scalar", {uniform({}, low, high)}, attributes));
    cases.push_back(make_case(op, "empty", {uniform({2, 0, 3}, low, high)}, attributes));
    cases.push_back(make_case(op, "maps", {uniform({2, 3, 4, 5}, low, high)}, attributes));
    cases.push_back(make_case(op, "long", {uniform({517}, low, high)}, attributes));
  };
  for (const ScalarRow& row : scalar_rows()) {
    if (row.kind().operands != 1 || !takes_floats(row)) continue;
    const auto [low, high] = example_range(row);
    shapes(row.name, low, high);
    int n = 0;
    for (const Attributes& attributes : example_attributes(row)) {
      cases.push_back(make_case(row.name, "attributes " + std::to_string(n++),
                                {uniform({4, 9}, low, high)}, attributes));
    }
  }
  cases.push_back(make_case("LeakyRelu", "alpha", {uniform({4, 9})}, {{"alpha", 0.3}}));
  cases.push_back(make_case("LeakyRelu", "alpha 0", {uniform({4, 9})}, {{"alpha", 0.0}}));
  cases.push_back(
      make_case("Gelu", "tanh", {uniform({4, 9}, -3, 3)}, {{"approximate", std::string("tanh")}}));
  cases.push_back(make_case("Clip", "min only", {uniform({4, 9})}, {{"min", 0.0}}));
  cases.push_back(make_case("Clip", "max only", {uniform({4, 9})}, {{"max", 0.25}}));
  cases.push_back(make_case("Clip", "unbounded", {uniform({4, 9})}));
  cases.push_back(expecting(
      make_case("Clip", "min above max", {values({3}, {-2, 0, 6})}, {{"min", 2.0}, {"max", 1.0}}),
      {1, 1, 1}));

  // Computed with PyTorch's nn.functional.gelu and torch.erf.
  cases.push_back(expecting(make_case("Gelu", "known", {values({3}, {-1, 0.5, 2})}),
                            {-0.15865525393146, 0.34573123063700656, 1.9544997361036416}));
  cases.push_back(expecting(make_case("Gelu", "known tanh", {values({3}, {-1, 0.5, 2})},
                                      {{"approximate", std::string("tanh")}}),
                            {-0.15880800939172324, 0.34571400982514394, 1.954597694087775}));
  cases.push_back(expecting(make_case("Erf", "known", {values({3}, {-1, 0.5, 2})}),
                            {-0.8427007929497149, 0.5204998778130465, 0.9953222650189527}));

  const auto edges = [&](const char* op, std::vector<double> x, std::vector<double> y) {
    const auto count = static_cast<std::int64_t>(x.size());
    cases.push_back(without_gradient(
        expecting(make_case(op, "edges", {values({count}, std::move(x))}), std::move(y)),
        "differences overflow"));
  };
  edges("Exp", {-200, 88, -infinity, infinity}, {0, std::exp(88.0), 0, infinity});
  edges("Softplus", {-200, 200, 0}, {0, 200, std::log(2.0)});
  edges("Sigmoid", {-200, 200, 0}, {0, 1, 0.5});
  edges("Tanh", {-200, 200, 0}, {-1, 1, 0});
  edges("Log", {0, 1, infinity}, {-infinity, 0, infinity});
  edges("Relu", {-infinity, -0.0, infinity, nan}, {0, 0, infinity, nan});
  edges("Sign", {-infinity, 0, infinity, nan}, {-1, 0, 1, nan});

  for (DType dtype : {DType::int8, DType::int32, DType::int64}) {
    for (const ScalarRow& row : scalar_rows()) {
      if (row.kind().operands != 1 || !takes(row.kind().types, dtype)) continue;
      cases.push_back(make_case(row.name, std::string(name_of(dtype)), {typed(dtype, {3, 4})}));
    }
    cases.push_back(make_case("Clip", "bounds of " + std::string(name_of(dtype)),
                              {typed(dtype, {3, 4})}, {{"min", -2.0}, {"max", 3.0}}));
    cases.push_back(make_case("Shrink", "bounds of " + std::string(name_of(dtype)),
                              {typed(dtype, {3, 4})}, {{"bias", 1.0}, {"lambd", 2.0}}));
  }
  for (DType dtype : {DType::float16, DType::bfloat16}) {
    for (const char* op : {"Neg", "Exp", "Tanh", "Gelu", "Relu", "Softplus"}) {
      cases.push_back(
          coarse(make_case(op, std::string(name_of(dtype)), {typed(dtype, {3, 4}, -2, 2)})));
    }
  }
  cases.push_back(make_case("Not", "matrix", {typed(DType::boolean, {3, 5})}));
}

void add_binary(std::vector<OperatorCase>& cases) {
  // (name, shapes of a and b)
  const std::vector<std::tuple<std::string, Shape, Shape>> shapes = {
      {"same", {3, 5}, {3, 5}},
      {"scalar b", {3, 5}, {}},
      {"scalar a", {}, {3, 5}},
      {"scalars", {}, {}},
      {"row", {3, 5}, {5}},
      {"column", {3, 5}, {3, 1}},
      {"both", {3, 1, 4}, {2, 1}},
      {"empty", {0, 4}, {1, 4}},
      {"bias of maps", {2, 3, 4, 5}, {3, 1, 1}},
      {"long", {517}, {517}}};
  for (const auto& [name, a, b] : shapes) {
    for (const ScalarRow& row : scalar_rows()) {
      if (row.kind().operands != 2 || row.options.with != nullptr) continue;
      const std::string op = row.name;
      std::vector<CaseInput> inputs{uniform(a), uniform(b)};
      if (op == "Div" || op == "Mod") inputs[1] = filled(b, Fill::positive);
      for (const DType dtype : {DType::boolean, DType::int32}) {
        if (takes(row.kind().types, DType::float32) || !takes(row.kind().types, dtype)) continue;
        inputs = {typed(dtype, a), typed(dtype, b)};
      }
      int n = 0;
      for (const Attributes& attributes : example_attributes(row)) {
        cases.push_back(
            make_case(op, n == 0 ? name : name + " " + std::to_string(n), inputs, attributes));
        ++n;
      }
    }
    cases.push_back(make_case("Pow", name, {filled(a, Fill::positive), uniform(b, -2, 3)}));
  }

  // Ties, and NaN as in numpy.
  const CaseInput left = values({5}, {1, 2, nan, 3, infinity}),
                  right = values({5}, {1, 1, 0, nan, 4});
  const auto edges = [&](const char* op, std::vector<double> y) {
    cases.push_back(without_gradient(expecting(make_case(op, "edges", {left, right}), std::move(y)),
                                     "not smooth"));
  };
  edges("Max", {1, 2, nan, nan, infinity});
  edges("Min", {1, 1, nan, nan, 4});
  edges("Equal", {1, 0, 0, 0, 0});
  edges("Less", {0, 0, 0, 0, 0});
  edges("Greater", {0, 1, 0, 0, 1});
  edges("LessOrEqual", {1, 0, 0, 0, 0});
  edges("GreaterOrEqual", {1, 1, 0, 0, 1});

  // Powers: negative bases, x = 0 with a slope of 0, exponents of another type.
  cases.push_back(make_case(
      "Pow", "squares of any sign",
      {uniform({3, 4}),
       CaseInput{.shape = {}, .fill = Fill::values, .values = {2}, .differentiable = false}}));
  cases.push_back(make_case(
      "Pow", "at 0",
      {values({4}, {0, 0, 0, 2}),
       CaseInput{
           .shape = {4}, .fill = Fill::values, .values = {2, 3, 0, 0}, .differentiable = false}}));
  cases.push_back(make_case("Pow", "cubes of any sign, int64 exponent",
                            {uniform({3, 4}), values({}, {3}, DType::int64)}));
  cases.push_back(expecting(make_case("Pow", "int32 base and exponent",
                                      {values({4}, {2, -3, 5, 7}, DType::int32),
                                       values({4}, {10, 3, 0, -1}, DType::int32)}),
                            {1024, -27, 1, 0}));
  cases.push_back(expecting(
      make_case(
          "Pow", "int64 base, float32 exponent",
          {values({3}, {1, 2, 3}, DType::int64),
           CaseInput{
               .shape = {3}, .fill = Fill::values, .values = {4, 5, 6}, .differentiable = false}}),
      {1, 32, 729}));

  for (DType dtype : {DType::int8, DType::int16, DType::int32, DType::int64, DType::uint8,
                      DType::uint16, DType::uint32, DType::uint64}) {
    const double low = dtype >= DType::uint8 ? 0 : -9;
    for (const ScalarRow& row : scalar_rows()) {
      if (row.kind().operands != 2 || !takes(row.kind().types, dtype)) continue;
      int n = 0;
      for (const Attributes& attributes : example_attributes(row)) {
        cases.push_back(
            make_case(row.name, std::string(name_of(dtype)) + (n == 0 ? "" : std::to_string(n)),
                      {typed(dtype, {3, 4}, low, 10), typed(dtype, {4}, 1, 10)}, attributes));
        ++n;
      }
    }
  }
  cases.push_back(expecting(make_case("Div", "truncates",
                                      {values({4}, {7, -7, 7, -7}, DType::int32),
                                       values({4}, {2, 2, -2, -2}, DType::int32)}),
                            {3, -3, -3, 3}));
  // A quotient by 0 is 0; the lowest number divided by -1 wraps around to itself.
  for (const auto& [dtype, lowest] : {std::pair{DType::int8, -128.0},
                                      {DType::int16, -32768.0},
                                      {DType::int32, -2147483648.0},
                                      {DType::int64, -9223372036854775808.0}}) {
    cases.push_back(expecting(make_case("Div", "ends of " + std::string(name_of(dtype)),
                                        {values({6}, {7, -7, 0, lowest, lowest, lowest}, dtype),
                                         values({6}, {0, 0, 0, 0, -1, 1}, dtype)}),
                              {0, 0, 0, 0, lowest, lowest}));
  }
  for (const DType dtype : {DType::uint8, DType::uint16, DType::uint32, DType::uint64}) {
    cases.push_back(
        expecting(make_case("Div", "by 0 of " + std::string(name_of(dtype)),
                            {values({3}, {7, 0, 255}, dtype), values({3}, {0, 0, 2}, dtype)}),
                  {0, 0, 127}));
  }
  cases.push_back(expecting(
      make_case("Add", "wraps around",
                {values({2}, {200, 255}, DType::uint8), values({2}, {100, 1}, DType::uint8)}),
      {44, 0}));
  for (DType dtype : {DType::float16, DType::bfloat16}) {
    for (const char* op : {"Add", "Sub", "Mul", "Max", "Min", "Less"}) {
      cases.push_back(coarse(make_case(op, std::string(name_of(dtype)),
                                       {typed(dtype, {3, 4}, -2, 2), typed(dtype, {4}, -2, 2)})));
    }
  }
  cases.push_back(
      make_case("Equal", "bool", {typed(DType::boolean, {9}), typed(DType::boolean, {9})}));
}

void add_where(std::vector<OperatorCase>& cases) {
  const auto condition = [](Shape shape) { return typed(DType::boolean, std::move(shape)); };
  cases.push_back(
      make_case("Where", "same", {condition({3, 5}), uniform({3, 5}), uniform({3, 5})}));
  cases.push_back(
      make_case("Where", "all broadcast", {condition({4, 1, 1}), uniform({3, 1}), uniform({5})}));
  cases.push_back(make_case("Where", "mask and scalar",
                            {condition({1, 1, 6, 6}), uniform({2, 3, 6, 6}), uniform({})}));
  cases.push_back(
      make_case("Where", "scalar condition", {condition({}), uniform({7}), uniform({7})}));
  cases.push_back(make_case("Where", "empty", {condition({0}), uniform({0}), uniform({1})}));
  for (DType dtype : {DType::int64, DType::uint8, DType::boolean, DType::float16}) {
    cases.push_back(
        make_case("Where", std::string(name_of(dtype)),
                  {condition({3, 4}), typed(dtype, {3, 4}, 0, 9), typed(dtype, {4}, 0, 9)}));
  }
}

void add_casts(std::vector<OperatorCase>& cases) {
  const auto to = [](DType dtype) { return Attributes{{"to", std::string(name_of(dtype))}}; };
  for (int i = 0; i <= static_cast<int>(DType::boolean); ++i) {
    const auto other = static_cast<DType>(i);
    const std::string name(name_of(other));
    if (other == DType::float32 || other == DType::float64) continue;  // tested by the harness
    cases.push_back(coarse(without_gradient(
        make_case("Cast", "to " + name, {uniform({3, 5}, 0, 7)}, to(other)), "rounds")));
    cases.push_back(
        make_case("Cast", "from " + name, {typed(other, {3, 5}, 0, 7)}, to(DType::float64)));
  }
  for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{2, 1, 4}, Shape{0, 3}}) {
    cases.push_back(
        make_case("Cast", to_string(shape) + " to float64", {uniform(shape)}, to(DType::float64)));
  }
  cases.push_back(
      without_gradient(make_case("Cast", "to float32", {uniform({3, 5})}, to(DType::float32)),
                       "differences are lost in float32"));
  cases.push_back(
      expecting(make_case("Cast", "truncates and saturates",
                          {values({6}, {-1.9, 2.9, 300, -300, nan, infinity})}, to(DType::int8)),
                {-1, 2, 127, -128, 0, 127}));
  cases.push_back(expecting(make_case("Cast", "to bool of fractions",
                                      {values({4}, {0.25, 0, -0.5, nan})}, to(DType::boolean)),
                            {1, 0, 1, 1}));
  cases.push_back(
      make_case("Cast", "int64 to int32", {typed(DType::int64, {3, 4})}, to(DType::int32)));
  cases.push_back(make_case("Cast", "scalar", {typed(DType::int64, {})}, to(DType::int32)));
  cases.push_back(make_case("Cast", "empty", {typed(DType::int64, {0, 2})}, to(DType::int32)));
}

void add_gradient_operators(std::vector<OperatorCase>& cases) {
  for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{2, 0}, Shape{2, 3, 4, 5}, Shape{517}}) {
    const std::string name = to_string(shape);
    for (const ScalarRow& row : scalar_rows()) {
      if (row.options.with == nullptr) continue;
      cases.push_back(make_case(row.name, name, {uniform(shape), uniform(shape)}));
    }
  }
  const std::vector<CaseInput> two = {uniform({4, 9}), uniform({4, 9}, -3, 3)};
  cases.push_back(make_case("LeakyReluGrad", "alpha", two, {{"alpha", 0.3}}));
  cases.push_back(make_case("ClipGrad", "bounds", two, {{"min", -1.0}, {"max", 0.5}}));
  cases.push_back(make_case("GeluGrad", "tanh", two, {{"approximate", std::string("tanh")}}));
  const CaseInput dy = values({3}, {5, 6, 7});
  cases.push_back(
      expecting(make_case("ReluGrad", "at 0", {dy, values({3}, {-1, 0, 1})}), {0, 0, 7}));
  cases.push_back(
      expecting(make_case("LeakyReluGrad", "at 0", {dy, values({3}, {-1, 0, 1})}, {{"alpha", 0.5}}),
                {2.5, 3, 7}));
  const CaseInput at_bounds = values({3}, {-1, 2, 1});  // like torch.clamp in PyTorch 2.15
  cases.push_back(
      expecting(make_case("ClipGrad", "at bounds", {dy, at_bounds}, {{"min", -1.0}, {"max", 2.0}}),
                {0, 0, 7}));
  cases.push_back(expecting(
      make_case("ClipGrad", "at the lower one", {dy, at_bounds}, {{"min", -1.0}}), {0, 6, 7}));
  cases.push_back(expecting(
      make_case("ClipGrad", "at the upper one", {dy, at_bounds}, {{"max", 2.0}}), {5, 0, 7}));
  cases.push_back(expecting(make_case("ClipGrad", "below the largest float", {dy, at_bounds},
                                      {{"min", -1.0}, {"max", 3.4028234663852886e38}}),
                            {0, 6, 7}));
}

// Results worked out by hand, since elsewhere kernels are compared only with the reference kernel.
void add_known_results(std::vector<OperatorCase>& cases) {
  const auto known = [&](const char* op, std::vector<CaseInput> inputs, std::vector<double> y,
                         Attributes attributes = {}) {
    cases.push_back(without_gradient(
        expecting(make_case(op, "by hand", std::move(inputs), std::move(attributes)), std::move(y)),
        "the other cases check it"));
  };
  const CaseInput x = values({3}, {-2, 0.5, 4}), positive = values({2}, {1, 4});
  known("Neg", {x}, {2, -0.5, -4});
  known("Abs", {x}, {2, 0.5, 4});
  known("Exp", {x}, {std::exp(-2.0), std::exp(0.5), std::exp(4.0)});
  known("Log", {positive}, {0, std::log(4.0)});
  known("Sqrt", {positive}, {1, 2});
  known("Reciprocal", {positive}, {1, 0.25});
  known("Tanh", {x}, {std::tanh(-2.0), std::tanh(0.5), std::tanh(4.0)});
  known("Sigmoid", {x},
        {1 / (1 + std::exp(2.0)), 1 / (1 + std::exp(-0.5)), 1 / (1 + std::exp(-4.0))});
  known("LeakyRelu", {x}, {-0.2, 0.5, 4}, {{"alpha", 0.1}});
  known("Clip", {x}, {-1, 0.5, 1}, {{"min", -1.0}, {"max", 1.0}});
  const CaseInput column = values({2, 1}, {2, -3}), row = values({2}, {4, 5});
  known("Add", {column, row}, {6, 7, 1, 2});
  known("Sub", {column, row}, {-2, -3, -7, -8});
  known("Mul", {column, row}, {8, 10, -12, -15});
  known("Div", {column, row}, {0.5, 0.4, -0.75, -0.6});
  known("Pow", {column, values({2}, {2, 3})}, {4, 8, 9, -27});
  known("Where", {values({2, 1}, {1, 0}, DType::boolean), row, values({}, {9})}, {4, 5, 9, 9});
  const CaseInput a = values({4}, {0, 0, 1, 1}, DType::boolean),
                  b = values({4}, {0, 1, 0, 1}, DType::boolean);
  known("Not", {b}, {1, 0, 1, 0});
  known("And", {a, b}, {0, 0, 0, 1});
  known("Or", {a, b}, {0, 1, 1, 1});
  known("Xor", {a, b}, {0, 1, 1, 0});
  const CaseInput dy = values({2}, {2, 4}), y = values({2}, {0.5, -0.5});
  known("TanhGrad", {dy, y}, {1.5, 3});
  known("SigmoidGrad", {dy, y}, {0.5, -3});
}

}  // namespace

void add_elementwise_cases(std::vector<OperatorCase>& cases) {
  add_unary(cases);
  add_binary(cases);
  add_where(cases);
  add_casts(cases);
  add_gradient_operators(cases);
  add_known_results(cases);
}

}  // namespace tandem::testing
