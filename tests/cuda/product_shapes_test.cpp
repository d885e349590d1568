// Products in column-major form: each element is the same as by the operands' strides.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

#include "kernels/cuda/products/product.h"

namespace tandem::testing {
namespace {

using cuda::ColumnMajor;
using cuda::ColumnMajorProduct;
using cuda::Product;

/// The offset of element (i, j) of the (transposed) matrix, from the call's first element.
std::int64_t place(const ColumnMajor& m, std::int64_t i, std::int64_t j) {
  return m.transposed ? j + i * m.ld : i + j * m.ld;
}

void expect_same_product(const Operand& a, const Operand& b, const Operand& y) {
  const Product p = cuda::take_apart(a, b, y);
  const ColumnMajorProduct c = cuda::column_major(p);
  EXPECT_EQ(static_cast<std::int64_t>(c.calls.size()), cuda::call_count(p));
  for (const ColumnMajor& m : {c.left, c.right, c.result}) EXPECT_GE(m.ld, m.rows);
  EXPECT_FALSE(c.result.transposed);

  // For each element of y, the places of a's row and b's column, only by numpy's rule.
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> expected;
  const auto& ys = y.type.shape;
  const std::size_t rank = ys.size();
  const std::int64_t k = a.type.shape.back();
  std::vector<std::int64_t> index(rank, 0);
  const auto start = [&](const Operand& x, std::size_t own) {
    std::int64_t at = 0;
    const std::size_t missing = rank - x.type.rank();
    for (std::size_t i = 0; i + 2 < x.type.rank(); ++i) {
      if (x.type.shape[i] != 1) at += index[i + missing] * x.layout.strides[i];
    }
    const std::size_t axis = x.type.rank() - 2 + own;
    return at + index[rank - 2 + own] * x.layout.strides[axis];
  };
  for (std::int64_t i = 0; i < y.type.elements(); ++i) {
    std::int64_t at = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) at += index[axis] * y.layout.strides[axis];
    expected[at] = {start(a, 0), start(b, 1)};
    for (std::size_t axis = rank; axis-- > 0;) {
      if (++index[axis] < ys[axis]) break;
      index[axis] = 0;
    }
  }
  const std::int64_t a_k = a.layout.strides.back(), b_k = b.layout.strides[b.type.rank() - 2];

  std::int64_t seen = 0;
  const std::int64_t depth = c.left.transposed ? c.left.rows : c.left.columns;
  ASSERT_EQ(depth, k);
  for (const cuda::CallOffset& call : c.calls) {
    for (std::int64_t batch = 0; batch < c.batch; ++batch) {
      for (std::int64_t i = 0; i < c.result.rows; ++i) {
        for (std::int64_t j = 0; j < c.result.columns; ++j, ++seen) {
          const std::int64_t at =
              call.result + batch * c.result.batch_stride + place(c.result, i, j);
          ASSERT_EQ(expected.count(at), 1u) << "writes elsewhere: " << at;
          for (std::int64_t l = 0; l < k; ++l) {
            const std::int64_t left = call.left + batch * c.left.batch_stride + place(c.left, i, l);
            const std::int64_t right =
                call.right + batch * c.right.batch_stride + place(c.right, l, j);
            ASSERT_EQ(c.swapped ? right : left, expected[at].first + l * a_k);
            ASSERT_EQ(c.swapped ? left : right, expected[at].second + l * b_k);
          }
        }
      }
    }
  }
  EXPECT_EQ(seen, y.type.elements());
}

Operand operand(const Shape& shape, Layout layout) {
  Operand x;
  x.type = {DType::float32, shape};
  x.layout = std::move(layout);
  return x;
}

/// A random order of axes that keeps a matrix axis innermost, with gaps after some axes.
Layout some_layout(const Shape& shape, std::mt19937& random, bool room) {
  std::vector<int> order(shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::shuffle(order.begin(), order.end(), random);
  const int last = static_cast<int>(shape.size()) - 1 - static_cast<int>(random() % 2);
  std::erase(order, last);
  order.push_back(last);
  Layout layout = row_major(shape);
  std::int64_t stride = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    layout.strides[order[i]] = stride;
    stride *= shape[order[i]] + (room && random() % 3 == 0 ? 1 : 0);
  }
  return layout;
}

TEST(ColumnMajorProducts, EveryElementIsWhereItWas) {
  std::mt19937 random(5);
  const auto extent = [&] { return static_cast<std::int64_t>(1 + random() % 4); };
  int checked = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::int64_t m = extent(), n = extent(), k = extent(), p = extent(), q = extent();
    Shape a{m, k}, b{k, n}, y{m, n};
    switch (random() % 5) {
      case 1:
        a = {p, m, k};
        y = {p, m, n};
        break;
      case 2:
        b = {p, k, n};
        y = {p, m, n};
        break;
      case 3:
        a = {p, q, m, k};
        b = {p, q, k, n};
        y = {p, q, m, n};
        break;
      case 4:
        a = {p, 1, m, k};
        b = {q, k, n};
        y = {p, q, m, n};
        break;
    }
    const Operand left = operand(a, some_layout(a, random, true));
    const Operand right = operand(b, some_layout(b, random, true));
    const Operand result = operand(y, some_layout(y, random, true));
    SCOPED_TRACE(to_string(left.type) + " " + to_string(left.layout) + " x " +
                 to_string(right.type) + " " + to_string(right.layout) + " = " +
                 to_string(result.type) + " " + to_string(result.layout));
    if (!cuda::is_readable(left, true) || !cuda::is_readable(right, false) ||
        !cuda::is_writable(result, a.size(), b.size())) {
      continue;
    }
    expect_same_product(left, right, result);
    ++checked;
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(checked, 2000);
}

TEST(ColumnMajorProducts, RowsOfABatchAreOneMatrix) {
  const auto rows = [](const Shape& shape) { return operand(shape, row_major(shape)); };
  const Product merged =
      cuda::take_apart(rows({4, 6, 33, 16}), rows({16, 20}), rows({4, 6, 33, 20}));
  EXPECT_EQ(merged.m, 4 * 6 * 33);
  EXPECT_TRUE(merged.axes.empty());
  const Product batched =
      cuda::take_apart(rows({4, 6, 33, 16}), rows({4, 6, 16, 20}), rows({4, 6, 33, 20}));
  EXPECT_EQ(batched.axes.size(), 1u);
  EXPECT_EQ(cuda::call_count(batched), 1);
  // Heads within rows: two axes that cannot be merged.
  const Operand heads = operand({4, 6, 33, 16}, permuted({4, 6, 33, 16}, {0, 2, 1, 3}));
  const Product attention = cuda::take_apart(heads, rows({4, 6, 16, 33}), rows({4, 6, 33, 33}));
  EXPECT_EQ(cuda::call_count(attention), 4);
}

TEST(ColumnMajorProducts, WhatCannotBeReadIsCopied) {
  const auto reads = [](const Shape& shape, std::vector<std::int64_t> strides) {
    return cuda::is_readable(operand(shape, {0, std::move(strides), "", 0}), true);
  };
  EXPECT_TRUE(reads({3, 5}, {5, 1}));
  EXPECT_TRUE(reads({3, 5}, {1, 3}));
  EXPECT_TRUE(reads({3, 5}, {7, 1}));
  EXPECT_TRUE(reads({1, 5}, {0, 3}));
  EXPECT_TRUE(reads({3, 1}, {4, 9}));
  EXPECT_TRUE(reads({5}, {2}));
  EXPECT_TRUE(reads({2, 3, 5}, {0, 5, 1}));  // a broadcast batch
  EXPECT_FALSE(reads({3, 5}, {10, 2}));
  EXPECT_FALSE(reads({3, 5}, {4, 1}));  // rows overlap
  EXPECT_FALSE(reads({3, 5}, {0, 1}));
  EXPECT_FALSE(reads({3, 5}, {-5, 1}));
  EXPECT_FALSE(reads({2, 3, 5}, {-15, 5, 1}));
  EXPECT_FALSE(reads({2, 3, 5}, {1, 10, 2}));  // the batch is innermost
  EXPECT_FALSE(cuda::is_readable(operand({3, 5}, {0, {}, "blocked", 64}), true));
}

}  // namespace
}  // namespace tandem::testing
