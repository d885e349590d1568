// Rows of pooling, products of matrices and tensors, and convolution; sums and windows in double
// arithmetic.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<VersionRow>;

// x [1, 1, 6] and windows of 2 with stride 2, unless the row says otherwise.
void add_pools(Rows& rows) {
  const HostTensor x = floats({1, 1, 6}, {1, 5, 2, 8, 3, 4});
  const auto line = [](const Numbers& values) {
    return floats({1, 1, static_cast<std::int64_t>(values.size())}, values);
  };
  const auto add = [&](const char* op, int first, NodeAttributes attributes, const Numbers& y,
                       const char* note) {
    rows.push_back({op, first, newest, {x}, std::move(attributes), {line(y)}, note});
  };
  const NodeAttribute two = Axes{2}, three = Axes{3};
  add("MaxPool", 1, {{"kernel_shape", two}, {"strides", two}}, {5, 8, 4}, "plain");
  add("MaxPool", 1, {{"kernel_shape", three}, {"pads", Axes{1, 1}}}, {5, 5, 8, 8, 8, 4}, "pads");
  add("MaxPool", 1, {{"kernel_shape", two}, {"auto_pad", "SAME_UPPER"}}, {5, 5, 8, 8, 4, 4},
      "auto_pad");
  const NodeAttributes ceiling{{"kernel_shape", three}, {"strides", two}, {"ceil_mode", 1}};
  add("MaxPool", 10, ceiling, {5, 8, 4}, "ceil_mode: the last window reaches beyond");
  add("MaxPool", 10, {{"kernel_shape", two}, {"dilations", two}}, {2, 8, 3, 8}, "dilations");
  for (DType dtype : {f64, bf16, DType::int8, DType::uint8}) {
    rows.push_back({.op = "MaxPool",
                    .inputs = {x.converted(dtype)},
                    .attributes = {{"kernel_shape", two}, {"strides", two}},
                    .outputs = {line({5, 8, 4}).converted(dtype)},
                    .note = "other types"});
  }
  // Places in the whole tensor, its last two axes swapped where storage_order is 1.
  const HostTensor matrix = floats({1, 1, 2, 3}, {1, 5, 2, 8, 3, 4});
  for (std::int64_t order : {0, 1}) {
    rows.push_back({.op = "MaxPool",
                    .first = 8,
                    .inputs = {matrix},
                    .attributes = {{"kernel_shape", Axes{2, 2}}, {"storage_order", order}},
                    .outputs = {floats({1, 1, 1, 2}, {8, 5}),
                                integers({1, 1, 1, 2}, order == 0 ? Numbers{3, 1} : Numbers{1, 2})},
                    .note = "indices"});
  }
  rows.push_back({.op = "MaxPool",
                  .last = 8,
                  .inputs = {x},
                  .attributes = ceiling,
                  .note = "ceil_mode",
                  .refused = "ceil_mode"});

  add("AveragePool", 1, {{"kernel_shape", two}, {"strides", two}}, {3, 5, 3.5}, "plain");
  add("AveragePool", 1, {{"kernel_shape", three}, {"strides", three}, {"pads", Axes{1, 2}}},
      {3, 13.0 / 3, 4}, "pads do not count");
  add("AveragePool", 7,
      {{"kernel_shape", three}, {"strides", three}, {"pads", Axes{1, 2}}, {"count_include_pad", 1}},
      {2, 13.0 / 3, 4.0 / 3}, "pads count");
  add("AveragePool", 10, ceiling, {8.0 / 3, 13.0 / 3, 3.5}, "ceil_mode");
  NodeAttributes counting = ceiling;
  counting.emplace_back("count_include_pad", 1);
  add("AveragePool", 10, counting, {8.0 / 3, 13.0 / 3, 3.5},
      "ceil_mode: what is beyond the pads never counts");
  add("AveragePool", 19, {{"kernel_shape", two}, {"dilations", two}}, {1.5, 6.5, 2.5, 6},
      "dilations");
  rows.push_back({.op = "AveragePool",
                  .last = 11,
                  .inputs = {x},
                  .attributes = {{"kernel_shape", two}, {"dilations", two}},
                  .note = "dilations",
                  .refused = "dilations"});
}

// x [.., m, k] by y [.., k, n], each product on its own.
Numbers matrix_product(const Numbers& x, const Numbers& y, std::size_t m, std::size_t k,
                       std::size_t n) {
  Numbers z(m * n, 0.0);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t l = 0; l < k; ++l) z[i * n + j] += x[i * k + l] * y[l * n + j];
    }
  }
  return z;
}

void add_products(Rows& rows) {
  const Numbers a{1, 2, 3, 4, 5, 6}, a_swapped{1, 4, 2, 5, 3, 6};
  const Numbers b{1, 0, 2, -1, 3, 1}, b_swapped{1, 2, 3, 0, -1, 1};
  const Numbers ab = matrix_product(a, b, 2, 3, 2), c{1, -1};
  // Real numbers at first, 32-bit and wider integers from version 9 (MatMul) and 9 (Gemm).
  for (DType dtype : {f32, f64, bf16}) {
    const HostTensor x = typed(dtype, {2, 3}, a), y = typed(dtype, {3, 2}, b);
    rows.push_back({.op = "MatMul", .inputs = {x, y}, .outputs = {typed(dtype, {2, 2}, ab)}});
    rows.push_back({.op = "MatMul",
                    .inputs = {typed(dtype, {2, 1, 3}, a), y},
                    .outputs = {typed(dtype, {2, 1, 2}, ab)},
                    .note = "batches broadcast"});
    const auto scaled = [&](double alpha, double beta, std::int64_t broadcast_by_column) {
      Numbers z = ab;
      for (std::size_t i = 0; i < z.size(); ++i) {
        z[i] = alpha * z[i] + beta * c[broadcast_by_column != 0 ? i % 2 : i / 2];
      }
      return typed(dtype, {2, 2}, z);
    };
    rows.push_back({.op = "Gemm",
                    .inputs = {x, y, typed(dtype, {2}, c)},
                    .outputs = {scaled(1, 1, 1)},
                    .note = "C by column"});
    rows.push_back({.op = "Gemm",
                    .inputs = {typed(dtype, {3, 2}, a_swapped), typed(dtype, {2, 3}, b_swapped),
                               typed(dtype, {2, 1}, c)},
                    .attributes = {{"transA", 1}, {"transB", 1}, {"alpha", 0.5}, {"beta", 2.0}},
                    .outputs = {scaled(0.5, 2, 0)},
                    .note = "transposed, alpha, beta, C by row"});
    rows.push_back({.op = "Gemm",
                    .first = 11,
                    .inputs = {x, y},
                    .outputs = {scaled(1, 0, 0)},
                    .note = "without C"});
  }
  for (DType dtype : {i32, i64}) {
    const HostTensor x = typed(dtype, {2, 3}, a), y = typed(dtype, {3, 2}, b);
    rows.push_back({.op = "MatMul",
                    .inputs = {x, y},
                    .outputs = {typed(dtype, {2, 2}, ab)},
                    .note = "integers"});
    rows.push_back({.op = "Gemm",
                    .first = 11,
                    .inputs = {x, y},
                    .outputs = {typed(dtype, {2, 2}, ab)},
                    .note = "integers"});
  }
  rows.push_back({.op = "Gemm",
                  .last = 9,
                  .inputs = {floats({2, 3}, a), floats({3, 2}, b)},
                  .note = "without C",
                  .refused = "Gemm"});
}

void add_convolutions(Rows& rows) {
  const Numbers line{1, 2, 3, 4, 5}, kernel{1, 0, -2};
  const auto at = [&](std::int64_t i) { return i < 0 || i >= 5 ? 0.0 : line[std::size_t(i)]; };
  const auto window = [&](std::int64_t i, std::int64_t dilation) {
    double total = 0;
    for (std::int64_t k = 0; k < 3; ++k) total += kernel[std::size_t(k)] * at(i + k * dilation);
    return total;
  };
  for (DType dtype : {f32, f64, bf16}) {
    const HostTensor x = typed(dtype, {1, 1, 5}, line), w = typed(dtype, {1, 1, 3}, kernel);
    rows.push_back(
        {.op = "Conv",
         .inputs = {x, w},
         .outputs = {typed(dtype, {1, 1, 3}, {window(0, 1), window(1, 1), window(2, 1)})},
         .note = "plain"});
    rows.push_back(
        {.op = "Conv",
         .inputs = {x, w, typed(dtype, {1}, {0.5})},
         .attributes = {{"strides", Axes{2}}, {"pads", Axes{1, 1}}},
         .outputs = {typed(dtype, {1, 1, 3},
                           {window(-1, 1) + 0.5, window(1, 1) + 0.5, window(3, 1) + 0.5})},
         .note = "bias, strides, pads"});
    rows.push_back({.op = "Conv",
                    .inputs = {x, w},
                    .attributes = {{"dilations", Axes{2}},
                                   {"auto_pad", "SAME_LOWER"},
                                   {"kernel_shape", Axes{3}}},
                    .outputs = {typed(
                        dtype, {1, 1, 5},
                        {window(-2, 2), window(-1, 2), window(0, 2), window(1, 2), window(2, 2)})},
                    .note = "dilations, auto_pad"});
    rows.push_back(
        {.op = "Conv",
         .inputs = {typed(dtype, {1, 2, 1, 2}, {1, 2, 3, 4}), typed(dtype, {2, 1, 1, 1}, {10, -1})},
         .attributes = {{"group", 2}},
         .outputs = {typed(dtype, {1, 2, 1, 2}, {10, 20, -3, -4})},
         .note = "groups"});
  }
}

// Each element of x puts its multiple of the kernel {1, 0, -2} into the result.
void add_transposed_convolutions(Rows& rows) {
  for (DType dtype : {f32, f64, bf16}) {
    const HostTensor x = typed(dtype, {1, 1, 3}, {1, 2, 3});
    const HostTensor w = typed(dtype, {1, 1, 3}, {1, 0, -2});
    const auto add = [&](NodeAttributes attributes, const Numbers& y, const char* note) {
      rows.push_back({.op = "ConvTranspose",
                      .inputs = {x, w},
                      .attributes = std::move(attributes),
                      .outputs = {typed(dtype, {1, 1, static_cast<std::int64_t>(y.size())}, y)},
                      .note = note});
    };
    const NodeAttribute two = Axes{2};
    add({}, {1, 2, 1, -4, -6}, "plain");
    add({{"dilations", two}}, {1, 2, 3, 0, -2, -4, -6}, "dilations");
    add({{"strides", two}}, {1, 0, 0, 0, -1, 0, -6}, "strides");
    add({{"strides", two}, {"pads", Axes{1, 1}}, {"kernel_shape", Axes{3}}}, {0, 0, 0, -1, 0},
        "pads");
    add({{"strides", two}, {"pads", Axes{1, 1}}, {"output_padding", Axes{1}}}, {0, 0, 0, -1, 0, -6},
        "output_padding");
    add({{"strides", two}, {"dilations", Axes{3}}, {"output_padding", two}},
        {1, 0, 2, 0, 3, 0, -2, 0, -4, 0, -6, 0, 0}, "output_padding of a stride");
    add({{"strides", two}, {"auto_pad", "SAME_UPPER"}}, {1, 0, 0, 0, -1, 0}, "SAME_UPPER");
    add({{"strides", two}, {"auto_pad", "SAME_LOWER"}}, {0, 0, 0, -1, 0, -6}, "SAME_LOWER");
    add({{"strides", two}, {"auto_pad", "VALID"}}, {1, 0, 0, 0, -1, 0, -6}, "VALID");
    add({{"strides", two}, {"output_shape", Axes{6}}}, {0, 0, 0, -1, 0, -6}, "output_shape");
    add({{"strides", two}, {"output_shape", Axes{1, 1, 8}}}, {1, 0, 0, 0, -1, 0, -6, 0},
        "a larger output_shape, of all axes");
    rows.push_back(
        {.op = "ConvTranspose",
         .inputs = {typed(dtype, {1, 2, 1, 1}, {1, 2}), typed(dtype, {2, 1, 1, 2}, {3, 4, 5, 6}),
                    typed(dtype, {2}, {1, -1})},
         .attributes = {{"group", 2}},
         .outputs = {typed(dtype, {1, 2, 1, 2}, {4, 5, 9, 11})},
         .note = "groups, bias"});
    rows.push_back({.op = "ConvTranspose",
                    .inputs = {typed(dtype, {1, 2, 1, 1, 1}, {1, 2}),
                               typed(dtype, {2, 1, 2, 1, 1}, {3, 4, 5, 6})},
                    .outputs = {typed(dtype, {1, 1, 2, 1, 1}, {13, 16})},
                    .note = "three axes, sum over channels"});
  }
}

void add_einsums(Rows& rows) {
  const auto add = [&](const char* equation, std::vector<HostTensor> inputs, HostTensor y) {
    rows.push_back({.op = "Einsum",
                    .inputs = std::move(inputs),
                    .attributes = {{"equation", equation}},
                    .outputs = {std::move(y)},
                    .note = equation});
  };
  for (DType dtype : {f32, f64, i32, i64}) {
    const HostTensor a = typed(dtype, {2, 3}, {1, 2, 3, 4, 5, 6});
    const HostTensor b = typed(dtype, {3, 2}, {1, 0, -1, 2, 3, 1});
    const HostTensor ab = typed(dtype, {2, 2}, {8, 7, 17, 16}), u = typed(dtype, {2}, {1, 10});
    const HostTensor square = typed(dtype, {2, 2}, {1, 2, 3, 4});
    add("ij,jk->ik", {a, b}, ab);
    add("ij,jk", {a, b}, ab);
    add("ij , kj -> ki", {a, a}, typed(dtype, {2, 2}, {14, 32, 32, 77}));
    add("ij->ji", {a}, typed(dtype, {3, 2}, {1, 4, 2, 5, 3, 6}));
    add("ij->j", {a}, typed(dtype, {3}, {5, 7, 9}));
    add("ba", {a}, typed(dtype, {3, 2}, {1, 4, 2, 5, 3, 6}));
    add("ij,ij->", {a, a}, typed(dtype, {}, {91}));
    add("i,j->ij", {u, typed(dtype, {3}, {1, 2, 3})}, typed(dtype, {2, 3}, {1, 2, 3, 10, 20, 30}));
    add("ij,i->ij", {a, u}, typed(dtype, {2, 3}, {1, 2, 3, 40, 50, 60}));
    add("ij,jk,k->i", {a, b, u}, typed(dtype, {2}, {78, 177}));
    add("...ij,...jk->...ik", {typed(dtype, {1, 2, 3}, {1, 2, 3, 4, 5, 6}), b},
        typed(dtype, {1, 2, 2}, {8, 7, 17, 16}));
    add("i...->...i", {a}, typed(dtype, {3, 2}, {1, 4, 2, 5, 3, 6}));
    add("ii->i", {square}, typed(dtype, {2}, {1, 4}));
    add("ii", {square}, typed(dtype, {}, {5}));
  }
  rows.push_back({.op = "Einsum",
                  .inputs = {floats({2, 3}, Numbers(6)), floats({2, 2}, Numbers(4))},
                  .attributes = {{"equation", "ij,jk->ik"}},
                  .note = "extents that differ",
                  .refused = "extents of one label"});
  rows.push_back({.op = "Einsum",
                  .inputs = {floats({2, 3}, Numbers(6))},
                  .attributes = {{"equation", "ij->iik"}},
                  .note = "a bad result",
                  .refused = "equation"});
}

}  // namespace

void add_products_rows(std::vector<VersionRow>& rows) {
  add_pools(rows);
  add_products(rows);
  add_convolutions(rows);
  add_transposed_convolutions(rows);
  add_einsums(rows);
}

}  // namespace tandem::testing
