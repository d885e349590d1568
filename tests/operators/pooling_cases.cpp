// Cases of MaxPool, AveragePool and their gradients.
#include "tests/operators/network_cases.h"

namespace tandem::testing {
namespace {

struct Pooling {
  std::string name;
  Shape x;
  Attributes attributes;
};

Attributes pooling_settings(Ints kernel, Ints strides, Ints pads, Ints dilations,
                            std::int64_t ceil_mode = 0) {
  return {{"kernel_shape", std::move(kernel)},
          {"strides", std::move(strides)},
          {"pads", std::move(pads)},
          {"dilations", std::move(dilations)},
          {"ceil_mode", ceil_mode}};
}

Attributes with_setting(Attributes attributes, const char* name, std::int64_t value) {
  attributes.set(name, value);
  return attributes;
}

std::vector<Pooling> poolings() {
  return {
      {"whole_map", {2, 3, 4, 5}, pooling_settings({4, 5}, {1, 1}, {0, 0, 0, 0}, {1, 1})},
      {"one_by_one_map", {2, 3, 1, 1}, pooling_settings({1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1})},
      // A map of one position is channels-last and row-major at once; its result is not.
      {"one_position_padded", {5, 2, 1, 1}, pooling_settings({2, 2}, {1, 1}, {1, 1, 1, 1}, {1, 1})},
      {"one_position_line", {3, 2, 1}, pooling_settings({2}, {1}, {1, 1}, {1})},
      {"usual", {2, 16, 8, 8}, pooling_settings({2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1})},
      {"overlapping", {1, 2, 7, 7}, pooling_settings({3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1})},
      {"asymmetric", {1, 2, 5, 6}, pooling_settings({2, 3}, {1, 2}, {0, 1, 1, 2}, {1, 1})},
      {"stride_above_kernel", {1, 3, 8, 9}, pooling_settings({2, 1}, {3, 4}, {0, 0, 0, 0}, {1, 1})},
      {"ceil_dilated", {1, 2, 8, 8}, pooling_settings({2, 2}, {3, 2}, {0, 1, 0, 0}, {2, 3}, 1)},
      {"ceil_kernel_above_input",
       {1, 1, 2, 3},
       pooling_settings({3, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, 1)},
      {"ceil_line", {2, 1, 6}, pooling_settings({3}, {2}, {0, 0}, {1}, 1)},
      {"volume_padded",
       {1, 2, 3, 3, 4},
       pooling_settings({2, 2, 2}, {1, 2, 2}, {1, 0, 1, 0, 1, 0}, {1, 1, 2})},
      // Windows that are longer than 1 only along some axes.
      {"volume_first_axis",
       {2, 2, 5, 3, 2},
       pooling_settings({3, 1, 1}, {1, 1, 1}, {1, 0, 0, 1, 0, 0}, {1, 1, 1})},
      {"volume_last_axes",
       {1, 2, 3, 4, 5},
       pooling_settings({1, 2, 3}, {1, 2, 1}, {0, 0, 1, 0, 0, 1}, {1, 1, 1})},
      {"volume_outer_axes",
       {1, 2, 4, 3, 4},
       pooling_settings({2, 1, 2}, {1, 1, 2}, {1, 0, 0, 0, 0, 0}, {2, 1, 1})},
      {"volume_single_elements",
       {2, 1, 2, 3, 2},
       pooling_settings({1, 1, 1}, {1, 1, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1})},
      {"rows_alone", {1, 2, 6, 5}, pooling_settings({3, 1}, {2, 1}, {1, 0, 1, 0}, {1, 1})},
      {"empty_batch", {0, 2, 4, 4}, pooling_settings({2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1})},
  };
}

const Pooling torch_ceil{
    "ceil", {2, 2, 7, 6}, pooling_settings({3, 2}, {2, 3}, {1, 1, 1, 1}, {1, 1}, 1)};
const Pooling torch_line{"line", {1, 3, 9}, pooling_settings({2}, {3}, {0, 0}, {1})};

/// Neighbours in a window must differ by more than the step of the finite differences.
CaseInput distinct(const Shape& shape) { return {.shape = shape, .fill = Fill::distinct}; }

/// Each element costs two evaluations: large cases check only values.
void leave_out_gradient_of_large(OperatorCase& c) {
  if (element_count(c.inputs[0].shape) < 500) return;
  c.check_gradient = false;
  c.why = "too many differences; the smaller cases check the gradient";
}

void add_max_pool(Cases& cases, const std::string& name, const CaseInput& x,
                  const Attributes& attributes, bool torch_gradient = false) {
  leave_out_gradient_of_large(add_case(cases, "MaxPool", name, {x}, attributes));
  if (x.shape[0] == 0) return;
  CaseInput values = x;
  if (values.fill != Fill::values) values = patterned(x.shape);
  const std::vector<CaseInput> y = outputs_of("MaxPool", {values}, attributes);
  add_case(cases, "MaxPoolGrad", torch_gradient ? name : "gradient_" + name,
           {values, y[0], patterned(y[0].shape, 3)}, attributes);
}

void add_max_pools(Cases& cases) {
  add_max_pool(cases, "torch_ceil", patterned(torch_ceil.x), torch_ceil.attributes, true);
  add_max_pool(cases, "torch_line", patterned(torch_line.x), torch_line.attributes, true);
  add_max_pool(cases, "torch_dilated", patterned({2, 2, 7, 6}),
               pooling_settings({2, 3}, {1, 2}, {0, 1, 0, 1}, {3, 1}));
  add_max_pool(cases, "torch_volume", patterned({1, 1, 4, 5, 4}),
               pooling_settings({2, 2, 2}, {2, 2, 2}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}));
  for (const Pooling& p : poolings()) {
    add_max_pool(cases, p.name, distinct(p.x), p.attributes);
    add_max_pool(cases, p.name + "_column_major", distinct(p.x),
                 with_setting(p.attributes, "storage_order", 1));
  }
  // Equal elements: the first one of a window wins, in the indices and in the gradient.
  const Attributes usual = pooling_settings({2, 2}, {1, 1}, {0, 0, 0, 0}, {1, 1});
  const CaseInput equal = valued({1, 1, 3, 3}, {1, 1, 0, 1, 1, 2, 0, 2, 2});
  add_max_pool(cases, "equal_elements", equal, usual);
  for (OperatorCase& c : cases) {
    if (c.op != "MaxPool" || c.name != "equal_elements") continue;
    c.check_gradient = false;
    c.why = "the maximum of equal elements has no derivative; MaxPoolGrad's case has the rule";
    c.expected = {1, 2, 2, 2};
  }
  cases.back().expected = {1, 0, 0, 0, 0, 2, 0, 1, 0};
  cases.back().inputs[2] = valued({1, 1, 2, 2}, {1, 1, 1, 1});
  add_case(cases, "MaxPool", "bytes",
           {{.shape = {1, 2, 4, 4},
             .dtype = DType::uint8,
             .fill = Fill::integers,
             .low = 0,
             .high = 255}},
           pooling_settings({2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}));
}

void add_average_pool(Cases& cases, const std::string& name, const CaseInput& x,
                      const Attributes& attributes, bool torch_gradient = false) {
  leave_out_gradient_of_large(add_case(cases, "AveragePool", name, {x}, attributes));
  const Shape y = outputs_of("AveragePool", {x}, attributes)[0].shape;
  Attributes with_shape = attributes;
  with_shape.set("shape", x.shape);
  add_case(cases, "AveragePoolGrad", torch_gradient ? name : "gradient_" + name, {patterned(y, 3)},
           with_shape);
}

void add_average_pools(Cases& cases) {
  for (const std::int64_t include : {0, 1}) {
    const std::string suffix = include ? "include_pad" : "exclude_pad";
    add_average_pool(cases, "torch_" + suffix, patterned(torch_ceil.x),
                     with_setting(torch_ceil.attributes, "count_include_pad", include), true);
    for (const Pooling& p : poolings()) {
      add_average_pool(cases, p.name + "_" + suffix, random_input(p.x),
                       with_setting(p.attributes, "count_include_pad", include));
    }
  }
  add_average_pool(cases, "torch_line", patterned(torch_line.x), torch_line.attributes);
  add_average_pool(cases, "torch_volume", patterned({1, 1, 4, 5, 4}),
                   pooling_settings({2, 2, 2}, {1, 1, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}));
}

}  // namespace

void add_pooling_cases(Cases& cases) {
  add_max_pools(cases);
  add_average_pools(cases);
}

}  // namespace tandem::testing
