// What both sorts of lookup indices share: how they are laid out in scratch memory, and the walk
// over the indices, which each inlines into its loops.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/rows/rows.h"

namespace tandem::row_sort {

constexpr int most_bucket_bits = 12;  // table rows of a bucket: its counters are 16 KiB
constexpr int most_parts = 16;

struct Plan {
  bool buckets = true;
  int parts = 1;
  int position_bits = 0;
  int bucket_bits = 0;             // sort by buckets: a bucket has 2^bucket_bits table rows
  int digit_bits = 0, passes = 0;  // radix sort: bits of a digit, and how many digits
  std::size_t bytes = 0;

  /// The number of buckets for rows 0 to table_rows.
  std::int64_t bucket_count(std::int64_t table_rows) const {
    return (table_rows >> bucket_bits) + 1;
  }
  /// An element of the sort by buckets fits 32 bits.
  bool narrow() const { return bucket_bits + position_bits <= 32; }
};

inline std::size_t padded(std::int64_t bytes) {
  return (static_cast<std::size_t>(bytes) + 63) / 64 * 64;
}

/// The indices of one call.
struct Ids {
  const IdArray* arrays;
  int count;
  std::int64_t table_rows;

  bool negative = true;  // there may be ids below 0, absent ones among them

  /// table_rows for an absent id. Where those are, they come in no order that branches could
  /// foretell.
  template <class Id>
  std::int64_t row_of_any(Id raw) const {
    std::int64_t id = raw;
    id += table_rows & (id >> 63);
    id &= ~(id >> 63);
    const std::int64_t inside = std::min(id, table_rows - 1);
    const std::int64_t absent = -static_cast<std::int64_t>(raw == absent_id<Id>);
    return (inside & ~absent) | (table_rows & absent);
  }
  template <class Id, class F>
  bool visit_array(const Id* data, std::int64_t first, std::int64_t from, std::int64_t to,
                   F f) const {
    Id all = 0;
    if (negative) {
      for (std::int64_t i = from; i < to; ++i) f(first + i, row_of_any(data[i]));
    } else {
      const auto last = static_cast<std::uint64_t>(table_rows - 1);
      for (std::int64_t i = from; i < to; ++i) {
        all |= data[i];
        const auto id = static_cast<std::uint64_t>(std::int64_t{data[i]});
        f(first + i, static_cast<std::int64_t>(std::min(id, last)));
      }
    }
    return all < 0;
  }

  /// Like visit_array, but skips absent ids where `negative`.
  template <class Id, class F>
  bool visit_present_of(const Id* data, std::int64_t first, std::int64_t from, std::int64_t to,
                        F f) const {
    if (!negative) return visit_array(data, first, from, to, f);
    constexpr std::int64_t at_once = 64;
    std::int64_t rows[at_once], positions[at_once];
    while (from < to) {
      std::int64_t present = 0;
      for (const std::int64_t last = std::min(to, from + at_once); from < last; ++from) {
        rows[present] = row_of_any(data[from]);
        positions[present] = first + from;
        present += data[from] != absent_id<Id>;
      }
      for (std::int64_t i = 0; i < present; ++i) f(positions[i], rows[i]);
    }
    return false;
  }

  /// f(position, row) for positions begin..end, in order. Returns true where `negative` was wrongly
  /// false, which makes rows wrong too.
  template <class F>
  bool visit(std::int64_t begin, std::int64_t end, F f) const {
    return for_arrays(begin, end, [&](auto... array) { return visit_array(array..., f); });
  }
  /// Like `visit`, but skips absent ids.
  template <class F>
  bool visit_present(std::int64_t begin, std::int64_t end, F f) const {
    return for_arrays(begin, end, [&](auto... array) { return visit_present_of(array..., f); });
  }

 private:
  /// Whether one of visit(data, first position, from, to) for what arrays have of begin..end is
  /// true.
  template <class Visit>
  bool for_arrays(std::int64_t begin, std::int64_t end, Visit visit) const {
    std::int64_t first = 0;
    bool wrong = false;
    for (int a = 0; a < count && first < end; ++a) {
      const std::int64_t from = std::max(begin, first) - first;
      const std::int64_t to = std::min(end - first, arrays[a].count);
      wrong |= arrays[a].wide
                   ? visit(static_cast<const std::int64_t*>(arrays[a].data), first, from, to)
                   : visit(static_cast<const std::int32_t*>(arrays[a].data), first, from, to);
      first += arrays[a].count;
    }
    return wrong;
  }
};

/// Fills slots[part][digit], which hold counts, with where each begins: digit by digit, and within
/// one part by part.
inline void counts_to_starts(std::int32_t* slots, std::int64_t stride, int parts,
                             std::int64_t digits) {
  std::int32_t start = 0;
  for (std::int64_t digit = 0; digit < digits; ++digit) {
    for (int part = 0; part < parts; ++part) {
      std::int32_t& slot = slots[part * stride + digit];
      const std::int32_t own = slot;
      slot = start;
      start += own;
    }
  }
}

/// The radix sort of unique_rows, for `groups` with rows of this type.
template <class Row>
std::int64_t radix_sort(const Ids& ids, std::int64_t n, const RowGroups& groups, const Plan& plan,
                        void* scratch);

}  // namespace tandem::row_sort
