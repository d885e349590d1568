// Scalar operators and fused bodies against the reference.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "engine/graph/half.h"
#include "kernels/cpu/pointwise/vector_functions.h"
#include "tests/harness/instruction_sets.h"
#include "tests/harness/scalar_examples.h"
#include "tests/kernels/pointwise_check.h"

namespace tandem::testing {
namespace {

const OperatorSet& operators() {
  static const OperatorSet set = all_operators();
  return set;
}

TEST(Fused, UnaryOperatorsOverOddLengths) {
  for (const char* op :
       {"Neg", "Abs", "Sign", "Exp", "Erf", "Tanh", "Sigmoid", "Softplus", "Relu"}) {
    for (std::int64_t n : {1, 7, 1023, 5000}) check({op, {{random_tensor({n}, 1, -6, 6)}}});
  }
  for (const char* op : {"Log", "Sqrt", "Reciprocal"})
    check({op, {{random_tensor({3, 1777}, 2, 0.01, 9)}}});
  check({"LeakyRelu", {{random_tensor({777})}}, {{"alpha", 0.3}}});
  check({"Clip", {{random_tensor({777})}}, {{"min", -0.25}, {"max", 0.5}}});
  for (const char* form : {"none", "tanh"}) {
    check({"Gelu", {{random_tensor({3, 501}, 3, -7, 7)}}, {{"approximate", std::string(form)}}});
    check({"GeluGrad",
           {{random_tensor({3, 501})}, {random_tensor({3, 501}, 4, -7, 7)}},
           {{"approximate", std::string(form)}}});
  }
}

// Tests each function of the engine, whether or not another test names it.
TEST(Fused, EveryFunctionOverOddLengths) {
  for (const ScalarRow& row : scalar_rows()) {
    if (row.kind().types == ScalarTypes::integers) continue;  // typed_test.cpp
    SCOPED_TRACE(row.name);
    const auto [low, high] = example_range(row);
    for (const Attributes& attributes : example_attributes(row)) {
      for (std::int64_t n : {1, 7, 1023}) {
        NodeCheck node{.op = row.name, .inputs = {}, .attributes = attributes};
        for (int i = 0; i < row.kind().operands; ++i) {
          const unsigned seed = static_cast<unsigned>(i) + 1;
          if (row.kind().types == ScalarTypes::booleans)
            node.inputs.push_back({random_integers({n}, DType::boolean, 0, 2, seed)});
          else if (row.kind().operands == 1)
            node.inputs.push_back({random_tensor({n}, seed, low, high)});
          else
            node.inputs.push_back(
                {random_tensor({n}, seed, i == 0 || row.options.with ? -3 : 0.1, 3)});
        }
        check(node);
      }
    }
  }
}

TEST(Fused, FunctionsOfTheirOwnOverOddLengths) {
  for (std::int64_t n : {1, 7, 1023}) {
    const NodeInput a{random_tensor({n}, 1, 0.1, 3)}, b{random_tensor({n}, 2, 0.1, 3)};
    check({"Pow", {a, b}});
    check({"Where", {{random_integers({n}, DType::boolean, 0, 2, 3)}, a, b}});
    check({"Cast", {a}, {{"to", std::string("bfloat16")}}});
  }
}

// Operands and results of 16 bits, also with gaps and broadcast: one rounding is 2^-8 or 2^-11.
class SixteenBits : public ::testing::TestWithParam<DType> {};

TEST_P(SixteenBits, InAndOut) {
  const DType dtype = GetParam();
  const double rounding = dtype == DType::bfloat16 ? 4e-3 : 5e-4;
  const auto half = [&](Shape shape, unsigned seed) {
    return random_tensor(std::move(shape), seed).converted(dtype);
  };
  for (std::int64_t n : {1, 7, 1023, 5000}) {
    check({.op = "Relu", .inputs = {{half({n}, 1)}}, .tolerance = 0});
    check({.op = "Add", .inputs = {{half({3, n}, 1)}, {half({n}, 2)}}, .tolerance = rounding});
    check({.op = "Cast",
           .inputs = {{half({n}, 3)}},
           .attributes = {{"to", std::string("float32")}},
           .tolerance = 0});
    check({.op = "Cast",
           .inputs = {{random_tensor({n}, 4)}},
           .attributes = {{"to", std::string(name_of(dtype))}},
           .tolerance = 0});
  }
  const Shape shape{4, 9, 33};
  check({.op = "Mul",
         .inputs = {{half(shape, 5), with_gaps(shape, 3)}, {half({9, 1}, 6)}},
         .tolerance = rounding});
  check({.op = "SumOfSquares", .inputs = {{half({7001}, 7)}}, .tolerance = 1e-4});
}

INSTANTIATE_TEST_SUITE_P(Types, SixteenBits, ::testing::Values(DType::bfloat16, DType::float16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

// All float16 numbers widen exactly; floats round to nearest, also to subnormals and infinity.
TEST(Fused, Float16BitByBit) {
  std::vector<std::uint16_t> halves(65536), narrow;
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  std::vector<float> floats;  // neighbours of each float16 and of midpoints
  for (const std::uint16_t half : halves) {
    const float x = half_to_float(half);
    for (const float end : {-INFINITY, INFINITY}) floats.push_back(std::nextafter(x, end));
    const float middle = x + (half_to_float(static_cast<std::uint16_t>(half + 1)) - x) / 2;
    for (const float end : {-INFINITY, middle, INFINITY})
      floats.push_back(std::nextafter(middle, end));
  }
  for (const Isa isa : instruction_sets()) {
    std::vector<float> wide(halves.size());
    vector_functions(isa).widen_float16(halves.data(), wide.data(), 65536);
    for (std::size_t i = 0; i < halves.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]),
                std::bit_cast<std::uint32_t>(half_to_float(halves[i])))
          << i;
    }
    narrow.resize(floats.size());
    vector_functions(isa).narrow_float16(floats.data(), narrow.data(),
                                         static_cast<std::int64_t>(floats.size()));
    for (std::size_t i = 0; i < floats.size(); ++i)
      ASSERT_EQ(narrow[i], float_to_half(floats[i])) << floats[i];
  }
}

// Values at the ends of the range: infinities, zeros and NaN.
TEST(Fused, UnaryOperatorsAtTheEnds) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const HostTensor x =
      HostTensor::from<float>({10}, {0, 1, -1, infinity, -infinity, nan, 88, -87, 200, -200});
  for (const char* op : {"Exp", "Tanh", "Sigmoid", "Erf", "Relu", "Neg", "Abs", "Log", "Sqrt"}) {
    check({.op = op, .inputs = {{x}}, .tolerance = 2e-6});
  }
}

// Known exponents have their own steps; the reference calls the standard's pow, which returns
// infinity for -infinity to the power 1/2.
TEST(Fused, KnownPowersAtTheEnds) {
  const float infinity = std::numeric_limits<float>::infinity();
  const HostTensor x = HostTensor::from<float>(
      {11}, {-infinity, infinity, NAN, 0.0f, -0.0f, 1, -1, 4, -4, 3e38f, -3e38f});
  for (const double e : {0.5, -0.5, 0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 1.5}) {
    SCOPED_TRACE(e);
    for (const DType dtype : {DType::float32, DType::float64}) {
      const HostTensor exponent = HostTensor::from<double>({}, {e}).converted(dtype);
      check({.op = "Pow", .inputs = {{x}, {.tensor = exponent, .constant = true}}});
    }
  }
}

// Relative errors against double, over the whole range of results that are not tiny.
TEST(Fused, FunctionsAreAccurate) {
  struct Function {
    TileOp op;
    double (*exact)(double);
    double low, high, tolerance;
  };
  const Function functions[] = {
      {TileOp::exp, [](double x) { return std::exp(x); }, -87, 88, 3e-7},
      {TileOp::log, [](double x) { return std::log(x); }, 1e-3, 1e3, 1e-6},
      {TileOp::tanh, [](double x) { return std::tanh(x); }, -10, 10, 3e-7},
      {TileOp::tanh, [](double x) { return std::tanh(x); }, -1e-3, 1e-3, 3e-7},
      {TileOp::erf, [](double x) { return std::erf(x); }, -5, 5, 6e-7},
      {TileOp::erf, [](double x) { return std::erf(x); }, -1e-3, 1e-3, 6e-7},
      {TileOp::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 80, 4e-7},
      {TileOp::softplus, [](double x) { return std::log1p(std::exp(x)); }, -80, 80, 6e-7},
  };
  const std::vector<std::string> processor = processor_features();
  for (const char* set : {"baseline", "avx2", "avx512"}) {
    DeviceFacts facts{"cpu", {}, 1};
    if (set != std::string("baseline")) facts.features = {set};
    if (!facts.features.empty() &&
        std::find(processor.begin(), processor.end(), set) == processor.end())
      continue;
    for (const Function& f : functions) {
      const HostTensor x = random_tensor({100000}, 1, f.low, f.high);
      HostTensor y(x.type());
      vector_functions(isa_of(facts))
          .tile[static_cast<int>(f.op)](
              {x.as<float>().data(), nullptr, nullptr, y.as<float>().data(), 100000, 0, 0});
      double worst = 0;
      for (std::int64_t i = 0; i < 100000; ++i) {
        const double exact = f.exact(x.number(i));
        worst = std::max(worst, std::abs(y.number(i) - exact) / std::abs(exact));
      }
      EXPECT_LT(worst, f.tolerance)
          << set << ", function " << static_cast<int>(f.op) << " up to " << f.high;
    }
  }
}

TEST(Fused, BinaryOperatorsBroadcast) {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min"}) {
    check({op, {{random_tensor({37, 129})}, {random_tensor({37, 129}, 2, 0.5, 2)}}});
    check({op, {{random_tensor({37, 129})}, {random_tensor({129}, 2, 0.5, 2)}}});
    check({op, {{random_tensor({37, 1})}, {random_tensor({129}, 2, 0.5, 2)}}});
    check({op, {{random_tensor({5, 3, 2000})}, {random_tensor({3, 1}, 2, 0.5, 2)}}});
    check({op, {{random_tensor({})}, {random_tensor({2, 3, 4, 5}, 2, 0.5, 2)}}});
    check({.op = op,
           .inputs = {{random_tensor({100})},
                      {.tensor = random_tensor({}, 2, 0.5, 2), .constant = true}}});
    check({.op = op,
           .inputs = {{.tensor = random_tensor({}), .constant = true},
                      {random_tensor({100}, 2, 0.5, 2)}}});
  }
  for (double exponent : {2.0, 3.0, 1.0, 0.5, -1.0, 2.5}) {
    check({.op = "Pow",
           .inputs = {{random_tensor({333}, 3, 0.1, 3)},
                      {.tensor = HostTensor::from<float>({}, {static_cast<float>(exponent)}),
                       .constant = true}}});
  }
  check({"Pow", {{random_tensor({333}, 3, 0.1, 3)}, {random_tensor({333})}}});
}

TEST(Fused, ComparisonsAndBooleans) {
  const HostTensor a = random_integers({41, 33}, DType::float32, 0, 3),
                   b = random_integers({33}, DType::float32, 0, 3, 2);
  for (const char* op : {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"})
    check({op, {{a}, {b}}});
  const HostTensor p = random_integers({41, 33}, DType::boolean, 0, 2),
                   q = random_integers({41, 1}, DType::boolean, 0, 2, 5);
  for (const char* op : {"And", "Or", "Xor"}) check({op, {{p}, {q}}});
  check({"Not", {{p}}});
  check({"Where", {{p}, {random_tensor({41, 33})}, {random_tensor({33})}}});
  check({.op = "Where",
         .inputs = {{p},
                    {random_tensor({41, 33})},
                    {.tensor = HostTensor::from<float>({}, {-3}), .constant = true}}});
  for (DType dtype : {DType::uint8, DType::int32, DType::int64, DType::boolean}) {
    check(
        {"Cast", {{random_integers({3, 1500}, dtype, 0, 100)}}, {{"to", std::string("float32")}}});
    check({.op = "Cast",
           .inputs = {{random_integers({30, 15}, dtype, 0, 100), with_gaps({30, 15}, 3)}},
           .attributes = {{"to", std::string("float32")}}});
  }
  check(
      {"Cast", {{random_integers({3, 150}, DType::float32, 0, 2)}}, {{"to", std::string("bool")}}});
}

TEST(Fused, RefusesOtherTypes) {
  EXPECT_NE(refusal({"Add",
                     {{random_integers({4}, DType::int32, 0, 9)},
                      {random_integers({4}, DType::int32, 0, 9)}}}),
            "");
  EXPECT_NE(refusal({"Neg", {{random_tensor({4}).converted(DType::float64)}}}), "");
  EXPECT_NE(refusal({"Cast", {{random_tensor({4})}}, {{"to", std::string("int32")}}}), "");
}

TEST(Fused, Layouts) {
  const Shape shape{4, 19, 7, 5};
  const HostTensor a = random_tensor(shape), b = random_tensor(shape, 2);
  const Layout last = channels_last(shape);
  check({.op = "Add", .inputs = {{a, last}, {b, last}}, .output_layouts = {last}});
  check({.op = "Add", .inputs = {{a, last}, {b}}, .output_layouts = {last}});
  check({.op = "Mul",
         .inputs = {{a, last}, {random_tensor({19, 1, 1}, 3)}},
         .output_layouts = {last}});
  check({.op = "Add", .inputs = {{a, with_gaps(shape, 3)}, {b}}});
  check({.op = "Sub", .inputs = {{a, permuted(shape, {3, 2, 1, 0})}, {b}}});
  check({.op = "Add", .inputs = {{a}, {b}}, .in_place = true});
}

// gelu(x * w + b) * 2 + x, with x, w and b of different shapes
std::shared_ptr<const Graph> body(bool reduce, Ints axes, const char* reduction = "ReduceSum") {
  GraphBuilder g(operators());
  const ValueId x = g.input("x", {DType::float32, {24, 700}});
  const ValueId w = g.input("w", {DType::float32, {700}});
  const ValueId b = g.input("b", {DType::float32, {24, 1}});
  const ValueId two = g.input("two", {DType::float32, {}});
  const ValueId sum = g.add(g.mul(x, w), b);
  const ValueId y = g.add_node("Gelu", {sum}, {{"approximate", std::string("tanh")}});
  const ValueId z = g.add(g.mul(y, two), x);
  g.output("sum", sum);
  g.output("z", z);
  if (reduce)
    g.output("r", g.add_node(reduction, {z}, {{"axes", axes}, {"keepdims", std::int64_t{0}}}));
  return std::make_shared<const Graph>(g.finish());
}

TEST(Fused, BodiesWithSeveralOutputs) {
  const std::vector<NodeInput> inputs{
      {random_tensor({24, 700}, 1, -3, 3)},
      {random_tensor({700}, 2)},
      {random_tensor({24, 1}, 3)},
      {.tensor = HostTensor::from<float>({}, {2}), .constant = true}};
  check({.op = "Fused", .inputs = inputs, .body = body(false, {})});
  check({.op = "Fused", .inputs = inputs, .body = body(false, {}), .in_place = true});
  check({.op = "Fused", .inputs = inputs, .body = body(false, {}), .unread = {0}});
  for (const char* reduction : {"ReduceSum", "ReduceMean", "ReduceMax"}) {
    for (const Ints& axes : {Ints{0}, Ints{1}, Ints{0, 1}}) {
      check({.op = "Fused", .inputs = inputs, .body = body(true, axes, reduction)});
      check(
          {.op = "Fused", .inputs = inputs, .body = body(true, axes, reduction), .unread = {0, 1}});
    }
  }
}

/// A body that casts x and a product to 16 bits and back, for several kinds of results.
std::shared_ptr<const Graph> rounding_body(DType from, DType half) {
  GraphBuilder g(operators());
  const ValueId x = g.input("x", {from, {5, 1200}});
  const ValueId w = g.input("w", {DType::float32, {1200}});
  const ValueId rounded = g.cast(g.cast(x, half), DType::float32);
  const ValueId product = g.mul(g.cast(x, DType::float32), w);
  const ValueId narrow = g.cast(product, half);
  g.output("rounded", rounded);
  g.output("lost", g.sub(product, g.cast(narrow, DType::float32)));
  g.output("twice",
           g.cast(g.cast(narrow, half == DType::float16 ? DType::bfloat16 : DType::float16),
                  DType::float32));
  g.output("kept", g.cast(narrow, DType::boolean));
  g.output("narrow", narrow);
  return std::make_shared<const Graph>(g.finish());
}

// Equal to the bit: a cast to 16 bits and back must round. Numbers of all magnitudes, beyond the
// ends of float16 and below its least.
TEST(Fused, CastsTo16BitsRound) {
  HostTensor x = random_tensor({5, 1200}, 5), w = random_tensor({1200}, 6, 0.5, 1.5);
  auto numbers = x.as<float>();
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] *= std::ldexp(1.0f, static_cast<int>(i % 60) - 40);
  for (const DType half : {DType::float16, DType::bfloat16}) {
    check({.op = "Fused",
           .inputs = {{x}, {w}},
           .body = rounding_body(DType::float32, half),
           .tolerance = 0});
    for (const DType from : {DType::int32, DType::int64, DType::uint8}) {
      const std::int64_t most = from == DType::uint8 ? 256 : 100000;
      check({.op = "Fused",
             .inputs = {{random_integers({5, 1200}, from, from == DType::uint8 ? 0 : -most, most)},
                        {w}},
             .body = rounding_body(from, half),
             .tolerance = 0});
    }
  }
}

// A known number replaces its operand, whatever its type.
TEST(Fused, CastsOfKnownNumbers) {
  for (const DType from : {DType::uint8, DType::int32, DType::int64, DType::float16}) {
    for (const char* to : {"float32", "float16", "bool"}) {
      check({.op = "Cast",
             .inputs = {{.tensor = HostTensor::from<double>({1}, {201}).converted(from),
                         .constant = true}},
             .attributes = {{"to", std::string(to)}},
             .tolerance = 0});
    }
  }
}

// A body that begins with a cast and ends with a comparison.
TEST(Fused, BodiesOverOtherTypes) {
  GraphBuilder g(operators());
  const ValueId x = g.input("x", {DType::uint8, {9, 50, 3}});
  const ValueId limit = g.input("limit", {DType::float32, {3}});
  const ValueId y = g.mul(g.cast(x, DType::float32), g.scalar(1.0 / 255, DType::float32));
  g.output("y", y);
  g.output("above", g.add_node("Greater", {y, limit}));
  const auto body = std::make_shared<const Graph>(g.finish());
  check({.op = "Fused",
         .inputs = {{random_integers({9, 50, 3}, DType::uint8, 0, 256)},
                    {random_tensor({3}, 1, 0, 1)}},
         .body = body});
}

}  // namespace
}  // namespace tandem::testing
