#include "importer/buffers/distance_tables.h"

#include <cmath>
#include <functional>
#include <limits>

namespace tandem::importer {
namespace {

/// Whether the elements of one head from `first` on are a slope other than 0 times the distance.
bool is_sloped(const HostTensor& tensor, std::int64_t first, std::int64_t rows,
               std::int64_t columns,
               const std::function<std::int64_t(std::int64_t, std::int64_t)>& distance) {
  double slope = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const double x = tensor.number(first + i * columns + j);
      if (x == -std::numeric_limits<double>::infinity() && rows > 1 && j > i) continue;
      const auto d = static_cast<double>(distance(i, j));
      if (slope == 0 && d != 0) slope = x / d;
      if (!(std::abs(x - slope * d) <= 1e-5 * std::abs(slope * d))) return false;
    }
  }
  return slope != 0 && std::isfinite(slope);
}

}  // namespace

bool is_distance_table(const HostTensor& tensor) {
  constexpr std::int64_t least_places = 4, least_elements = 12;
  const Shape& shape = tensor.shape();
  const std::int64_t all = tensor.type().elements();
  if (shape.size() < 2 || all < least_elements) return false;
  const std::int64_t columns = shape.back(), rows = shape[shape.size() - 2];
  if (columns < least_places || (rows != 1 && rows != columns)) return false;
  const std::int64_t heads = all / (rows * columns);
  if (rows == 1 && heads < 2) return false;
  const std::function<std::int64_t(std::int64_t, std::int64_t)> distances[] = {
      [](std::int64_t i, std::int64_t j) { return j - i; },
      [](std::int64_t i, std::int64_t j) { return std::abs(i - j); },
      [](std::int64_t, std::int64_t j) { return j; }};
  for (const auto& distance : distances) {
    std::int64_t head = 0;
    while (head < heads && is_sloped(tensor, head * rows * columns, rows, columns, distance))
      ++head;
    if (head == heads) return true;
  }
  return false;
}

}  // namespace tandem::importer
