// Products: MatMul, Gemm, Conv.
#include <fmt/format.h>

#include <algorithm>

#include "importer/operators/window.h"

namespace tandem::importer {

Windows read_windows(NodeContext& node, const Ints& kernel) {
  constexpr std::int64_t limit = 1 << 30;
  const Shape& x = node.shape(0);
  const std::size_t spatial = x.size() - 2;
  const auto read = [&](const char* name, std::size_t count, std::int64_t missing,
                        std::int64_t low) {
    const Ints values = node.integers(name, Ints(count, missing));
    if (values.size() != count) {
      node.fail(name, fmt::format("{} numbers", count), to_string(Shape(values)));
    }
    for (std::int64_t value : values) {
      if (value < low || value > limit) {
        node.fail(name, fmt::format("numbers from {} to 2^30", low), to_string(Shape(values)));
      }
    }
    return values;
  };
  Windows windows{kernel, read("strides", spatial, 1, 1), read("pads", 2 * spatial, 0, 0),
                  read("dilations", spatial, 1, 1)};
  for (std::int64_t extent : kernel) {
    if (extent < 1 || extent > limit)
      node.fail("kernel_shape", "numbers >= 1", to_string(Shape(kernel)));
  }
  const std::string automatic = node.text("auto_pad", "NOTSET");
  if (automatic == "NOTSET") return windows;
  windows.pads.assign(2 * spatial, 0);
  if (automatic == "VALID") return windows;
  if (automatic != "SAME_UPPER" && automatic != "SAME_LOWER") {
    node.fail("auto_pad", "NOTSET, VALID, SAME_UPPER or SAME_LOWER", automatic);
  }
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t count = (x[i + 2] + windows.strides[i] - 1) / windows.strides[i];
    const std::int64_t reach = (kernel[i] - 1) * windows.dilations[i] + 1;
    const std::int64_t total =
        std::max<std::int64_t>((count - 1) * windows.strides[i] + reach - x[i + 2], 0);
    const std::int64_t more = (total + 1) / 2, less = total / 2;
    windows.pads[i] = automatic == "SAME_UPPER" ? less : more;
    windows.pads[i + spatial] = automatic == "SAME_UPPER" ? more : less;
  }
  return windows;
}

namespace {

void matmul(NodeContext& node) { node.out(0, node.make("MatMul", {node.in(0), node.in(1)})); }

// alpha A B + beta C
void gemm(NodeContext& node) {
  if (node.rank(0) != 2 || node.rank(1) != 2) {
    node.fail("operands", "matrices",
              to_string(node.shape(0)) + " and " + to_string(node.shape(1)));
  }
  const Ints swap{1, 0};
  const Term a = node.flag("transA", false) ? node.transpose(node.in(0), swap) : node.in(0);
  const Term b = node.flag("transB", false) ? node.transpose(node.in(1), swap) : node.in(1);
  const double alpha = node.number("alpha", 1.0), beta = node.number("beta", 1.0);
  Term result = node.make("MatMul", {a, b});
  if (alpha != 1.0) result = node.make("Mul", {result, node.scalar(alpha, result.type.dtype)});
  if (node.has(2) && beta != 0.0) {
    Term c = node.in(2);
    const auto joint = broadcast_shape(c.type.shape, result.type.shape);
    if (!joint || *joint != result.type.shape) {
      node.fail("operand C", "one that broadcasts to " + to_string(result.type.shape),
                to_string(c.type.shape));
    }
    if (beta != 1.0) c = node.make("Mul", {c, node.scalar(beta, c.type.dtype)});
    result = node.make("Add", {result, c});
  }
  node.out(0, result);
}

void conv(NodeContext& node) {
  const Shape& x = node.shape(0);
  const Shape& weight = node.shape(1);
  if (x.size() < 3 || x.size() > 5 || weight.size() != x.size()) {
    node.fail("input and weight", "one, two or three spatial axes in both",
              to_string(x) + " and " + to_string(weight));
  }
  const Ints kernel(weight.begin() + 2, weight.end());
  const Ints named = node.integers("kernel_shape", kernel);
  if (named != kernel) {
    node.fail("kernel_shape", "the weight's " + to_string(Shape(kernel)), to_string(Shape(named)));
  }
  const std::int64_t group = node.integer("group", 1);
  if (group < 1 || x[1] % group != 0 || weight[0] % group != 0 || weight[1] != x[1] / group) {
    node.fail("channels", fmt::format("a weight for {} channels in {} groups", x[1], group),
              to_string(weight));
  }
  const Windows windows = read_windows(node, kernel);
  std::vector<Term> inputs{node.widen(node.in(0)), node.widen(node.in(1))};
  if (node.has(2)) inputs.push_back(node.widen(node.in(2)));
  const Term y = node.make("Conv", inputs,
                           {{"strides", windows.strides},
                            {"pads", windows.pads},
                            {"dilations", windows.dilations},
                            {"group", group}});
  node.out(0, node.cast(y, node.dtype(0)));
}

}  // namespace

void add_products(std::vector<Lowering>& list) {
  list.push_back({"MatMul", matmul});
  list.push_back({"Gemm", gemm});
  list.push_back({"Conv", conv});
}

}  // namespace tandem::importer
