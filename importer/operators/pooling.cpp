// MaxPool and AveragePool of every version.
#include <fmt/format.h>

#include "importer/operators/window.h"

namespace tandem::importer::operators {
namespace {

Attributes pooling(NodeContext& node) {
  const Shape& x = node.shape(0);
  if (x.size() < 3 || x.size() > 5) {
    node.fail("input", "[N, C] and one, two or three spatial axes", to_string(x));
  }
  const Ints kernel = node.integers("kernel_shape", {});
  if (kernel.size() != x.size() - 2) {
    node.fail("kernel_shape", fmt::format("{} numbers", x.size() - 2), to_string(Shape(kernel)));
  }
  const Windows windows = read_windows(node, kernel);
  return {{"kernel_shape", windows.kernel},
          {"strides", windows.strides},
          {"pads", windows.pads},
          {"dilations", windows.dilations},
          {"ceil_mode", std::int64_t{node.flag("ceil_mode", false)}}};
}

}  // namespace

void max_pool(NodeContext& node) {
  Attributes attributes = pooling(node);
  attributes.set("storage_order", std::int64_t{node.flag("storage_order", false)});
  const std::vector<Term> results = node.make_all("MaxPool", {node.in(0)}, attributes);
  node.out(0, results[0]);
  node.out(1, results[1]);
}

void average_pool(NodeContext& node) {
  Attributes attributes = pooling(node);
  attributes.set("count_include_pad", std::int64_t{node.flag("count_include_pad", false)});
  node.out(0, node.make("AveragePool", {node.in(0)}, attributes));
}

}  // namespace tandem::importer::operators
