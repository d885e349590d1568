// Range, kinds of values, mean and deviation of an array's numbers; the texts of a column.
#include <algorithm>
#include <cmath>

#include "api/init/facts.h"

namespace tandem::api {

void Numbers::add(double x) {
  if (count == 0) least = most = x;
  ++count;
  if (!std::isfinite(x)) {
    finite = false;
    return;
  }
  least = std::min(least, x);
  most = std::max(most, x);
  sum += x;
  squares += x * x;
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
    if constexpr (sizeof(T) == 1) {  // images: each value once, with its number
      std::int64_t seen[256] = {};
      for (std::int64_t i = 0; i < elements; ++i) ++seen[static_cast<std::uint8_t>(values[i])];
      for (int byte = 0; byte < 256; ++byte) {
        if (seen[byte] == 0) continue;
        const auto x = static_cast<double>(static_cast<T>(byte));
        add(x);
        const auto others = static_cast<double>(seen[byte] - 1);
        count += seen[byte] - 1;
        sum += others * x;
        squares += others * x * x;
      }
    } else {
      for (std::int64_t i = 0; i < elements; ++i) {
        if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
          add(static_cast<double>(static_cast<float>(values[i])));
        else
          add(static_cast<double>(values[i]));
      }
    }
  });
}

void Numbers::add(const Numbers& other) {
  if (other.count == 0) return;
  least = count == 0 ? other.least : std::min(least, other.least);
  most = count == 0 ? other.most : std::max(most, other.most);
  count += other.count;
  sum += other.sum;
  squares += other.squares;
  whole = whole && other.whole;
  finite = finite && other.finite;
  if (!many && !other.many) distinct.insert(other.distinct.begin(), other.distinct.end());
  many = many || other.many || distinct.size() > most_distinct;
}

void ArrayFacts::take_text(std::string_view text) {
  is_text = true;
  if (many_words) return;
  if (text.size() <= most_bytes) words.emplace(text);
  many_words = text.size() > most_bytes || words.size() > most_words;
  if (many_words) words.clear();
}

double Numbers::mean() const { return count == 0 ? 0 : sum / static_cast<double>(count); }

double Numbers::deviation() const {
  if (count == 0) return 0;
  return std::sqrt(std::max(0.0, squares / static_cast<double>(count) - mean() * mean()));
}

bool Numbers::distinct_within(const std::set<double>& allowed) const {
  return std::includes(allowed.begin(), allowed.end(), distinct.begin(), distinct.end());
}

}  // namespace tandem::api
