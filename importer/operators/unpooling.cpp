// MaxUnpool: elements put back to where MaxPool found them; zeros elsewhere.
#include <fmt/format.h>

#include <algorithm>

#include "importer/file/tensor_data.h"
#include "importer/operators/ranges.h"
#include "importer/operators/rebatch.h"
#include "importer/operators/window.h"

namespace tandem::importer::operators {

// `output_shape` adds zeros after the shape that the windows mean, or cuts it.
void max_unpool(NodeContext& node) {
  const Shape& x = node.shape(0);
  if (x.size() < 3 || x.size() > 5) {
    node.fail("input", "[N, C] and one, two or three spatial axes", to_string(x));
  }
  if (node.shape(1) != x) {
    node.fail("shape of the indices", to_string(x), to_string(node.shape(1)));
  }
  const std::size_t spatial = x.size() - 2;
  const Ints kernel = node.integers("kernel_shape", {});
  if (kernel.size() != spatial) {
    node.fail("kernel_shape", fmt::format("{} numbers", spatial), to_string(Shape(kernel)));
  }
  const Windows windows = read_windows(node, kernel);
  Shape shape{x[0], x[1]};
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t extent = (x[i + 2] - 1) * windows.strides[i] + kernel[i] - windows.pads[i] -
                                windows.pads[i + spatial];
    if (extent < 0 || x[i + 2] > (1 << 30)) {
      node.fail("extents of the result", "0 or more", std::to_string(extent));
    }
    shape.push_back(extent);
  }
  if (!checked_elements(shape, node.session().file.limits.tensor_bytes / 8)) {
    node.fail("the result is too large", "", to_string(shape));
  }
  const std::int64_t count = element_count(x);
  const Term zeros = node.expand(node.scalar(0, node.dtype(0)), {element_count(shape)});
  Term y = node.make("ScatterRows",
                     {zeros, node.reshape(node.in(1), {count}), node.reshape(node.in(0), {count})},
                     {{"reduction", std::string("none")}});
  y = node.reshape(y, shape);
  if (node.has(2)) {
    const Ints target = resize_target(node, node.static_integers(2, "output_shape"));
    y = fitted(node, y, target, false);
  }
  node.out(0, y);
}

}  // namespace tandem::importer::operators
