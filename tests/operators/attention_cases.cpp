// Cases of Attention and AttentionGrad.
#include <cmath>
#include <limits>

#include "tests/operators/network_cases.h"

namespace tandem::testing {
namespace {

void add_attention(Cases& cases, const std::string& name, const std::vector<CaseInput>& inputs,
                   double scale, std::int64_t causal) {
  const Attributes attributes{{"scale", scale}, {"causal", causal}};
  add_case(cases, "Attention", name, inputs, attributes);
  std::vector<CaseInput> values = inputs;
  for (std::size_t i = 0; i < 3; ++i) {
    if (values[i].fill != Fill::values) {
      values[i] = patterned(values[i].shape, static_cast<int>(i));
    }
  }
  const std::vector<CaseInput> y = outputs_of("Attention", values, attributes);
  add_case(cases, "AttentionGrad", name,
           {patterned(y[0].shape, 3), values[0], values[1], values[2], y[0], y[1], values[3]},
           attributes);
}

std::vector<CaseInput> operands(Shape q, Shape k, Shape v, CaseInput mask) {
  return {random_input(std::move(q)), random_input(std::move(k)), random_input(std::move(v)),
          std::move(mask)};
}

}  // namespace

void add_attention_cases(Cases& cases) {
  const CaseInput q = patterned({2, 2, 3, 4}), k = patterned({2, 2, 5, 4}, 1);
  const CaseInput v = patterned({2, 2, 5, 3}, 2);
  add_attention(cases, "torch_plain", {q, k, v, absent()}, 0.5, 0);
  add_attention(cases, "torch_masked", {q, k, v, fixed(patterned({1, 2, 3, 5}, 4))}, 0.5, 0);
  add_attention(cases, "torch_causal", {q, k, v, absent()}, 0.5, 1);

  add_attention(cases, "one_query", operands({1, 2, 1, 4}, {1, 2, 6, 4}, {1, 2, 6, 4}, absent()),
                0.5, 1);
  add_attention(cases, "one_key", operands({2, 1, 3, 2}, {2, 1, 1, 2}, {2, 1, 1, 3}, absent()), 1.0,
                0);
  add_attention(cases, "square_causal",
                operands({2, 3, 7, 8}, {2, 3, 7, 8}, {2, 3, 7, 8}, absent()), 0.35355339059327373,
                1);
  add_attention(cases, "long", operands({1, 1, 37, 5}, {1, 1, 41, 5}, {1, 1, 41, 3}, absent()), 0.4,
                1);
  for (OperatorCase& c : cases) {
    if (c.name != "long" || (c.op != "Attention" && c.op != "AttentionGrad")) continue;
    c.check_gradient = false;
    c.why = "too many differences; the smaller cases check the gradient";
  }
  // Queries before the first key see no key: y = 0.
  add_attention(cases, "blind_queries",
                operands({1, 2, 5, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}, absent()), 0.5, 1);
  CaseInput hiding = fixed(patterned({1, 1, 1, 5}));
  hiding.values[2] = hiding.values[4] = -std::numeric_limits<double>::infinity();
  add_attention(cases, "hidden_keys", {q, k, v, hiding}, 0.5, 0);
  CaseInput row = fixed(patterned({3, 5}, 2));
  add_attention(cases, "causal_and_mask", {q, k, v, row}, 0.25, 1);
  add_attention(cases, "mask_of_each", {q, k, v, fixed(patterned({2, 2, 3, 5}, 2))}, -0.5, 0);
}

}  // namespace tandem::testing
