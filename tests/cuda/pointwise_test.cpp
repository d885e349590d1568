// The card's scalar operators, moves and look-ups against the reference kernels, over the fake
// runtime: all cases of the operators in several layouts, all types, odd lengths, any alignment.
#include <cmath>
#include <set>

#include "kernels/reference/scalar_operators.h"
#include "tests/cuda/pointwise_support.h"

namespace tandem::testing::pointwise {
namespace {

CardKernels& kernels() {
  static CardKernels own(cuda::add_pointwise_kernels);
  return own;
}

void check(const std::string& op, const std::vector<HostTensor>& inputs,
           const Attributes& attributes = {}, double tolerance = 0,
           const std::vector<Layout>& input_layouts = {},
           const std::vector<Layout>& output_layouts = {}) {
  SCOPED_TRACE(op + " of " + to_string(inputs[0].type()));
  try {
    const Graph graph = single_node(op, types_of(inputs), attributes);
    expect_equal(kernels().run(graph, inputs, input_layouts, output_layouts),
                 run_reference(graph, inputs), tolerance);
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what();
  }
}

const std::set<std::string>& covered() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    for (const Kernel& kernel : kernels().list()) all.insert(kernel.op);
    all.erase("Fused");  // fused_test.cpp
    return all;
  }();
  return names;
}

TEST(CudaPointwise, EveryScalarOperatorHasAKernel) {
  for_each_scalar_operator([](const Operator& op) {
    if (op.view != nullptr) return;
    EXPECT_TRUE(covered().count(op.name)) << op.name;
  });
}

struct Variant {
  const char* name;
  Layout (*layout)(const Shape&);
};
const Variant variants[] = {
    {"row-major", row_major},
    {"reversed order", reversed_order},
    {"gaps", [](const Shape& shape) { return with_gaps(shape); }},
    {"backwards", backwards},
    {"channels-last", channels_last_where_possible},
    {"one element off", [](const Shape& shape) { return row_major_from(shape, 1); }}};

// All cases of all operators of the list: float32 kernels against the reference in double.
TEST(CudaPointwise, CasesOfTheOperators) {
  int ran = 0;
  for (const OperatorCase& c : all_cases()) {
    if (!covered().count(c.op)) continue;
    SCOPED_TRACE(c.op + ", case " + c.name);
    try {
      const Graph wide = case_graph(c, operators(), DType::float64);
      std::vector<HostTensor> wide_inputs = case_inputs(c, DType::float32);
      for (std::size_t i = 0; i < wide_inputs.size(); ++i)
        wide_inputs[i] = wide_inputs[i].converted(wide.type(wide.nodes[0].inputs[i]).dtype);
      const std::vector<HostTensor> expected = run_reference(wide, wide_inputs);
      const Graph graph = case_graph(c, operators(), DType::float32);
      std::vector<HostTensor> inputs = case_inputs(c, DType::float32);
      for (std::size_t i = 0; i < inputs.size(); ++i)
        inputs[i] = inputs[i].converted(graph.type(graph.nodes[0].inputs[i]).dtype);
      for (const Variant& variant : variants) {
        SCOPED_TRACE(variant.name);
        std::vector<Layout> in, out;
        for (const HostTensor& x : inputs) in.push_back(variant.layout(x.shape()));
        for (const HostTensor& y : expected) out.push_back(variant.layout(y.shape()));
        expect_equal(kernels().run(graph, inputs, in, out), expected, c.tolerance);
        ++ran;
      }
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
  EXPECT_GT(ran, 2000);
}

const DType all_types[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                           DType::int8,    DType::int16,   DType::int32,   DType::int64,
                           DType::uint8,   DType::uint16,  DType::uint32,  DType::uint64,
                           DType::boolean};

bool takes(ScalarTypes types, ScalarFunction f, DType dtype) {
  switch (types) {
    case ScalarTypes::numbers:
      return dtype != DType::boolean || f == ScalarFunction::equal;
    case ScalarTypes::floats:
      return is_float(dtype);
    case ScalarTypes::booleans:
      return dtype == DType::boolean;
    default:
      return false;
  }
}

// Attributes that the functions need.
Attributes attributes_for(const Operator& op) {
  Attributes attributes;
  for (const AttributeSpec& spec : op.attributes) {
    if (spec.name == "min") attributes.set("min", -1.0);
    if (spec.name == "max") attributes.set("max", 2.0);
  }
  return attributes;
}

TEST(CudaPointwise, EveryTypeOfEveryFunction) {
  int ran = 0;
  for_each_scalar_operator([&](const Operator& op) {
    for (DType dtype : all_types) {
      if (!takes(types_of(op.scalar), op.scalar, dtype)) continue;
      ++ran;
      const bool positive = op.name == "Log" || op.name == "Sqrt" || op.name == "Reciprocal";
      std::vector<HostTensor> inputs;
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        inputs.push_back(
            random_numbers({3, 40}, dtype, static_cast<unsigned>(i + 1), positive ? 0.25 : -4, 4));
      }
      // Integers are exact; floats differ by a rounding of the function and one of the result.
      check(op.name, inputs, attributes_for(op), rounding_of(dtype));
      // By single elements.
      check(op.name, inputs, attributes_for(op), rounding_of(dtype),
            std::vector<Layout>(inputs.size(), row_major_from({3, 40}, 1)));
    }
  });
  EXPECT_GT(ran, 200);
}

TEST(CudaPointwise, CastsOfAllTypes) {
  for (DType from : all_types) {
    for (DType to : all_types) {
      SCOPED_TRACE(std::string(name_of(to)));
      const Attributes attributes{{"to", std::string(name_of(to))}};
      const HostTensor x = random_numbers({5, 24}, from, 3, -300, 300);
      check("Cast", {x}, attributes);
      check("Cast", {x}, attributes, 0, {row_major_from({5, 24}, 1)});
    }
  }
}

TEST(CudaPointwise, CastsSaturate) {
  const HostTensor x = HostTensor::from<float>(
      {8}, {1e30f, -1e30f, std::nanf(""), 2147483648.0f, -2147483648.0f, 255.9f, -0.5f, 65504.0f});
  for (DType to : all_types) check("Cast", {x}, {{"to", std::string(name_of(to))}});
}

TEST(CudaPointwise, PowersOfAllTypes) {
  for (DType base : all_types) {
    for (DType exponent : all_types) {
      if (base == DType::boolean || exponent == DType::boolean) continue;
      SCOPED_TRACE(std::string(name_of(exponent)));
      check("Pow",
            {random_numbers({200}, base, 1, 0.25, 4), random_numbers({200}, exponent, 2, -3, 4)},
            {}, std::max(rounding_of(base), is_float(base) ? 2e-7 : 0));
    }
  }
}

TEST(CudaPointwise, KnownExponents) {
  for (double exponent : {2.0, 1.0, -1.0, 0.5, 3.0}) {
    GraphBuilder g(operators());
    const HostTensor x = random_numbers({333}, DType::float32, 3, 0.1, 3);
    const ValueId y =
        g.add_node("Pow", {g.input("x0", x.type()), g.scalar(exponent, DType::float32)});
    g.output("y0", y);
    const Graph graph = g.finish();
    const HostTensor known = HostTensor::from<float>({}, {static_cast<float>(exponent)});
    expect_equal(kernels().run(graph, {x, known}), run_reference(graph, {x, known}), 1e-6);
  }
}

TEST(CudaPointwise, ChoicesOfAllTypes) {
  for (DType dtype : all_types) {
    const HostTensor condition = random_numbers({7, 32}, DType::boolean, 1);
    const HostTensor x = random_numbers({7, 32}, dtype, 2), y = random_numbers({32}, dtype, 3);
    check("Where", {condition, x, y});
    check("Where", {random_numbers({7, 1}, DType::boolean, 4), y, x});
    check("Where", {condition, random_numbers({}, dtype, 5), x});
  }
}

// Lengths around the units of a thread and the lanes of a warp; more than a card's threads do in
// one step.
TEST(CudaPointwise, OddLengths) {
  for (std::int64_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 1025, (1 << 20) + 3}) {
    SCOPED_TRACE(n);
    for (DType dtype : {DType::float32, DType::bfloat16}) {
      const HostTensor a = random_numbers({n}, dtype, 1), b = random_numbers({n}, dtype, 2);
      check("Add", {a, b}, {}, 0);
      check("Relu", {a});
      if (n > 1025) continue;
      check("Less", {a, b});
      for (std::int64_t offset : {1, 2, 3, 4, 5})
        check("Add", {a, b}, {}, 0, {row_major_from({n}, offset), row_major_from({n}, 4)});
    }
    check("Cast", {random_numbers({n}, DType::float32, 3)}, {{"to", std::string("float16")}});
    check("Where", {random_numbers({n}, DType::boolean, 4), random_numbers({n}, DType::float32, 5),
                    random_numbers({}, DType::float32, 6)});
    check("Copy", {random_numbers({n}, DType::float32, 3)});
    check("Copy", {random_numbers({n}, DType::uint8, 3)}, {}, 0, {row_major_from({n}, 3)});
  }
}

// Units of 16 bytes where rows and addresses allow it, single elements elsewhere.
TEST(CudaPointwise, ChoosesUnits) {
  const auto launched = [](const std::string& op, const std::vector<HostTensor>& inputs,
                           std::int64_t offset = 0, const Attributes& attributes = {}) {
    kernels().card().runtime->clear_calls();
    std::vector<Layout> layouts;
    for (const HostTensor& x : inputs) layouts.push_back(row_major_from(x.shape(), offset));
    kernels().run(single_node(op, types_of(inputs), attributes), inputs, layouts);
    for (const std::string& call : kernels().card().runtime->calls()) {
      if (call.compare(0, 7, "launch ") == 0) return call.substr(7, call.find(" stream") - 7);
    }
    return std::string("nothing");
  };
  const auto f = [](Shape shape) { return random_numbers(std::move(shape), DType::float32, 1); };
  EXPECT_EQ(launched("Add", {f({6, 7}), f({6, 7})}), "pointwise_units");
  EXPECT_EQ(launched("Add", {f({6, 7}), f({6, 7})}, 1), "pointwise");
  EXPECT_EQ(launched("Add", {f({6, 7}), f({6, 7})}, 4), "pointwise_units");
  EXPECT_EQ(launched("Add", {f({6, 8}), f({8})}), "pointwise_units");
  EXPECT_EQ(launched("Add", {f({6, 7}), f({7})}), "pointwise");
  EXPECT_EQ(launched("Add", {f({6, 8}), f({6, 1})}), "pointwise_units");
  EXPECT_EQ(launched("Add", {f({6, 7}), f({})}, 1), "pointwise");
  EXPECT_EQ(launched("Neg", {random_numbers({64}, DType::int32, 1)}), "pointwise");
  EXPECT_EQ(launched("Cast", {f({33})}, 0, {{"to", std::string("bfloat16")}}), "cast_units");
  EXPECT_EQ(launched("Where", {random_numbers({8}, DType::boolean, 1), f({8}), f({8})}),
            "where_units");
  EXPECT_EQ(launched("Accumulate", {f({9}), f({9})}), "accumulate_units");
  EXPECT_EQ(launched("Add", {f({0, 8}), f({8})}), "nothing");
}

TEST(CudaPointwise, Broadcasts) {
  const auto f = [](Shape shape, unsigned seed) {
    return random_numbers(std::move(shape), DType::float32, seed);
  };
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{37, 128}, {128}}, {{37, 129}, {129}},        {{37, 1}, {128}},   {{5, 3, 2000}, {3, 1}},
      {{}, {2, 3, 4, 5}}, {{2, 1, 4, 1}, {3, 1, 8}}, {{1, 1}, {33, 31}}, {{64, 1}, {64, 64}}};
  for (const auto& [a, b] : shapes) {
    SCOPED_TRACE(to_string(a) + " and " + to_string(b));
    check("Sub", {f(a, 1), f(b, 2)});
    check("Greater", {f(a, 1), f(b, 2)});
  }
}

// Every operand may be the storage of the result.
TEST(CudaPointwise, ResultsOverOperands) {
  for (std::int64_t n : {5, 64, 1025}) {
    const HostTensor a = random_numbers({n}, DType::float32, 1);
    const HostTensor b = random_numbers({n}, DType::float32, 2);
    const Graph graph = single_node("Sub", {a.type(), b.type()});
    const std::vector<HostTensor> expected = run_reference(graph, {a, b});
    const KernelRequest request = plain_request(graph, graph.nodes[0], kernels().card().facts);
    const auto kernel = kernels().find(graph)->prepare(request);
    for (int over : {0, 1}) {
      HostTensor own[2] = {a.clone(), b.clone()};
      const void* inputs[2] = {own[0].data(), own[1].data()};
      void* outputs[1] = {own[over].data()};
      kernel->run({inputs, outputs, nullptr, nullptr, kernels().card().stream});
      kernels().card().runtime->synchronize(kernels().card().stream);
      EXPECT_EQ(compare(own[over], expected[0], 0), "");
    }
  }
}

TEST(CudaPointwise, Accumulates) {
  const DType floats[] = {DType::float32, DType::float64, DType::bfloat16, DType::float16};
  for (DType sum : {DType::float32, DType::float64}) {
    for (DType grad : floats) {
      for (std::int64_t first : {0, 1}) {
        const std::vector<HostTensor> inputs = {random_numbers({3, 41}, sum, 1),
                                                random_numbers({3, 41}, grad, 2)};
        check("Accumulate", inputs, {{"first", first}}, 1e-6);
        check("Accumulate", inputs, {{"first", first}}, 1e-6,
              {reversed_order({3, 41}), reversed_order({3, 41})});
      }
    }
  }
}

// Between row-major and channels-last, by tiles and by elements; every size of element.
TEST(CudaPointwise, CopiesBetweenLayouts) {
  for (DType dtype : {DType::uint8, DType::bfloat16, DType::float32, DType::int64}) {
    for (const Shape& shape : {Shape{2, 3, 17, 19}, Shape{2, 16, 16, 16}, Shape{3, 130, 9, 15},
                               Shape{1, 64, 7, 7}, Shape{2, 200, 40}}) {
      SCOPED_TRACE(to_string(shape));
      const HostTensor x = random_numbers(shape, dtype, 5);
      const Layout last = channels_last(shape), rows = row_major(shape);
      check("Copy", {x}, {}, 0, {rows}, {last});
      check("Copy", {x}, {}, 0, {last}, {rows});
      check("Copy", {x}, {}, 0, {with_gaps(shape)}, {last});
      check("Copy", {x}, {}, 0, {last}, {with_gaps(shape)});
      check("Copy", {x}, {}, 0, {backwards(shape)}, {rows});
      check("Copy", {x}, {}, 0, {reversed_order(shape)}, {rows});
    }
  }
}

// Rows that begin at any address: words of 1 to 16 bytes.
TEST(CudaPointwise, CopiesOfRows) {
  for (std::int64_t columns : {1, 2, 6, 12, 16, 31, 64}) {
    for (std::int64_t gap : {0, 1, 2, 4, 8, 16}) {
      const Shape shape{9, columns};
      Layout from = row_major({9, columns + gap});
      from.offset = gap;
      for (DType dtype : {DType::uint8, DType::float16, DType::float32}) {
        SCOPED_TRACE(std::to_string(columns) + " columns, gap " + std::to_string(gap));
        const HostTensor x = random_numbers(shape, dtype, 5);
        check("Copy", {x}, {}, 0, {from});
        check("Copy", {x}, {}, 0, {}, {from});
      }
    }
  }
}

TEST(CudaPointwise, ConcatAndSplitOfManyPieces) {
  for (std::int64_t axis : {0, 1, 2}) {
    std::vector<HostTensor> pieces;
    Ints sizes;
    Shape whole{4, 6, 8};
    whole[axis] = 0;
    for (int i = 0; i < 27; ++i) {
      Shape shape{4, 6, 8};
      shape[axis] = i % 5;
      whole[axis] += i % 5;
      sizes.push_back(i % 5);
      pieces.push_back(random_numbers(shape, DType::float32, static_cast<unsigned>(i)));
    }
    check("Concat", pieces, {{"axis", axis}});
    check("Split", {random_numbers(whole, DType::bfloat16, 99)},
          {{"axis", axis}, {"sizes", sizes}});
  }
}

TEST(CudaPointwise, PadsAndTriangles) {
  const Shape shape{3, 5, 8};
  for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
    for (const Ints& pads : {Ints{0, 1, 0, 2, 0, 0}, Ints{2, 0, 3, 0, 4, 5}, Ints(6, 0)}) {
      SCOPED_TRACE(std::string(mode) + " " + to_string(pads));
      Shape padded = shape;
      for (int i = 0; i < 3; ++i) padded[i] += pads[i] + pads[3 + i];
      for (DType dtype : {DType::float32, DType::bfloat16, DType::int8, DType::int64}) {
        const Attributes attributes{{"pads", pads}, {"mode", std::string(mode)}, {"value", 3.0}};
        check("Pad", {random_numbers(shape, dtype, 1)}, attributes);
        check("Pad", {random_numbers(shape, dtype, 1)}, attributes, 0, {channels_last(shape)},
              {channels_last(padded)});
        check("PadGrad", {random_numbers(padded, dtype, 2)},
              {{"pads", pads}, {"mode", std::string(mode)}, {"shape", shape}},
              4 * rounding_of(dtype));
      }
    }
  }
  for (std::int64_t k : {-2, 0, 3}) {
    for (std::int64_t upper : {0, 1}) {
      check("Trilu", {random_numbers({2, 5, 7}, DType::int16, 1)}, {{"k", k}, {"upper", upper}});
      check("Trilu", {random_numbers({1, 1}, DType::float32, 1)}, {{"k", k}, {"upper", upper}});
    }
  }
}

TEST(CudaPointwise, GatherTakesWordsOfAnySize) {
  for (std::int64_t inner : {1, 2, 3, 4, 8, 31, 64}) {
    for (DType dtype : {DType::uint8, DType::bfloat16, DType::float32, DType::int64}) {
      for (DType id : {DType::int32, DType::int64}) {
        SCOPED_TRACE(inner);
        check("Gather",
              {random_numbers({3, 11, inner}, dtype, 1), random_numbers({4, 5}, id, 2, -11, 11)},
              {{"axis", std::int64_t{1}}}, 0,
              {row_major_from({3, 11, inner}, 1), row_major({4, 5})});
        check("Gather",
              {random_numbers({11, inner}, dtype, 1), random_numbers({70}, id, 2, -11, 11)},
              {{"axis", std::int64_t{0}}});
      }
    }
  }
  for (DType from : {DType::float16, DType::bfloat16, DType::float32}) {
    check("Gather", {random_numbers({11, 6}, from, 1), random_numbers({9}, DType::int64, 2, 0, 11)},
          {{"axis", std::int64_t{0}}, {"to", std::string("float64")}});
  }
}

// Few indices look at all rows; more are sorted: runs of one index shorter and longer than what a
// thread adds up, absent ones, and tables that need several digits.
TEST(CudaPointwise, GatherGradAddsInOrder) {
  struct Case {
    std::int64_t rows, count;
    double low, high;
  };
  for (const Case& c :
       {Case{5, 64, 0, 5}, Case{5, 65, -5, 5}, Case{3, 1000, 0, 3}, Case{1, 333, 0, 1},
        Case{40000, 3000, 0, 40000}, Case{700, 5000, 0, 30}, Case{2000, 20000, -2000, 2000}}) {
    for (DType dtype : {DType::float32, DType::bfloat16, DType::float64, DType::int32}) {
      for (std::int64_t inner : {1, 8, 12}) {
        if (c.rows > 10000 && inner > 8) continue;
        SCOPED_TRACE(std::to_string(c.rows) + " rows, " + std::to_string(c.count) + " indices");
        HostTensor ids = random_numbers({c.count}, DType::int64, 2, c.low, c.high);
        for (std::int64_t k = 0; k < c.count; k += 7)
          ids.as<std::int64_t>()[k] = std::numeric_limits<std::int64_t>::min();
        const HostTensor dy = random_numbers({2, c.count, inner}, dtype, 3);
        const Attributes attributes{{"axis", std::int64_t{1}}, {"shape", Shape{2, c.rows, inner}}};
        // The reference rounds each sum to the type; here the expected sums are in double.
        const DType exact = is_float(dtype) ? DType::float64 : dtype;
        const Graph wide = single_node("GatherGrad", {{exact, dy.shape()}, ids.type()}, attributes);
        const auto expected = run_reference(wide, {dy.converted(exact), ids});
        const Graph graph = single_node("GatherGrad", {dy.type(), ids.type()}, attributes);
        const auto results = kernels().run(graph, {dy, ids});
        expect_equal(results, expected, rounding_of(dtype));
        const auto again = kernels().run(graph, {dy, ids});
        EXPECT_EQ(compare(again[0], results[0], 0), "");
      }
    }
  }
}

TEST(CudaPointwise, IndicesOutOfRangeAreReportedAndClamped) {
  for (std::int64_t count : {6, 100}) {
    HostTensor ids = random_numbers({count}, DType::int32, 2, 0, 5);
    ids.as<std::int32_t>()[3] = 17;
    const HostTensor x = random_numbers({5, 8}, DType::float32, 1);
    const HostTensor dy = random_numbers({count, 8}, DType::float32, 1);
    const Graph gather = single_node("Gather", {x.type(), ids.type()});
    const Graph grad = single_node("GatherGrad", {dy.type(), ids.type()}, {{"shape", Shape{5, 8}}});
    ErrorWord found, expected, grad_found;
    expect_equal(kernels().run(gather, {x, ids}, {}, {}, &found),
                 run_reference(gather, {x, ids}, &expected), 0);
    EXPECT_EQ(found.packed.load(), expected.packed.load());
    EXPECT_EQ(found.value.load(), 17);
    expect_equal(kernels().run(grad, {dy, ids}, {}, {}, &grad_found),
                 run_reference(grad, {dy, ids}), 1e-6);
    EXPECT_EQ(grad_found.packed.load(), expected.packed.load());
    EXPECT_EQ(grad_found.value.load(), 17);
  }
}

TEST(CudaPointwise, RefusesInWords) {
  const Shape many(9, 2);
  const Graph graph = single_node("Neg", {{DType::float32, many}});
  std::vector<std::string> refusals;
  EXPECT_EQ(choose_kernel(kernels().list(), plain_request(graph, graph.nodes[0]), &refusals),
            nullptr);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0], "cuda.neg: more than 8 axes");
}

// Threads of small cards do several units each.
TEST(CudaPointwise, SmallCards) {
  FakeRuntimeOptions options;
  options.properties.name = "Small card";
  options.properties.multiprocessors = 1;
  CardKernels small(cuda::add_pointwise_kernels, nullptr, options);
  const HostTensor a = random_numbers({100, 333}, DType::float32, 1);
  const HostTensor b = random_numbers({333}, DType::float32, 2);
  const Graph graph = single_node("Mul", {a.type(), b.type()});
  expect_equal(small.run(graph, {a, b}), run_reference(graph, {a, b}), 0);
  const Graph copy = single_node("Copy", {a.type()});
  expect_equal(small.run(copy, {a}, {reversed_order(a.shape())}, {row_major(a.shape())}), {a}, 0);
  const HostTensor ids = random_numbers({40000}, DType::int64, 3, 0, 1000);
  const HostTensor dy = random_numbers({40000}, DType::int64, 4);
  const Graph grad = single_node("GatherGrad", {dy.type(), ids.type()}, {{"shape", Shape{1000}}});
  expect_equal(small.run(grad, {dy, ids}), run_reference(grad, {dy, ids}), 0);
}

}  // namespace
}  // namespace tandem::testing::pointwise
