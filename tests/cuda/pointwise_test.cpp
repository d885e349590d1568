// The GPU's scalar operators against the reference kernels, over the fake runtime: all cases of
// the operators in several layouts, all types, odd lengths, any alignment.
#include <cmath>
#include <set>

#include "kernels/reference/scalar_operators.h"
#include "tests/cuda/pointwise_support.h"
#include "tests/harness/scalar_examples.h"

namespace tandem::testing::pointwise {
namespace {

const std::set<std::string>& covered() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all;
    for (const Kernel& kernel : kernels().list()) all.insert(kernel.op);
    all.erase("Fused");  // tested in fused_test.cpp
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

// All cases of all operators in the list: float32 kernels against the double reference.
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
      for (const LayoutVariant& variant : all_variants()) {
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

const DType pointwise_types[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                                 DType::int8,    DType::int16,   DType::int32,   DType::int64,
                                 DType::uint8,   DType::uint16,  DType::uint32,  DType::uint64,
                                 DType::boolean};

TEST(CudaPointwise, EveryTypeOfEveryFunction) {
  int ran = 0;
  for (const ScalarRow& row : scalar_rows()) {
    for (DType dtype : pointwise_types) {
      if (!takes(row.kind().types, dtype)) continue;
      ++ran;
      const bool free = row.options.domain.low < -4 && row.options.domain.high > 4;
      const auto range = free ? std::pair(-4.0, 4.0) : example_range(row);
      std::vector<HostTensor> inputs;
      for (int i = 0; i < row.kind().operands; ++i) {
        inputs.push_back(random_numbers({3, 40}, dtype, static_cast<unsigned>(i + 1), range.first,
                                        range.second));
      }
      for (const Attributes& attributes : example_attributes(row)) {
        // Integers are exact; floats differ by a rounding of the function and one of the result.
        check(row.name, inputs, attributes, rounding_of(dtype));
        // Element by element.
        check(row.name, inputs, attributes, rounding_of(dtype),
              std::vector<Layout>(inputs.size(), row_major_from({3, 40}, 1)));
      }
    }
  }
  EXPECT_GT(ran, 200);
}

TEST(CudaPointwise, CastsOfAllTypes) {
  for (DType from : pointwise_types) {
    for (DType to : pointwise_types) {
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
  for (DType to : pointwise_types) check("Cast", {x}, {{"to", std::string(name_of(to))}});
}

TEST(CudaPointwise, PowersOfAllTypes) {
  for (DType base : pointwise_types) {
    for (DType exponent : pointwise_types) {
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
  for (DType dtype : pointwise_types) {
    const HostTensor condition = random_numbers({7, 32}, DType::boolean, 1);
    const HostTensor x = random_numbers({7, 32}, dtype, 2), y = random_numbers({32}, dtype, 3);
    check("Where", {condition, x, y});
    check("Where", {random_numbers({7, 1}, DType::boolean, 4), y, x});
    check("Where", {condition, random_numbers({}, dtype, 5), x});
  }
}

// Lengths near multiples of a thread's unit and of a warp's lanes; more elements than a GPU's
// threads do in one step.
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

// Units of 16 bytes if rows and addresses allow it, single elements otherwise.
TEST(CudaPointwise, ChoosesUnits) {
  const auto launched = [](const std::string& op, const std::vector<HostTensor>& inputs,
                           std::int64_t offset = 0, const Attributes& attributes = {}) {
    kernels().gpu().runtime->clear_calls();
    std::vector<Layout> layouts;
    for (const HostTensor& x : inputs) layouts.push_back(row_major_from(x.shape(), offset));
    kernels().run(single_node(op, types_of(inputs), attributes), inputs, layouts);
    for (const std::string& call : kernels().gpu().runtime->calls()) {
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
    const KernelRequest request = plain_request(graph, graph.nodes[0], kernels().gpu().facts);
    const auto kernel = kernels().find(graph)->prepare(request);
    for (int over : {0, 1}) {
      HostTensor own[2] = {a.clone(), b.clone()};
      const void* inputs[2] = {own[0].data(), own[1].data()};
      void* outputs[1] = {own[over].data()};
      kernel->run({inputs, outputs, nullptr, nullptr, kernels().gpu().stream});
      kernels().gpu().runtime->synchronize(kernels().gpu().stream);
      EXPECT_EQ(compare(own[over], expected[0], 0), "");
    }
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

// Threads of small GPUs do several units each.
TEST(CudaPointwise, SmallGpus) {
  FakeRuntimeOptions options;
  options.properties.name = "Small GPU";
  options.properties.multiprocessors = 1;
  GpuKernels small(cuda::add_pointwise_kernels, nullptr, options);
  const HostTensor a = random_numbers({100, 333}, DType::float32, 1);
  const HostTensor b = random_numbers({333}, DType::float32, 2);
  const Graph graph = single_node("Mul", {a.type(), b.type()});
  expect_equal(small.run(graph, {a, b}), run_reference(graph, {a, b}), 0);
  const Graph copy = single_node("Copy", {a.type()});
  expect_equal(small.run(copy, {a}, {layout_in_reversed_order(a.shape())}, {row_major(a.shape())}),
               {a}, 0);
  const HostTensor ids = random_numbers({40000}, DType::int64, 3, 0, 1000);
  const HostTensor dy = random_numbers({40000}, DType::int64, 4);
  const Graph grad = single_node("GatherGrad", {dy.type(), ids.type()}, {{"shape", Shape{1000}}});
  expect_equal(small.run(grad, {dy, ids}), run_reference(grad, {dy, ids}), 0);
}

}  // namespace
}  // namespace tandem::testing::pointwise
