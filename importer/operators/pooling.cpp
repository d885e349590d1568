// MaxPool, AveragePool, LpPool and GlobalLpPool of every version.
#include <fmt/format.h>

#include <algorithm>

#include "engine/operators/window.h"
#include "importer/operators/reductions.h"
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

// |x|^p
Term powers(NodeContext& node, const Term& x, double p) {
  if (p == 1) return node.make("Abs", {x});
  if (p == 2) return node.make("Mul", {x, x});
  return node.make("Pow", {node.make("Abs", {x}), node.scalar(p, x.type.dtype)});
}

// The p-th root of a sum of such powers; its slope is 0 where the sum is.
Term root_of_powers(NodeContext& node, const Term& sum, double p) {
  if (p == 1) return sum;
  if (p == 2) return root_of_squares(node, sum);
  const Term zero = node.scalar(0, sum.type.dtype);
  const Term is_zero = node.make("Equal", {sum, zero});
  const Term safe = node.make("Where", {is_zero, node.scalar(1, sum.type.dtype), sum});
  const Term root = node.make("Pow", {safe, node.scalar(1 / p, sum.type.dtype)});
  return node.make("Where", {is_zero, zero, root});
}

// An integer since version 2.
double read_p(NodeContext& node) {
  const double p =
      node.version() < 2 ? node.number("p", 2) : static_cast<double>(node.integer("p", 2));
  if (!(p >= 1 && p <= 1e6)) node.fail("p", "1 or more", std::to_string(p));
  return p;
}

}  // namespace

// The p-th root of sums of |x|^p: means of windows, which are all whole after zeros were added,
// times their size.
void lp_pool(NodeContext& node) {
  Attributes attributes = pooling(node);
  const double p = read_p(node);
  const bool ceil_mode = attributes.flag("ceil_mode");
  const Ints kernel = attributes.integers("kernel_shape");
  const Term x = node.widen(node.in(0));
  const Shape& shape = x.type.shape;
  const std::size_t spatial = kernel.size();
  Ints pads(2 * shape.size(), 0);
  const std::vector<Window> windows = windows_of(attributes, kernel);
  for (std::size_t i = 0; i < spatial; ++i) {
    const Window& window = windows[i];
    const std::int64_t count = window_count(shape[i + 2], window, ceil_mode);
    if (count < 1) node.fail("the kernel is larger than the padded input", "", to_string(shape));
    const std::int64_t end = (count - 1) * window.stride + window.extent();
    pads[i + 2] = window.pad_begin;
    pads[i + 4 + spatial] = std::max<std::int64_t>(end - window.pad_begin - shape[i + 2], 0);
  }
  Term sums = powers(node, x, p);
  if (std::any_of(pads.begin(), pads.end(), [](std::int64_t n) { return n > 0; })) {
    sums = node.make("Pad", {sums},
                     {{"pads", pads}, {"mode", std::string("constant")}, {"value", 0.0}});
  }
  attributes.set("pads", Ints(2 * spatial, 0));
  attributes.set("ceil_mode", std::int64_t{0});
  attributes.set("count_include_pad", std::int64_t{1});
  const Term means = node.make("AveragePool", {sums}, attributes);
  const auto size = static_cast<double>(element_count(kernel));
  const Term scaled = node.make("Mul", {means, node.scalar(size, x.type.dtype)});
  node.out(0, node.cast(root_of_powers(node, scaled, p), node.dtype(0)));
}

void global_lp_pool(NodeContext& node) {
  if (node.rank(0) < 3) node.fail("rank of the input", "3 or more", std::to_string(node.rank(0)));
  const double p = read_p(node);
  Ints axes;
  for (std::int64_t i = 2; i < node.rank(0); ++i) axes.push_back(i);
  const Term sum = node.make("ReduceSum", {powers(node, node.widen(node.in(0)), p)},
                             {{"axes", axes}, {"keepdims", std::int64_t{1}}});
  node.out(0, node.cast(root_of_powers(node, sum, p), node.dtype(0)));
}

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
