#include "importer/buffers/known_values.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tandem::importer {
namespace {

/// Relative to 1, of numbers that were computed in the tensor's type.
double tolerance(const HostTensor& tensor) {
  return tensor.dtype() == DType::float16 || tensor.dtype() == DType::bfloat16 ? 1e-2 : 1e-5;
}

Shape squeezed(const HostTensor& tensor) {
  Shape shape = tensor.shape();
  std::erase(shape, 1);
  return shape;
}

/// A tensor as a table of positions by columns.
struct Table {
  const HostTensor& tensor;
  std::int64_t positions = 0, columns = 0;
  bool columns_last = true;
  double at(std::int64_t position, std::int64_t column) const {
    return tensor.number(columns_last ? position * columns + column
                                      : column * positions + position);
  }
  bool is_zero(std::int64_t position) const {
    for (std::int64_t c = 0; c < columns; ++c) {
      if (at(position, c) != 0) return false;
    }
    return true;
  }
};

/// v[p + 1] + v[p - 1] = k v[p] in each column, with a k of its own. Rows of zeros belong to no
/// position, as those of padding. Products of positions and rates are off by a few last places of
/// the largest.
bool turns(const Table& table) {
  constexpr std::int64_t least_positions = 6;
  if (table.positions < least_positions) return false;
  const double allowed = tolerance(table.tensor) + 5e-7 * static_cast<double>(table.positions);
  bool any_turns = false;
  for (std::int64_t c = 0; c < table.columns; ++c) {
    double largest = 0;
    std::int64_t at = 0;
    for (std::int64_t p = 1; p + 1 < table.positions; ++p) {
      if (table.is_zero(p - 1) || table.is_zero(p + 1)) continue;
      if (std::abs(table.at(p, c)) > largest) largest = std::abs(table.at(p, c)), at = p;
    }
    if (largest == 0 || !std::isfinite(largest)) return false;
    const double k = (table.at(at - 1, c) + table.at(at + 1, c)) / table.at(at, c);
    if (!(std::abs(k) <= 2 + allowed)) return false;
    for (std::int64_t p = 1; p + 1 < table.positions; ++p) {
      if (table.is_zero(p - 1) || table.is_zero(p) || table.is_zero(p + 1)) continue;
      const double wanted = table.at(p - 1, c) + table.at(p + 1, c);
      if (!(std::abs(wanted - k * table.at(p, c)) <= allowed * largest)) return false;
    }
    any_turns = any_turns || std::abs(k) < 1.99;
  }
  return any_turns;
}

/// Columns c and c + distance of each block of 2 distance columns are a sine and a cosine, times
/// one number everywhere.
bool is_on_circles(const Table& table, std::int64_t distance) {
  if (distance < 1 || table.columns % (2 * distance) != 0) return false;
  bool any_differs = false;
  double radius = 0;  // squared
  for (std::int64_t p = 0; p < table.positions; ++p) {
    if (table.is_zero(p)) continue;
    for (std::int64_t c = 0; c < table.columns; ++c) {
      if (c / distance % 2 != 0) continue;
      const double a = table.at(p, c), b = table.at(p, c + distance), here = a * a + b * b;
      if (radius == 0) radius = here;
      if (!(std::abs(here - radius) <= 10 * tolerance(table.tensor) * radius)) return false;
      any_differs = any_differs || std::min(a * a, b * b) > 1e-4 * radius;
    }
  }
  return any_differs;
}

bool is_periodic(const Table& table) {
  constexpr std::int64_t least_elements = 24;
  if (table.positions < 3 || table.columns < 2) return false;
  if (table.positions * table.columns < least_elements) return false;
  if (turns(table)) return true;
  if (table.columns < 4) return false;
  for (const std::int64_t parts : {2, 4, 8}) {
    if (table.columns % parts == 0 && is_on_circles(table, table.columns / parts)) return true;
  }
  return is_on_circles(table, 1);
}

/// The ratio of neighbours where it is the same everywhere; else 0.
double common_ratio(const HostTensor& tensor) {
  const std::int64_t count = tensor.type().elements();
  if (count < 4 || squeezed(tensor).size() != 1) return 0;
  const double first = tensor.number(0);
  if (first == 0 || !std::isfinite(first)) return 0;
  // Computed from both ends: rounding of differences would add up.
  const double ratio =
      std::pow(std::abs(tensor.number(count - 1) / first), 1 / static_cast<double>(count - 1));
  if (!(ratio > 0) || std::abs(ratio - 1) < 1e-3) return 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double wanted = first * std::pow(ratio, static_cast<double>(i));
    if (!(std::abs(tensor.number(i) / wanted - 1) <= 10 * tolerance(tensor))) return 0;
  }
  return ratio;
}

struct Kernels {
  std::int64_t count = 0, extent = 0;  // slices, and numbers of one
};

/// Slices of at least 3 by 3 (or 3, or 3 by 3 by 3); none of others.
Kernels kernels_of(const HostTensor& weight) {
  const Shape& shape = weight.shape();
  if (shape.size() < 3 || shape.size() > 5) return {};
  Kernels kernels{shape[0] * shape[1], 1};
  for (std::size_t axis = 2; axis < shape.size(); ++axis) {
    if (shape[axis] < 3) return {};
    kernels.extent *= shape[axis];
  }
  return kernels;
}

}  // namespace

bool is_sine_table(const HostTensor& tensor) {
  const Shape shape = squeezed(tensor);
  if (shape.size() < 2) return false;
  const std::int64_t all = tensor.type().elements();
  if (all == 0) return false;
  return is_periodic({tensor, all / shape.back(), shape.back(), true}) ||
         is_periodic({tensor, all / shape.front(), shape.front(), false});
}

bool is_rotary_frequencies(const HostTensor& tensor) {
  const double ratio = common_ratio(tensor);
  if (!(ratio > 0 && ratio < 1) || tensor.number(0) != 1) return false;
  const double base = std::pow(ratio, -static_cast<double>(tensor.type().elements()));
  const double power = std::pow(10, std::floor(std::log10(base) + 1e-3));
  const double digits = base / power;  // bases are round numbers: 10,000; 500,000; 1,000,000
  return base > 90 && std::abs(digits - std::round(digits)) <= 0.005 * digits;
}

bool is_geometric(const HostTensor& tensor) { return common_ratio(tensor) > 0; }

bool is_arithmetic(const HostTensor& tensor) {
  constexpr std::int64_t least = 8;
  const std::int64_t all = tensor.type().elements();
  if (squeezed(tensor).size() != 1 || all < least) return false;
  const double first = tensor.number(0), last = tensor.number(all - 1);
  const double step = (last - first) / static_cast<double>(all - 1);
  const double tolerance = 1e-6 * std::max(std::abs(first), std::abs(last));
  if (!std::isfinite(step) || std::abs(step) <= 4 * tolerance) return false;
  for (std::int64_t i = 1; i < all - 1; ++i) {
    if (std::abs(tensor.number(i) - (first + step * static_cast<double>(i))) > tolerance)
      return false;
  }
  return true;
}

bool is_count(const HostTensor& tensor) {
  constexpr std::int64_t least = 8;
  const Shape& shape = tensor.shape();
  const std::int64_t all = tensor.type().elements();
  if (all == 0) return false;
  const double first = tensor.number(0);
  if (first != 0 && first != 0.5 && first != 1) return false;
  std::int64_t inner = all;
  for (const std::int64_t extent : shape) {
    inner /= extent;
    if (extent < least) continue;
    std::int64_t i = 0;
    while (i < all && tensor.number(i) == first + static_cast<double>(i / inner % extent)) ++i;
    if (i == all) return true;
  }
  return false;
}

bool is_additive_mask(const HostTensor& tensor) {
  constexpr double least_hidden = -100;
  bool has_zero = false, has_hidden = false;
  double hidden = 0;
  for (std::int64_t i = 0; i < tensor.type().elements(); ++i) {
    const double x = tensor.number(i);
    if (x == 0) {
      has_zero = true;
    } else if (x <= least_hidden && (!has_hidden || x == hidden)) {
      has_hidden = true;
      hidden = x;
    } else {
      return false;
    }
  }
  return has_zero && has_hidden;
}

bool is_triangle(const HostTensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.size() < 2) return false;
  const std::int64_t n = shape.back();
  if (n < 3 || shape[shape.size() - 2] != n) return false;
  for (const bool lower : {true, false}) {
    std::int64_t i = 0;
    for (; i < tensor.type().elements(); ++i) {
      const std::int64_t row = i / n % n, column = i % n;
      const bool is_one = lower ? column <= row : column > row;
      if (tensor.number(i) != (is_one ? 1 : 0)) break;
    }
    if (i == tensor.type().elements()) return true;
  }
  return false;
}

bool is_binary(const HostTensor& tensor) {
  bool has_one = false, has_zero = false;
  for (std::int64_t i = 0; i < tensor.type().elements(); ++i) {
    const double x = tensor.number(i);
    if (x != 0 && x != 1) return false;
    (x == 0 ? has_zero : has_one) = true;
  }
  return has_one && has_zero;
}

bool is_uniform_tensor(const HostTensor& tensor) {
  for (std::int64_t i = 1; i < tensor.type().elements(); ++i) {
    if (tensor.number(i) != tensor.number(0)) return false;
  }
  return true;
}

bool is_derivative_filter(const HostTensor& weight) {
  const Kernels kernels = kernels_of(weight);
  if (kernels.count == 0) return false;
  bool any = false;
  for (std::int64_t k = 0; k < kernels.count; ++k) {
    double sum = 0;
    for (std::int64_t i = 0; i < kernels.extent; ++i) {
      const double x = weight.number(k * kernels.extent + i);
      if (std::abs(x) > 100 || x * 8 != std::round(x * 8)) return false;
      sum += x;
      any = any || x != 0;
    }
    if (sum != 0) return false;
  }
  return any;
}

bool is_smoothing_filter(const HostTensor& weight) {
  const Kernels kernels = kernels_of(weight);
  if (kernels.count == 0) return false;
  double sum = 0;
  for (std::int64_t i = 0; i < kernels.extent; ++i) {
    const double x = weight.number(i);
    if (!(x > 0) || std::abs(x - weight.number(kernels.extent - 1 - i)) > 1e-6) return false;
    sum += x;
  }
  if (std::abs(sum - 1) > 1e-4) return false;
  for (std::int64_t i = 0; i < weight.type().elements(); ++i) {
    if (weight.number(i) != weight.number(i % kernels.extent)) return false;
  }
  return true;
}

bool is_window(const HostTensor& tensor) {
  constexpr double two_pi = 6.283185307179586;
  const std::int64_t count = tensor.type().elements();
  if (count < 8 || squeezed(tensor).size() != 1) return false;
  for (const double constant : {0.5, 0.54}) {
    for (const std::int64_t period : {count, count - 1}) {
      std::int64_t i = 0;
      for (; i < count; ++i) {
        const double turn = two_pi * static_cast<double>(i) / static_cast<double>(period);
        const double wanted = constant - (1 - constant) * std::cos(turn);
        if (!(std::abs(tensor.number(i) - wanted) <= tolerance(tensor))) break;
      }
      if (i == count) return true;
    }
  }
  return false;
}

}  // namespace tandem::importer
