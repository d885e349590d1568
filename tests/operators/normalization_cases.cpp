// Cases of batch and layer normalisation and their gradients.
#include <cmath>

#include "tests/operators/network_cases.h"

namespace tandem::testing {
namespace {

CaseInput positive(Shape shape) { return {.shape = std::move(shape), .fill = Fill::positive}; }

/// |pattern| + 0.5, as a variance.
CaseInput patterned_variance(Shape shape, int k) {
  CaseInput input = patterned(std::move(shape), k);
  for (double& v : input.values) v = std::fabs(v) + 0.5;
  return input;
}

void add_batch_normalization(Cases& cases) {
  const std::vector<std::pair<const char*, Shape>> shapes{{"matrix", {5, 3}},
                                                          {"line", {2, 3, 4}},
                                                          {"maps", {3, 4, 3, 2}},
                                                          {"volume", {2, 2, 2, 3, 2}},
                                                          {"one_by_one", {4, 5, 1, 1}},
                                                          {"batch_one", {1, 3, 5, 5}},
                                                          {"many_channels", {2, 19, 3, 3}}};
  const auto inputs = [](const CaseInput& x, const CaseInput& mean, const CaseInput& var) {
    const Shape c{x.shape[1]};
    return std::vector<CaseInput>{x, patterned(c, 1), patterned(c, 2), fixed(mean), fixed(var)};
  };
  const Shape images{3, 4, 2, 3}, four{4};
  add_case(cases, "BatchNormalization", "torch_images",
           inputs(patterned(images), patterned(four, 3), patterned_variance(four, 4)),
           {{"epsilon", 1e-3}});
  add_case(cases, "BatchNormalizationTraining", "torch_images",
           inputs(patterned(images), patterned(four, 3), patterned_variance(four, 4)),
           {{"epsilon", 1e-3}, {"momentum", 0.7}});
  for (const auto& [name, shape] : shapes) {
    const Shape c{shape[1]};
    add_case(cases, "BatchNormalization", name,
             inputs(random_input(shape), random_input(c), positive(c)));
    add_case(cases, "BatchNormalizationTraining", name,
             inputs(random_input(shape), random_input(c), positive(c)), {{"momentum", 0.9}});
  }
  add_case(cases, "BatchNormalizationTraining", "no_memory",
           inputs(random_input(images), random_input(four), positive(four)), {{"momentum", 0.0}});
  // One element per channel: the variance is 0, and y = bias.
  add_case(cases, "BatchNormalizationTraining", "one_element",
           inputs(patterned({1, 3, 1, 1}), patterned({3}), positive({3})), {{"epsilon", 0.1}});
  cases.back().expected = pattern(3, 2);

  const auto add_gradient = [&](const std::string& name, const CaseInput& x, double epsilon) {
    const Shape c{x.shape[1]};
    const std::vector<CaseInput> outputs = outputs_of(
        "BatchNormalizationTraining", inputs(x, patterned(c), positive(c)), {{"epsilon", epsilon}});
    add_case(cases, "BatchNormalizationGrad", name,
             {patterned(x.shape, 3), x, patterned(c, 1), outputs[3], outputs[4]},
             {{"epsilon", epsilon}});
  };
  add_gradient("torch_images", patterned(images), 1e-3);
  for (const auto& [name, shape] : shapes) add_gradient(name, patterned(shape), 1e-5);
}

void add_layer_normalization(Cases& cases) {
  add_case(cases, "LayerNormalization", "torch_two_axes",
           {patterned({3, 2, 5}), patterned({2, 5}, 1), patterned({2, 5}, 2)},
           {{"axis", 1}, {"epsilon", 1e-3}});
  CaseInput scale = patterned({2, 5}, 1);
  scale = valued({5}, {scale.values.begin(), scale.values.begin() + 5});
  add_case(cases, "LayerNormalization", "torch_last_axis", {patterned({3, 2, 5}), scale, absent()},
           {{"axis", 2}});
  const std::vector<CaseInput> outputs =
      outputs_of("LayerNormalization", {patterned({3, 2, 5}), scale, absent()}, {{"axis", 2}});
  add_case(cases, "LayerNormalizationGrad", "torch_last_axis",
           {patterned({3, 2, 5}, 3), patterned({3, 2, 5}), scale, outputs[1], outputs[2]},
           {{"axis", 2}});

  struct Case {
    const char* name;
    Shape x;
    std::int64_t axis;
    bool bias;
  };
  const std::vector<Case> more{{"matrix", {4, 7}, 1, true},
                               {"all_axes", {2, 3, 4}, 0, true},
                               {"all_axes_no_bias", {2, 3, 4}, 0, false},
                               {"vector", {9}, 0, true},
                               {"middle", {2, 3, 2, 4}, 2, true},
                               {"one_row", {1, 33}, 1, false},
                               {"many_rows", {37, 8}, 1, true},
                               {"wide", {3, 130}, 1, true},
                               {"one_element", {3, 1}, 1, true},
                               {"no_rows", {0, 4}, 1, true}};
  for (const Case& c : more) {
    const Shape affine(c.x.begin() + c.axis, c.x.end());
    const CaseInput bias = c.bias ? random_input(affine) : absent();
    const Attributes attributes{{"axis", c.axis}, {"epsilon", 1e-2}};
    add_case(cases, "LayerNormalization", c.name, {random_input(c.x), random_input(affine), bias},
             attributes);
    const std::vector<CaseInput> y = outputs_of(
        "LayerNormalization", {patterned(c.x), patterned(affine, 1), absent()}, attributes);
    add_case(cases, "LayerNormalizationGrad", c.name,
             {patterned(c.x, 3), patterned(c.x), patterned(affine, 1), y[1], y[2]},
             {{"axis", c.axis}});
  }
}

}  // namespace

void add_normalization_cases(Cases& cases) {
  add_batch_normalization(cases);
  add_layer_normalization(cases);
}

}  // namespace tandem::testing
