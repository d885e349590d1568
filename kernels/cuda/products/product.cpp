#include "kernels/cuda/products/product.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

namespace tandem::cuda {
namespace {

/// cuBLASLt counts rows, columns and matrices in 32 bits.
constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();

/// Shape and strides of an operand that has both matrix axes.
struct Axes {
  Shape shape;
  std::vector<std::int64_t> strides;

  void insert(std::size_t at, std::int64_t extent) {
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), extent);
    strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(at), 0);
  }
  /// Stride along axis `axis` of `rank`, 0 where it is broadcast.
  std::int64_t stride(std::size_t rank, std::size_t axis) const {
    const std::size_t missing = rank - shape.size();
    return axis < missing || shape[axis - missing] == 1 ? 0 : strides[axis - missing];
  }
};

Axes factor_axes(const Operand& operand, bool left) {
  Axes axes{operand.type.shape, operand.layout.strides};
  if (axes.shape.size() == 1) axes.insert(left ? 0 : 1, 1);
  return axes;
}

Axes result_axes(const Operand& y, std::size_t a_rank, std::size_t b_rank) {
  Axes axes{y.type.shape, y.layout.strides};
  if (a_rank == 1) axes.insert(axes.shape.size() - (b_rank == 1 ? 0 : 1), 1);
  if (b_rank == 1) axes.insert(axes.shape.size(), 1);
  return axes;
}

/// Whether `extent` elements are contiguous and the `others` along the other axis do not overlap.
bool is_packed(std::int64_t extent, std::int64_t stride, std::int64_t others,
               std::int64_t distance) {
  if (extent > 1 && stride != 1) return false;
  return others <= 1 || (distance >= std::max<std::int64_t>(extent, 1) && distance <= most);
}

bool is_matrix(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column) {
  return is_packed(rows, row, columns, column) || is_packed(columns, column, rows, row);
}

bool is_taken(const Axes& axes) {
  const std::size_t rank = axes.shape.size();
  if (element_count(axes.shape) == 0) return true;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (axes.shape[i] > 1 && axes.strides[i] < 0) return false;
  }
  return is_matrix(axes.shape[rank - 2], axes.shape[rank - 1], axes.strides[rank - 2],
                   axes.strides[rank - 1]);
}

bool goes_on(const BatchAxis& outer, const BatchAxis& inner) {
  return outer.a == inner.a * inner.extent && outer.b == inner.b * inner.extent &&
         outer.y == inner.y * inner.extent &&
         outer.extent <= most / std::max<std::int64_t>(inner.extent, 1);
}

void merge_axes(std::vector<BatchAxis>& axes) {
  for (std::size_t i = axes.size(); i-- > 1;) {
    if (!goes_on(axes[i - 1], axes[i])) continue;
    axes[i - 1] = {axes[i - 1].extent * axes[i].extent, axes[i].a, axes[i].b, axes[i].y};
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

/// The innermost batch axis as rows; false where the strides do not go on.
bool merge_into_rows(Product& p) {
  const BatchAxis axis = p.axes.back();
  if (axis.b != 0 || axis.extent * p.m > most || axis.extent == 0) return false;
  const bool single = p.m == 1;
  if (!single && (axis.a != p.a_m * p.m || axis.y != p.y_m * p.m)) return false;
  const std::int64_t rows = axis.extent * p.m;
  const std::int64_t a_m = single ? axis.a : p.a_m, y_m = single ? axis.y : p.y_m;
  if (!is_matrix(rows, p.k, a_m, p.a_k) || !is_matrix(rows, p.n, y_m, p.y_n)) return false;
  p.m = rows;
  p.a_m = a_m;
  p.y_m = y_m;
  p.axes.pop_back();
  return true;
}

/// The axis whose matrices go into one call: the longest.
std::size_t batched_axis(const Product& p) {
  const auto longest =
      std::max_element(p.axes.begin(), p.axes.end(),
                       [](const BatchAxis& x, const BatchAxis& y) { return x.extent < y.extent; });
  return static_cast<std::size_t>(longest - p.axes.begin());
}

/// The factor X of rows x columns whose element (i, j) is at i row + j column.
///
/// row = 1: element (i, j) is at i + j column, so memory holds X itself, with ld = column.
/// column = 1: element (i, j) is at j + i row, so memory holds a column-major matrix of
/// columns x rows whose element (j, i) is X's (i, j), which is X's transpose, with ld = row.
/// An axis of extent 1 has any stride; a single column may have any ld, so it gets its length.
ColumnMajor factor(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column) {
  // A row of a packed vector is rather one column of its transpose: ld is its length, not 1.
  const bool is_row = rows == 1 && column == 1 && columns > 1;
  if (is_packed(rows, row, columns, column) && !is_row) {
    return {.rows = rows, .columns = columns, .ld = columns == 1 ? rows : column};
  }
  assert(is_packed(columns, column, rows, row));
  return {.rows = columns, .columns = rows, .ld = rows == 1 ? columns : row, .transposed = true};
}

}  // namespace

std::int64_t Product::count() const {
  std::int64_t n = 1;
  for (const BatchAxis& axis : axes) n *= axis.extent;
  return n;
}

Product take_apart(const Operand& a_operand, const Operand& b_operand, const Operand& y_operand) {
  const Axes a = factor_axes(a_operand, true), b = factor_axes(b_operand, false);
  const Axes y = result_axes(y_operand, a_operand.type.rank(), b_operand.type.rank());
  const std::size_t rank = y.shape.size(), a_rank = a.shape.size(), b_rank = b.shape.size();
  Product p;
  p.m = y.shape[rank - 2];
  p.n = y.shape[rank - 1];
  p.k = a.shape.back();
  p.a_m = a.strides[a_rank - 2];
  p.a_k = a.strides[a_rank - 1];
  p.b_k = b.strides[b_rank - 2];
  p.b_n = b.strides[b_rank - 1];
  p.y_m = y.strides[rank - 2];
  p.y_n = y.strides[rank - 1];
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (y.shape[i] == 1) continue;
    p.axes.push_back({y.shape[i], a.stride(rank, i), b.stride(rank, i), y.strides[i]});
  }
  merge_axes(p.axes);
  while (!p.axes.empty() && merge_into_rows(p)) continue;
  return p;
}

bool is_readable(const Operand& operand, bool left) {
  return operand.layout.is_strided() && is_taken(factor_axes(operand, left));
}

bool is_writable(const Operand& y, std::size_t a_rank, std::size_t b_rank) {
  return y.layout.is_strided() && is_taken(result_axes(y, a_rank, b_rank));
}

// y(i, j) is at i y_m + j y_n; cuBLASLt writes D(i, j) to i + j ld, and only so.
//
// y_n = 1: y(i, j) is at j + i y_m, the place of D(j, i) with ld = y_m, so D is y's transpose.
// (a b)^T = b^T a^T, hence left = b^T of n x k with element (j, l) = b(l, j) at l b_k + j b_n, and
// right = a^T of k x m with element (l, i) = a(i, l) at i a_m + l a_k. Columns of y are rows of D:
// a bias along the last axis of y is what cuBLASLt adds along its rows. n = 1 is the same with
// rows of length 1.
// Otherwise y_m = 1: y(i, j) is at i + j y_n, so D is y itself, left = a and right = b.
ColumnMajorProduct column_major(const Product& p) {
  ColumnMajorProduct result;
  result.swapped = p.y_n == 1 || p.n == 1;
  if (result.swapped) {
    result.left = factor(p.n, p.k, p.b_n, p.b_k);
    result.right = factor(p.k, p.m, p.a_k, p.a_m);
    result.result = {.rows = p.n, .columns = p.m, .ld = p.m == 1 ? p.n : p.y_m};
  } else {
    assert(p.y_m == 1 || p.m == 1);
    result.left = factor(p.m, p.k, p.a_m, p.a_k);
    result.right = factor(p.k, p.n, p.b_k, p.b_n);
    result.result = {.rows = p.m, .columns = p.n, .ld = p.n == 1 ? p.m : p.y_n};
  }
  std::vector<BatchAxis> outer = p.axes;
  if (!outer.empty()) {
    const std::size_t at = batched_axis(p);
    BatchAxis inner = outer[at];
    outer.erase(outer.begin() + static_cast<std::ptrdiff_t>(at));
    if (result.swapped) std::swap(inner.a, inner.b);
    result.batch = inner.extent;
    result.left.batch_stride = inner.a;
    result.right.batch_stride = inner.b;
    result.result.batch_stride = inner.y;
  }
  result.calls = {CallOffset{}};
  for (const BatchAxis& axis : outer) {
    const std::int64_t left = result.swapped ? axis.b : axis.a;
    const std::int64_t right = result.swapped ? axis.a : axis.b;
    std::vector<CallOffset> calls;
    for (const CallOffset& call : result.calls) {
      for (std::int64_t i = 0; i < axis.extent; ++i) {
        calls.push_back({call.left + i * left, call.right + i * right, call.result + i * axis.y});
      }
    }
    result.calls = std::move(calls);
  }
  return result;
}

std::int64_t call_count(const Product& product) {
  if (product.axes.empty()) return 1;
  const std::int64_t longest = product.axes[batched_axis(product)].extent;
  return longest == 0 ? 0 : product.count() / longest;
}

}  // namespace tandem::cuda
