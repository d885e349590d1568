// Range, type of values, mean and deviation of an array's numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "api/init/facts.h"
#include "engine/data/functions/field_function.h"

namespace tandem::api {

void Numbers::add(double x, std::int64_t times) {
  if (count == 0) least = most = x;
  const double before = mean(), others = static_cast<double>(count);
  count += times;
  if (!std::isfinite(x)) {
    finite = false;
    return;
  }
  least = std::min(least, x);
  most = std::max(most, x);
  const auto n = static_cast<double>(times);
  sum += n * x;
  spread += (x - before) * (x - before) * others * n / (others + n);
  whole = whole && std::trunc(x) == x;
  if (many) return;
  distinct.insert(x);
  many = distinct.size() > most_distinct;
}

void Numbers::add(const HostTensor& tensor) {
  const std::int64_t elements = tensor.type().elements();
  with_type(tensor.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* values = static_cast<const T*>(tensor.data());
    if constexpr (sizeof(T) == 1) {  // images: adds each value once, with its count
      std::int64_t seen[256] = {};
      for (std::int64_t i = 0; i < elements; ++i) ++seen[static_cast<std::uint8_t>(values[i])];
      for (int byte = 0; byte < 256; ++byte) {
        if (seen[byte] == 0) continue;
        add(static_cast<double>(static_cast<T>(byte)), seen[byte]);
      }
    } else {
      for (std::int64_t i = 0; i < elements; ++i) {
        add(number_at(values[i]));
      }
    }
  });
}

void Numbers::add(const Numbers& other) {
  if (other.count == 0) return;
  least = count == 0 ? other.least : std::min(least, other.least);
  most = count == 0 ? other.most : std::max(most, other.most);
  const double apart = other.mean() - mean();
  const auto n = static_cast<double>(count), m = static_cast<double>(other.count);
  spread += other.spread + apart * apart * n * m / (n + m);
  count += other.count;
  sum += other.sum;
  whole = whole && other.whole;
  finite = finite && other.finite;
  if (!many && !other.many) distinct.insert(other.distinct.begin(), other.distinct.end());
  many = many || other.many || distinct.size() > most_distinct;
}

double Numbers::mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }

double Numbers::deviation() const {
  return count == 0 ? 0 : std::sqrt(spread / static_cast<double>(count));
}

bool Numbers::distinct_within(const std::set<double>& allowed) const {
  return std::includes(allowed.begin(), allowed.end(), distinct.begin(), distinct.end());
}

double Numbers::largest() const { return std::abs(least) > std::abs(most) ? least : most; }

bool Numbers::fit_float32() const {
  return std::abs(largest()) <= static_cast<double>(std::numeric_limits<float>::max());
}

std::string beyond_float32(const ArrayFacts& array) {
  if (array.numbers.fit_float32()) return "";
  const auto part = std::find_if(array.by_part.begin(), array.by_part.end(),
                                 [](const Numbers& numbers) { return !numbers.fit_float32(); });
  const auto place = static_cast<std::size_t>(part - array.by_part.begin());
  const bool is_column = array.stacked && place < array.columns.size();
  return fmt::format("\"{}\" holds {:g}, which does not fit float32 (at most 3.4e+38)",
                     is_column ? array.columns[place] : array.name,
                     (is_column ? *part : array.numbers).largest());
}

}  // namespace tandem::api
