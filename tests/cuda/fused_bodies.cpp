#include "tests/cuda/fused_bodies.h"

#include "tests/harness/scalar_examples.h"

namespace tandem::testing::pointwise {
namespace {

using Values = std::vector<ValueId>;

HostTensor numbers(Shape shape, DType dtype, unsigned seed, double low = -2, double high = 2) {
  return random_numbers(std::move(shape), dtype, seed, low, high);
}

Attributes axes_of(Ints axes, bool keepdims = true) {
  return {{"axes", std::move(axes)}, {"keepdims", std::int64_t{keepdims}}};
}

struct UnaryExample {
  const ScalarRow* row;
  Attributes attributes;
};

std::vector<UnaryExample> all_unary() {
  std::vector<UnaryExample> all;
  for (const ScalarRow& row : scalar_rows()) {
    const ScalarKind kind = row.kind();
    if (kind.operands != 1 || kind.predicate || !takes_floats(row)) continue;
    for (Attributes& attributes : example_attributes(row)) all.push_back({&row, attributes});
  }
  return all;
}

// Functions of one operand, a few at a time since a body has at most 32 operands. A sigmoid maps x
// to the function's domain with a bounded slope.
BuildBody unary(std::vector<UnaryExample> functions) {
  return [functions = std::move(functions)](GraphBuilder& g, const Values& x) {
    Values y;
    const DType dtype = g.dtype(x[0]);
    for (const auto& [row, attributes] : functions) {
      const auto [low, high] = example_range(*row);
      ValueId operand = x[0];
      if (low != -3 || high != 3) {
        const ValueId share = g.add_node("Sigmoid", {x[0]});
        operand = g.add(g.mul(share, g.scalar(high - low, dtype)), g.scalar(low, dtype));
      }
      y.push_back(g.add_node(row->name, {operand}, attributes));
    }
    return y;
  };
}

// x[1] is positive and not small; functions that compute gradients read x[2].
Values all_binary(GraphBuilder& g, const Values& x) {
  Values y;
  for (const ScalarRow& row : scalar_rows()) {
    const ScalarKind kind = row.kind();
    if (kind.operands != 2 || kind.predicate || !takes_floats(row)) continue;
    for (const Attributes& attributes : example_attributes(row))
      y.push_back(g.add_node(row.name, {x[0], row.options.with ? x[2] : x[1]}, attributes));
  }
  y.push_back(g.add_node("Pow", {g.add_node("Abs", {x[0]}), x[1]}));
  return y;
}

Values all_predicates(GraphBuilder& g, const Values& x) {
  Values y;
  for (const ScalarRow& row : scalar_rows()) {
    const ScalarKind kind = row.kind();
    if (!kind.predicate || !takes(kind.types, g.dtype(x[0]))) continue;
    for (const Attributes& attributes : example_attributes(row)) {
      const Values all{x[0], x[1]};
      y.push_back(g.add_node(row.name, {all.begin(), all.begin() + kind.operands}, attributes));
    }
  }
  const ValueId a = g.add_node("Less", {x[0], x[1]});
  const ValueId b = g.add_node("GreaterOrEqual", {x[0], x[1]});
  for (const char* op : {"And", "Or", "Xor"}) y.push_back(g.add_node(op, {a, b}));
  y.push_back(g.add_node("Not", {a}));
  y.push_back(g.add_node("Where", {b, x[0], x[1]}));
  return y;
}

Values whole_numbers(GraphBuilder& g, const Values& x) {
  Values y;
  for (const ScalarRow& row : scalar_rows()) {
    const ScalarKind kind = row.kind();
    if (kind.predicate || row.options.with || !takes(kind.types, g.dtype(x[0]))) continue;
    const Values all{x[0], x[1]};
    for (const Attributes& attributes : example_attributes(row))
      y.push_back(g.add_node(row.name, {all.begin(), all.begin() + kind.operands}, attributes));
  }
  y.push_back(g.add_node("Pow", {x[0], x[1]}));
  y.push_back(g.add_node("Clip", {x[0]}, {{"min", -1.0}, {"max", 1e30}}));
  y.push_back(g.cast(x[0], DType::float32));
  return y;
}

Values powers(GraphBuilder& g, const Values& x) {
  Values y;
  const ValueId base = g.add_node("Exp", {x[0]});
  for (double e : {2.0, 3.0, 1.0, 0.5, -1.0, 2.5})
    y.push_back(g.add_node("Pow", {base, g.scalar(e, g.dtype(x[0]))}));
  y.push_back(g.add_node("Pow", {base, g.scalar(2, DType::int64)}));
  return y;
}

Values casts(GraphBuilder& g, const Values& x) {
  Values y;
  for (DType to : {DType::float16, DType::bfloat16, DType::int8, DType::uint8, DType::int64,
                   DType::boolean, DType::float64})
    y.push_back(g.cast(x[0], to));
  // A cast rounds even if its result is not stored.
  y.push_back(g.cast(g.cast(x[0], DType::bfloat16), DType::float32));
  return y;
}

Values square(GraphBuilder& g, const Values& x) { return {g.mul(x[0], x[0])}; }

// A reduction of a product, which can be an output, too.
BuildBody reduced(const char* op, Ints axes, bool keepdims, bool also_elements) {
  return [=](GraphBuilder& g, const Values& x) {
    const ValueId product = g.mul(x[0], x[1]);
    const ValueId sum = g.add_node(op, {product}, axes_of(axes, keepdims));
    return also_elements ? Values{product, sum} : Values{sum};
  };
}

}  // namespace

std::vector<FusedExample> fused_case_examples() {
  std::vector<FusedExample> examples;
  for (const OperatorCase& c : all_cases()) {
    if (c.op != "Fused") continue;
    FusedExample example;
    example.name = c.name;
    example.tolerance = c.tolerance;
    example.inputs = case_inputs(c, DType::float32);
    example.graph = case_graph(c, operators(), DType::float32);
    example.expected =
        run_reference(case_graph(c, operators(), DType::float64), case_inputs(c, DType::float64));
    examples.push_back(std::move(example));
  }
  return examples;
}

std::vector<FusedExample> more_fused_examples() {
  std::vector<FusedExample> all;
  const auto add = [&](const std::string& name, const std::vector<HostTensor>& inputs,
                       const BuildBody& build, double tolerance) {
    all.push_back(fused_example(name, inputs, build, tolerance));
  };
  for (DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
    const std::string type(name_of(dtype));
    // Results of 16 bits may differ by a rounding of each step: fused nodes round at the end.
    const double tolerance = dtype == DType::float16    ? 4e-3
                             : dtype == DType::bfloat16 ? 3e-2
                             : dtype == DType::float64  ? 1e-13
                                                        : 1e-5;
    const HostTensor x = numbers({5, 48}, dtype, 1), y = numbers({48}, dtype, 2);
    const std::vector<UnaryExample> functions = all_unary();
    for (std::size_t first = 0; first < functions.size(); first += 24) {
      const auto begin = functions.begin() + static_cast<std::ptrdiff_t>(first);
      const std::ptrdiff_t count = std::min<std::ptrdiff_t>(24, functions.end() - begin);
      add("unary " + type + " from " + functions[first].row->name, {x},
          unary({begin, begin + count}), tolerance);
    }
    add("binary " + type, {x, numbers({5, 1}, dtype, 3, 0.5, 2), numbers({5, 48}, dtype, 4)},
        all_binary, tolerance);
    add("predicates " + type, {x, y}, all_predicates, tolerance);
    add("powers " + type, {x}, powers, 4 * tolerance);
    add("casts " + type, {x}, casts, 0);
  }
  for (DType dtype : {DType::int8, DType::int32, DType::int64, DType::uint8}) {
    const std::string type(name_of(dtype));
    add("whole " + type, {numbers({3, 40}, dtype, 1, -100, 100), numbers({40}, dtype, 2, -3, 4)},
        whole_numbers, 0);
    add("whole predicates " + type, {numbers({3, 40}, dtype, 3), numbers({3, 1}, dtype, 4)},
        all_predicates, 0);
  }
  add(
      "types of several sizes",
      {numbers({9, 33}, DType::bfloat16, 1), numbers({9, 33}, DType::float32, 2),
       numbers({33}, DType::boolean, 3)},
      [](GraphBuilder& g, const Values& x) {
        const ValueId sum = g.add(g.cast(x[0], g.dtype(x[1])), x[1]);
        const ValueId chosen = g.add_node("Where", {x[2], sum, x[1]});
        return Values{chosen, g.cast(chosen, DType::bfloat16)};
      },
      1e-2);
  add(
      "an input handed on", {numbers({70}, DType::float32, 1)},
      [](GraphBuilder& g, const Values& x) {
        return Values{g.neg(x[0]), x[0]};
      },
      0);
  for (std::int64_t n : {0, 1, 31, 33, 1025, 40003})
    add("squares of " + std::to_string(n), {numbers({n}, DType::float32, 1)}, square, 1e-6);
  add("a large one", {numbers({(1 << 20) + 3}, DType::bfloat16, 1)}, square, 1e-2);
  // Reductions of rows and columns, for every length of the reduced and the kept axis.
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax"}) {
    for (bool also : {false, true}) {
      const std::string name = std::string(op) + (also ? " and elements " : " ");
      const auto pair = [&](Shape shape, DType dtype = DType::float32) {
        return std::vector<HostTensor>{numbers(shape, dtype, 1), numbers({shape.back()}, dtype, 2)};
      };
      add(name + "rows", pair({37, 64}), reduced(op, {1}, true, also), 1e-5);
      add(name + "odd rows", pair({37, 131}), reduced(op, {1}, false, also), 1e-5);
      add(name + "short rows", pair({700, 3}), reduced(op, {1}, true, also), 1e-5);
      add(name + "long rows", pair({3, 20004}), reduced(op, {1}, true, also), 1e-5);
      add(name + "all", pair({31, 1111}), reduced(op, {0, 1}, false, also), 1e-5);
      add(name + "columns", pair({67, 48}), reduced(op, {0}, true, also), 1e-5);
      add(name + "odd columns", pair({67, 131}), reduced(op, {0}, false, also), 1e-5);
      add(name + "long columns", pair({5000, 8}), reduced(op, {0}, false, also), 1e-5);
      add(name + "long bfloat16 columns", pair({5000, 16}, DType::bfloat16),
          reduced(op, {0}, false, also), 3e-2);
      add(name + "maps", pair({3, 5, 7, 12}), reduced(op, {0, 2, 3}, false, also), 1e-5);
      add(name + "middle", pair({3, 5, 7, 12}), reduced(op, {1, 2}, true, also), 1e-5);
      add(name + "nothing", pair({4, 0}), reduced(op, {1}, true, false), 0);
    }
  }
  return all;
}

}  // namespace tandem::testing::pointwise
