#include "engine/operators/convolution.h"

namespace tandem::operators {

std::vector<AttributeSpec> convolution_attributes(bool with_shape) {
  std::vector<AttributeSpec> specs{{"strides", Ints{}, true},
                                   {"pads", Ints{}, true},
                                   {"dilations", Ints{}, true},
                                   {"group", std::int64_t{1}}};
  if (with_shape) specs.push_back({"shape", Ints{}, true});
  return specs;
}

Shape convolution_shape(const NodeView& view, const Shape& x, const Shape& weight) {
  if (x.size() < 3 || x.size() > 5) {
    view.fail("x has the wrong rank", "[N, C] and 1 to 3 spatial axes", to_string(x));
  }
  if (weight.size() != x.size()) {
    view.fail("weight has the wrong rank", std::to_string(x.size()) + " axes, as x",
              to_string(weight));
  }
  const std::int64_t group = view.attributes().integer("group");
  if (group < 1) view.fail("group is out of range", "1 or more", std::to_string(group));
  if (weight[0] % group != 0) {
    view.fail("the output channels do not divide into groups",
              "weight's first extent a multiple of group = " + std::to_string(group),
              std::to_string(weight[0]));
  }
  if (x[1] % group != 0 || x[1] / group != weight[1]) {
    const std::string wanted =
        group == 1 ? std::to_string(weight[1])
                   : std::to_string(weight[1]) + " x group " + std::to_string(group);
    view.fail("the input channels do not fit the weight " + to_string(weight),
              wanted + " input channels", std::to_string(x[1]));
  }
  for (std::size_t i = 0; i < weight.size(); ++i) {
    if (weight[i] < 1) view.fail("weight is empty", "extents of 1 or more", to_string(weight));
  }
  require_windows(view, x.size() - 2);
  Shape y = output_extents(view, x, Shape(weight.begin() + 2, weight.end()));
  y.insert(y.begin(), {x[0], weight[0]});
  return y;
}

double convolution_flops(const Shape& y, const Shape& weight) {
  return 2.0 * static_cast<double>(element_count(y)) * static_cast<double>(element_count(weight)) /
         static_cast<double>(weight[0]);
}

Attributes convolution_attributes_of(const Node& node, const Shape* shape) {
  const Attributes& from = node.attributes;
  Attributes attributes{{"strides", from.integers("strides")},
                        {"pads", from.integers("pads")},
                        {"dilations", from.integers("dilations")},
                        {"group", from.integer("group")}};
  if (shape != nullptr) attributes.set("shape", *shape);
  return attributes;
}

}  // namespace tandem::operators
