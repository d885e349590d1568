// Cases of Fused: bodies with broadcasting, several outputs, mixed types, and a last reduction.
#include "engine/graph/builder.h"
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

namespace {

using Body = std::function<std::shared_ptr<const Graph>(const OperatorSet&, DType)>;

// `build` gets a builder and the body's inputs, and returns the outputs.
Body body_of(
    std::vector<CaseInput> inputs,
    std::function<std::vector<ValueId>(GraphBuilder&, const std::vector<ValueId>&)> build) {
  return [=](const OperatorSet& operators, DType computed) {
    GraphBuilder g(operators);
    std::vector<ValueId> x;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const DType dtype = inputs[i].dtype == DType::float32 ? computed : inputs[i].dtype;
      x.push_back(g.input("x" + std::to_string(i), {dtype, inputs[i].shape}));
    }
    const std::vector<ValueId> y = build(g, x);
    for (std::size_t i = 0; i < y.size(); ++i) g.output("y" + std::to_string(i), y[i]);
    return std::make_shared<const Graph>(g.finish());
  };
}

OperatorCase fused_case(
    std::string name, std::vector<CaseInput> inputs,
    std::function<std::vector<ValueId>(GraphBuilder&, const std::vector<ValueId>&)> build) {
  OperatorCase c = make_case("Fused", std::move(name), inputs);
  c.body = body_of(std::move(inputs), std::move(build));
  return c;
}

using Values = std::vector<ValueId>;

}  // namespace

void add_fused_cases(std::vector<OperatorCase>& cases) {
  cases.push_back(fused_case(
      "one function", {uniform({3, 70})},
      [](GraphBuilder& g, const Values& x) { return Values{g.add_node("Tanh", {x[0]})}; }));
  cases.push_back(fused_case("a chain with broadcasting",
                             {uniform({4, 6, 33}), uniform({33}), uniform({6, 1})},
                             [](GraphBuilder& g, const Values& x) {
                               const ValueId scaled = g.mul(x[0], x[1]);
                               return Values{g.add_node("Gelu", {g.add(scaled, x[2])})};
                             }));
  cases.push_back(fused_case("constants", {uniform({1500})}, [](GraphBuilder& g, const Values& x) {
    const ValueId half = g.scalar(0.5, g.dtype(x[0]));
    const ValueId two = g.scalar(2, g.dtype(x[0]));
    return Values{g.mul(g.add_node("Exp", {g.mul(x[0], half)}), two)};
  }));
  cases.push_back(fused_case("several outputs", {uniform({5, 40}), uniform({5, 40})},
                             [](GraphBuilder& g, const Values& x) {
                               const ValueId sum = g.add(x[0], x[1]);
                               return Values{g.add_node("Relu", {sum}), sum, g.sub(x[0], x[1])};
                             }));
  cases.push_back(fused_case(
      "mask", {uniform({2, 3, 20}), typed(DType::boolean, {20})},
      [](GraphBuilder& g, const Values& x) {
        const ValueId low = g.scalar(-5, g.dtype(x[0]));
        return Values{g.add_node("Where", {x[1], x[0], low}), g.add_node("Less", {x[0], low})};
      }));
  cases.push_back(fused_case("cast of a mask", {uniform({4, 20}), typed(DType::boolean, {4, 20})},
                             [](GraphBuilder& g, const Values& x) {
                               return Values{g.mul(g.cast(x[1], g.dtype(x[0])), x[0])};
                             }));
  // The part of x that rounding to 16 bits removes: up to a thousandth.
  for (const DType half : {DType::float16, DType::bfloat16}) {
    cases.push_back(fused_case("what a cast to " + std::string(name_of(half)) + " rounds off",
                               {uniform({3, 1100}, -200, 200)},
                               [half](GraphBuilder& g, const Values& x) {
                                 const ValueId rounded = g.cast(g.cast(x[0], half), g.dtype(x[0]));
                                 return Values{rounded, g.sub(x[0], rounded)};
                               }));
  }
  cases.push_back(fused_case("sum over the rows", {uniform({6, 50}), uniform({50})},
                             [](GraphBuilder& g, const Values& x) {
                               return Values{g.reduce_sum(g.mul(x[0], x[1]), {1}, true)};
                             }));
  cases.push_back(
      fused_case("mean over the columns", {uniform({60, 7})}, [](GraphBuilder& g, const Values& x) {
        return Values{g.reduce_mean(g.mul(x[0], x[0]), {0}, false)};
      }));
  cases.push_back(
      fused_case("sum of all", {uniform({3, 4, 50})}, [](GraphBuilder& g, const Values& x) {
        return Values{g.reduce_sum(g.add_node("Abs", {x[0]}), {0, 1, 2}, false)};
      }));
  cases.push_back(
      fused_case("sum over maps", {uniform({2, 3, 5, 4})}, [](GraphBuilder& g, const Values& x) {
        return Values{g.reduce_sum(g.add_node("Exp", {x[0]}), {0, 2, 3}, false)};
      }));
  cases.push_back(
      fused_case("largest of the rows", {filled({6, 50}, Fill::distinct)},
                 [](GraphBuilder& g, const Values& x) {
                   return Values{g.add_node("ReduceMax", {g.neg(x[0])}, {{"axes", Ints{1}}})};
                 }));
  cases.push_back(fused_case("empty", {uniform({0, 5})}, [](GraphBuilder& g, const Values& x) {
    return Values{g.neg(g.add_node("Exp", {x[0]}))};
  }));
  cases.push_back(fused_case("scalar", {uniform({})}, [](GraphBuilder& g, const Values& x) {
    return Values{g.neg(g.add_node("Exp", {x[0]}))};
  }));
  cases.push_back(fused_case("activation gradients",
                             {uniform({8, 40}), uniform({8, 40}), uniform({40})},
                             [](GraphBuilder& g, const Values& x) {
                               const ValueId dy = g.add_node("GeluGrad", {x[0], x[1]});
                               return Values{g.mul(g.add_node("TanhGrad", {dy, x[1]}), x[2])};
                             }));
}

}  // namespace tandem::testing
