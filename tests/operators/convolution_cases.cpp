// Cases of Conv, ConvGradInput, ConvGradWeight and ConvFused.
#include "tests/operators/network_cases.h"

namespace tandem::testing {
namespace {

struct Convolution {
  const char* name;
  Shape x, weight, y;
  Attributes attributes;
};

Attributes convolution_settings(Ints strides, Ints pads, Ints dilations, std::int64_t group) {
  return {{"strides", std::move(strides)},
          {"pads", std::move(pads)},
          {"dilations", std::move(dilations)},
          {"group", group}};
}

std::vector<Convolution> convolutions() {
  return {
      {"torch_line", {2, 2, 7}, {3, 2, 3}, {2, 3, 4}, convolution_settings({2}, {1, 1}, {1}, 1)},
      {"torch_asymmetric",
       {1, 3, 5, 6},
       {2, 3, 3, 2},
       {1, 2, 6, 3},
       convolution_settings({1, 2}, {1, 0, 2, 1}, {1, 1}, 1)},
      {"torch_grouped",
       {2, 4, 6, 5},
       {6, 2, 3, 3},
       {2, 6, 3, 3},
       convolution_settings({2, 1}, {1, 1, 1, 1}, {1, 2}, 2)},
      {"torch_depthwise",
       {1, 3, 4, 4},
       {3, 1, 3, 3},
       {1, 3, 4, 4},
       convolution_settings({1, 1}, {1, 1, 1, 1}, {1, 1}, 3)},
      {"torch_volume",
       {1, 2, 3, 4, 3},
       {2, 2, 2, 2, 2},
       {1, 2, 2, 2, 3},
       convolution_settings({1, 2, 1}, {0, 1, 0, 0, 0, 1}, {1, 1, 1}, 1)},
  };
}

/// Shapes without PyTorch's numbers: awkward ones, and those with special code in fast kernels.
std::vector<Convolution> more_convolutions() {
  return {
      {"pointwise",
       {2, 3, 3, 3},
       {5, 3, 1, 1},
       {2, 5, 3, 3},
       convolution_settings({1, 1}, {0, 0, 0, 0}, {1, 1}, 1)},
      {"pointwise_strided",
       {3, 4, 5, 5},
       {2, 4, 1, 1},
       {3, 2, 3, 3},
       convolution_settings({2, 2}, {0, 0, 0, 0}, {1, 1}, 1)},
      {"one_by_one_map",
       {2, 3, 1, 1},
       {4, 3, 3, 3},
       {2, 4, 1, 1},
       convolution_settings({1, 1}, {1, 1, 1, 1}, {1, 1}, 1)},
      {"stride_above_kernel",
       {1, 2, 8, 7},
       {3, 2, 2, 2},
       {1, 3, 3, 2},
       convolution_settings({3, 4}, {0, 0, 0, 0}, {1, 1}, 1)},
      {"whole_map",
       {2, 2, 3, 4},
       {3, 2, 3, 4},
       {2, 3, 1, 1},
       convolution_settings({1, 1}, {0, 0, 0, 0}, {1, 1}, 1)},
      {"two_by_two_strided",
       {2, 4, 2, 2},
       {4, 4, 3, 3},
       {2, 4, 1, 1},
       convolution_settings({2, 2}, {1, 1, 1, 1}, {1, 1}, 1)},
      {"depthwise_multiplied",
       {2, 2, 5, 5},
       {4, 1, 3, 3},
       {2, 4, 2, 2},
       convolution_settings({2, 2}, {0, 0, 0, 0}, {1, 1}, 2)},
      {"dilated",
       {1, 2, 7, 7},
       {2, 2, 3, 3},
       {1, 2, 5, 5},
       convolution_settings({1, 1}, {1, 1, 1, 1}, {2, 2}, 1)},
      {"wide_pads",
       {1, 1, 2, 2},
       {1, 1, 2, 2},
       {1, 1, 5, 4},
       convolution_settings({1, 1}, {3, 0, 1, 3}, {1, 1}, 1)},
      {"first_layer",
       {2, 3, 9, 9},
       {8, 3, 7, 7},
       {2, 8, 5, 5},
       convolution_settings({2, 2}, {3, 3, 3, 3}, {1, 1}, 1)},
      {"sixteen_channels",
       {2, 16, 4, 4},
       {32, 16, 3, 3},
       {2, 32, 4, 4},
       convolution_settings({1, 1}, {1, 1, 1, 1}, {1, 1}, 1)},
      {"tiny_maps_of_many_channels",
       {8, 32, 3, 3},
       {32, 32, 2, 2},
       {8, 32, 2, 2},
       convolution_settings({1, 1}, {0, 0, 0, 0}, {1, 1}, 1)},
      {"empty_batch",
       {0, 2, 4, 4},
       {3, 2, 3, 3},
       {0, 3, 2, 2},
       convolution_settings({1, 1}, {0, 0, 0, 0}, {1, 1}, 1)},
      {"line_grouped", {1, 4, 5}, {4, 2, 2}, {1, 4, 5}, convolution_settings({1}, {1, 1}, {2}, 2)},
      {"volume_grouped",
       {2, 2, 2, 3, 3},
       {4, 1, 2, 2, 2},
       {2, 4, 1, 2, 3},
       convolution_settings({2, 1, 1}, {0, 0, 1, 0, 0, 1}, {1, 1, 2}, 2)},
  };
}

/// Whether there are few products: more make the numeric gradient slow, so that only values are
/// checked.
bool is_small(const Convolution& c) {
  return element_count(c.y) * element_count(c.weight) / c.weight[0] < 20000;
}

void add_convolution(Cases& cases, const Convolution& c) {
  const std::string plain = c.name;
  const auto one = [&](const char* op, std::vector<CaseInput> inputs, const Shape* shape) {
    Attributes attributes = c.attributes;
    if (shape != nullptr) attributes.set("shape", *shape);
    OperatorCase& added = add_case(cases, op, plain, std::move(inputs), std::move(attributes));
    if (is_small(c)) return;
    added.check_gradient = false;
    added.why = "too many differences; the smaller cases check the gradient";
  };
  one("Conv", {patterned(c.x), patterned(c.weight, 1), absent()}, nullptr);
  one("ConvGradInput", {patterned(c.y, 3), patterned(c.weight, 1)}, &c.x);
  one("ConvGradWeight", {patterned(c.x), patterned(c.y, 3)}, &c.weight);
}

void add_fused(Cases& cases) {
  const Convolution grouped = convolutions()[2];
  for (const char* name : {"relu", "gelu", "gelu_tanh", ""}) {
    Attributes attributes = grouped.attributes;
    const std::string label = name;
    attributes.set("activation", label == "relu"        ? std::string("Relu")
                                 : label == "gelu"      ? std::string("Gelu")
                                 : label == "gelu_tanh" ? std::string("GeluTanh")
                                                        : std::string());
    add_case(cases, "ConvFused", label.empty() ? "no_activation" : "torch_" + label,
             {patterned(grouped.x), patterned(grouped.weight, 1), patterned({6}, 2),
              patterned(grouped.y, 4)},
             attributes);
    if (label.empty()) cases.back().inputs[2] = absent();
    if (label.empty()) continue;
    add_case(cases, "ConvFused", label + "_no_residual",
             {patterned(grouped.x), patterned(grouped.weight, 1), patterned({6}, 2), absent()},
             attributes);
    add_case(cases, "ConvFused", label + "_alone",
             {patterned(grouped.x), patterned(grouped.weight, 1), absent(), absent()}, attributes);
  }
  for (const Convolution& c : more_convolutions()) {
    Attributes attributes = c.attributes;
    attributes.set("activation", std::string("Relu"));
    add_case(cases, "ConvFused", c.name,
             {patterned(c.x), patterned(c.weight, 1), patterned({c.y[1]}, 2), patterned(c.y, 4)},
             attributes);
  }
}

}  // namespace

void add_convolution_cases(Cases& cases) {
  for (const Convolution& c : convolutions()) add_convolution(cases, c);
  for (const Convolution& c : more_convolutions()) add_convolution(cases, c);
  for (OperatorCase& c : cases) {  // PyTorch's numbers include a bias
    if (c.op == "Conv" && c.name.starts_with("torch_")) {
      c.inputs[2] = patterned({c.inputs[1].shape[0]}, 2);
    }
  }
  add_fused(cases);
}

}  // namespace tandem::testing
