// Cases of the matrix products.
#include "tests/operators/basic_tables.h"

namespace tandem::testing {

using namespace basic;

namespace {

void add_matmul(std::vector<OperatorCase>& cases) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{3, 4}, {4, 5}},     {{1, 7}, {7, 1}},
      {{4}, {4}},           {{4}, {4, 3}},
      {{3, 4}, {4}},        {{2, 3, 4}, {2, 4, 5}},
      {{2, 3, 4}, {4, 5}},  {{2, 2, 3, 4}, {4, 5}},
      {{3, 4}, {2, 4, 5}},  {{2, 1, 3, 4}, {5, 4, 2}},
      {{2, 3, 4}, {4}},     {{4}, {2, 4, 3}},
      {{0, 4}, {4, 3}},     {{3, 0}, {0, 2}},
      {{33, 65}, {65, 17}}, {{2, 3, 5, 4}, {2, 3, 4, 5}}};
  for (const auto& [a, b] : shapes) {
    const std::string name = to_string(a) + " x " + to_string(b);
    cases.push_back(make_case("MatMul", name, {uniform(a), uniform(b)}));
  }
  cases.push_back(expecting(
      make_case("MatMul", "known", {values({2, 2}, {1, 2, 3, 4}), values({2, 2}, {5, 6, 7, 8})}),
      {19, 22, 43, 50}));
  for (DType dtype : {DType::int32, DType::int64, DType::uint32}) {
    cases.push_back(make_case("MatMul", std::string(name_of(dtype)),
                              {typed(dtype, {3, 4}, 0, 9), typed(dtype, {4, 2}, 0, 9)}));
  }
  for (DType dtype : {DType::float16, DType::bfloat16}) {
    cases.push_back(coarse(make_case("MatMul", std::string(name_of(dtype)),
                                     {typed(dtype, {3, 4}, -1, 1), typed(dtype, {4, 2}, -1, 1)})));
  }
}

// Gemm with every activation, with and without bias, and alpha; and plain SGD on a product.
void add_epilogues(std::vector<OperatorCase>& cases) {
  const CaseInput a = uniform({9, 20}), b = uniform({20, 17}), bias = uniform({17});
  const CaseInput multiplier = uniform({9, 17});
  for (const std::string activation : {"", "Relu", "Gelu", "GeluTanh"}) {
    const Attributes attributes{{"activation", activation}, {"alpha", 1.0}};
    const std::string name = activation.empty() ? "plain" : activation;
    cases.push_back(make_case("Gemm", name, {a, b}, attributes));
    cases.push_back(make_case("Gemm", name + " with bias", {a, b, bias}, attributes));
    cases.push_back(
        make_case("Gemm", name + " of a batch", {uniform({2, 3, 20}), b, bias}, attributes));
  }
  cases.push_back(make_case("Gemm", "ReluGrad", {a, b, left_out(), multiplier},
                            {{"activation", std::string("ReluGrad")}}));
  cases.push_back(make_case("Gemm", "ReluGrad, alpha", {a, b, left_out(), multiplier},
                            {{"activation", std::string("ReluGrad")}, {"alpha", -0.5}}));
  cases.push_back(make_case("Gemm", "alpha", {a, b, bias}, {{"alpha", 0.25}}));
  cases.push_back(
      make_case("Gemm", "one row", {uniform({1, 33}), uniform({33, 64}), uniform({64})}));
  cases.push_back(make_case("Gemm", "empty", {uniform({0, 3}), uniform({3, 2}), uniform({2})}));
  cases.push_back(
      make_case("Gemm", "nothing to sum", {uniform({2, 0}), uniform({0, 3}), uniform({3})}));

  const CaseInput two = values({2, 2}, {1, 2, 3, 4}), sign = values({2, 2}, {1, -1, 0, 2});
  cases.push_back(expecting(make_case("Gemm", "known", {two, two, values({2}, {-8, 1})},
                                      {{"activation", std::string("Relu")}}),
                            {0, 11, 7, 23}));
  cases.push_back(expecting(make_case("Gemm", "known ReluGrad", {two, two, left_out(), sign},
                                      {{"activation", std::string("ReluGrad")}, {"alpha", 2.0}}),
                            {14, 0, 0, 44}));

  CaseInput rate = values({}, {0.1});
  rate.fixed = true;
  cases.push_back(
      expecting(make_case("GemmSgd", "known", {sign, two, two, rate}), {0.3, -2, -1.5, -0.2}));
  cases.push_back(
      make_case("GemmSgd", "plain", {uniform({20, 17}), uniform({20, 9}), uniform({9, 17}), rate}));
  cases.push_back(make_case("GemmSgd", "alpha",
                            {uniform({20, 17}), uniform({20, 9}), uniform({9, 17}), rate},
                            {{"alpha", 0.5}}));
  cases.push_back(
      make_case("GemmSgd", "one row", {uniform({1, 5}), uniform({1, 9}), uniform({9, 5}), rate}));
  cases.push_back(make_case("GemmSgd", "large",
                            {uniform({70, 130}), uniform({70, 33}), uniform({33, 130}), rate}));
}

}  // namespace

void add_product_cases(std::vector<OperatorCase>& cases) {
  add_matmul(cases);
  add_epilogues(cases);
}

}  // namespace tandem::testing
