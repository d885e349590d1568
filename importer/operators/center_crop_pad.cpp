// CenterCropPad: the middle of x, or x in the middle of zeros.

#include "importer/operators/ranges.h"
#include "importer/operators/rebatch.h"

namespace tandem::importer::operators {

Term fitted(NodeContext& node, const Term& x, const Shape& shape, bool centred) {
  const Shape& old = x.type.shape;
  if (shape.size() != old.size()) {
    node.fail("length of the shape", std::to_string(old.size()), std::to_string(shape.size()));
  }
  Ranges kept(old);
  Ints pads(2 * shape.size(), 0);
  bool cuts = false, adds = false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0 || shape[i] > (std::int64_t{1} << 30)) {
      node.fail("shape", "extents from 0 to 2^30", to_string(shape));
    }
    const std::int64_t less = old[i] - shape[i];  // below 0: more
    const std::int64_t before = centred ? std::abs(less) / 2 : 0;
    if (less > 0) {
      set_range(kept, i, old[i], before, before + shape[i], 1);
      cuts = true;
    } else if (less < 0) {
      pads[i] = before;
      pads[i + shape.size()] = -less - before;
      adds = true;
    }
  }
  Term y = x;
  if (cuts) y = node.make("Slice", {y}, kept.attributes());
  if (adds) {
    y = node.make("Pad", {y}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", 0.0}});
  }
  return y;
}

void center_crop_pad(NodeContext& node) {
  Ints axes(static_cast<std::size_t>(node.rank(0)));
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  if (const auto given = node.integers("axes")) {
    node.axes(*given, node.rank(0));  // distinct
    axes = *given;
  }
  Ints wanted = node.static_integers(1, "shape");
  if (!node.has_attribute("axes")) wanted = resize_target(node, wanted);
  if (wanted.size() != axes.size()) {
    node.fail("length of the shape", std::to_string(axes.size()), std::to_string(wanted.size()));
  }
  Shape shape = node.shape(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    shape[static_cast<std::size_t>(node.axis(axes[i], node.rank(0)))] = wanted[i];
  }
  node.out(0, node.make("Identity", {fitted(node, node.in(0), shape, true)}));
}

}  // namespace tandem::importer::operators
