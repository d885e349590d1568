// AffineGrid: the places of an image, which are constants, times matrices.

#include "importer/file/tensor_data.h"
#include "importer/node_context.h"
#include "importer/operators/rebatch.h"

namespace tandem::importer::operators {

// theta [N, axes, axes + 1], size [N, C, d...] to [N, d..., axes]; coordinates begin with the last
// axis. -1 and 1 are the ends of an axis (with align_corners the middles of the elements there).
void affine_grid(NodeContext& node) {
  const Ints size = affine_grid_size(node, node.static_integers(1, "size"));
  const auto axes = static_cast<std::int64_t>(size.size()) - 2;
  if (axes < 2 || axes > 3 || !checked_elements(size, std::int64_t{1} << 32)) {
    node.fail("size", "[N, C] and two or three extents", to_string(Shape(size)));
  }
  if (node.shape(0) != Shape{size[0], axes, axes + 1}) {
    node.fail("theta", to_string(Shape{size[0], axes, axes + 1}), to_string(node.shape(0)));
  }
  const bool align_corners = node.flag("align_corners", false);
  const Shape extents(size.begin() + 2, size.end());
  const auto count = checked_elements(extents, 1 << 24);
  if (!count) node.fail("size", "at most 2^24 places", to_string(Shape(size)));
  std::vector<double> places;  // [count, axes + 1], the last column is 1
  for (std::int64_t place = 0; place < *count; ++place) {
    std::int64_t rest = place;
    for (std::size_t i = extents.size(); i-- > 0;) {
      const auto n = static_cast<double>(extents[i]);
      const auto at = static_cast<double>(rest % extents[i]);
      rest /= extents[i];
      const bool single = extents[i] == 1;
      places.push_back(single ? 0 : align_corners ? 2 * at / (n - 1) - 1 : (2 * at + 1) / n - 1);
    }
    places.push_back(1);
  }
  const Term theta = node.widen(node.in(0));
  const Term grid =
      node.constant(HostTensor::from({*count, axes + 1}, places).converted(theta.type.dtype));
  const Term y = node.make("MatMul", {grid, node.transpose(theta, {0, 2, 1})});
  Shape shape{size[0]};
  shape.insert(shape.end(), extents.begin(), extents.end());
  shape.push_back(axes);
  node.out(0, node.cast(node.reshape(y, shape), node.dtype(0)));
}

}  // namespace tandem::importer::operators
