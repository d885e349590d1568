// The distinct rows among look-up indices, and the positions of each: indices are dealt to buckets
// of neighbouring rows and each bucket is counted in the first cache; where the table is large
// against the batch, a radix sort. Absent indices are sorted as those of a row behind the table's
// last one, which is then dropped: leaving them out before would take a branch that, where many are
// absent, cannot be foretold.
#include <bit>
#include <cstring>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows/rows.h"

namespace tandem {
namespace {

constexpr int most_bucket_bits = 12;      // table rows of a bucket: its counters are 16 KiB
constexpr int most_counted_bits = 22;     // table rows of a sort by buckets
constexpr std::int64_t rows_per_id = 16;  // and at most so many for each id
constexpr int most_parts = 16;

struct Plan {
  bool buckets = true;
  int parts = 1;
  int position_bits = 0;
  int bucket_bits = 0;             // of the sort by buckets: table rows of one
  int digit_bits = 0, passes = 0;  // of the radix sort
  std::size_t bytes = 0;

  /// Of rows 0 to table_rows.
  std::int64_t bucket_count(std::int64_t table_rows) const {
    return (table_rows >> bucket_bits) + 1;
  }
  /// An element of the sort by buckets fits 32 bits.
  bool narrow() const { return bucket_bits + position_bits <= 32; }
};

int bits_of(std::int64_t largest) { return std::bit_width(static_cast<std::uint64_t>(largest)); }

std::size_t padded(std::int64_t bytes) { return (static_cast<std::size_t>(bytes) + 63) / 64 * 64; }

Plan plan_for(std::int64_t n, std::int64_t table_rows, int threads) {
  Plan plan;
  const int row_bits = std::max(bits_of(table_rows - 1), 1);
  plan.position_bits = bits_of(std::max<std::int64_t>(n - 1, 0));
  plan.buckets = row_bits <= most_counted_bits && table_rows / rows_per_id <= n;
  plan.parts = std::min(parts_for(threads, n * 48, grain_bytes), most_parts);
  if (plan.buckets) {
    plan.bucket_bits = std::clamp(row_bits - 8, 0, most_bucket_bits);
    const std::int64_t buckets = plan.bucket_count(table_rows);
    plan.bytes = padded(n * (plan.narrow() ? 4 : 8)) + padded((table_rows + 1) * 4) +
                 2 * padded((buckets + 1) * 4) +
                 static_cast<std::size_t>(plan.parts) * padded(buckets * 4);
    return plan;
  }
  plan.passes = (row_bits + 10) / 11;
  if (n < 2048) plan.passes = (row_bits + 7) / 8;
  plan.digit_bits = (bits_of(table_rows) + plan.passes - 1) / plan.passes;
  plan.bytes = 2 * padded(n * 8) +
               static_cast<std::size_t>(plan.parts) * padded(std::int64_t{4} << plan.digit_bits);
  return plan;
}

struct Ids {
  const IdArray* arrays;
  int count;
  std::int64_t table_rows;

  bool negative = true;  // there may be some below 0, absent ones among them

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

  /// f(position, row) for positions begin..end, in order. Returns whether `negative` was wrong, and
  /// so were rows.
  template <class F>
  bool visit(std::int64_t begin, std::int64_t end, F f) const {
    std::int64_t first = 0;
    bool wrong = false;
    for (int a = 0; a < count && first < end; ++a) {
      const std::int64_t from = std::max(begin, first) - first;
      const std::int64_t to = std::min(end - first, arrays[a].count);
      wrong |=
          arrays[a].wide
              ? visit_array(static_cast<const std::int64_t*>(arrays[a].data), first, from, to, f)
              : visit_array(static_cast<const std::int32_t*>(arrays[a].data), first, from, to, f);
      first += arrays[a].count;
    }
    return wrong;
  }
};

// Fills slots[part][digit], which hold counts, with where each begins: digit by digit, and within
// one part by part.
void counts_to_starts(std::int32_t* slots, std::int64_t stride, int parts, std::int64_t digits) {
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

// An element is a row of its bucket << position_bits | position. Buckets and parts keep the order
// of positions, so that they are ascending within a row.
template <class Row, class Element>
std::int64_t bucket_sort(Ids ids, std::int64_t n, const RowGroups& groups, const Plan& plan,
                         void* scratch) {
  const int parts = plan.parts, bucket_bits = plan.bucket_bits, shift = plan.position_bits;
  const std::int64_t buckets = plan.bucket_count(ids.table_rows);
  const auto stride = static_cast<std::int64_t>(padded(buckets * 4) / 4);
  char* memory = static_cast<char*>(scratch);
  auto* elements = reinterpret_cast<Element*>(memory);
  memory += padded(n * static_cast<std::int64_t>(sizeof(Element)));
  auto* rank = reinterpret_cast<std::int32_t*>(memory);  // of touched table rows
  memory += padded((ids.table_rows + 1) * 4);
  auto* starts = reinterpret_cast<std::int32_t*>(memory);  // of the buckets' elements
  memory += padded((buckets + 1) * 4);
  auto* firsts = reinterpret_cast<std::int32_t*>(memory);  // groups before each bucket
  memory += padded((buckets + 1) * 4);
  auto* slots = reinterpret_cast<std::int32_t*>(memory);

  const auto count_all = [&] {
    bool wrong[most_parts] = {};
    parallel_parts(parts, [&](int part) {
      std::int32_t* own = slots + part * stride;
      std::memset(own, 0, static_cast<std::size_t>(buckets) * 4);
      const Range range = part_of(n, part, parts);
      wrong[part] = ids.visit(range.begin, range.end,
                              [=](std::int64_t, std::int64_t row) { ++own[row >> bucket_bits]; });
    });
    return std::find(wrong, wrong + parts, true) == wrong + parts;
  };
  ids.negative = false;
  if (!count_all()) {
    ids.negative = true;
    count_all();
  }
  counts_to_starts(slots, stride, parts, buckets);
  for (std::int64_t bucket = 0; bucket < buckets; ++bucket) starts[bucket] = slots[bucket];
  starts[buckets] = static_cast<std::int32_t>(n);

  const std::int64_t row_mask = (std::int64_t{1} << bucket_bits) - 1;
  parallel_parts(parts, [&](int part) {
    std::int32_t* own = slots + part * stride;
    const Range range = part_of(n, part, parts);
    ids.visit(range.begin, range.end, [=](std::int64_t position, std::int64_t row) {
      const std::int32_t slot = own[row >> bucket_bits]++;
      elements[slot] = static_cast<Element>((row & row_mask) << shift | position);
      __builtin_prefetch(elements + slot + 32, 1);  // more streams than the processor follows
    });
  });

  // A part takes the buckets that begin in its range of positions.
  const auto first_bucket = [&](int part) {
    return part == 0 ? 0
                     : std::lower_bound(starts, starts + buckets,
                                        static_cast<std::int32_t>(part_of(n, part, parts).begin)) -
                           starts;
  };
  const auto for_buckets = [&](auto f) {
    parallel_parts(parts, [&](int part) {
      const std::int64_t last = part + 1 == parts ? buckets : first_bucket(part + 1);
      for (std::int64_t bucket = first_bucket(part); bucket < last; ++bucket) f(bucket);
    });
  };

  const Element position_mask = static_cast<Element>((std::uint64_t{1} << shift) - 1);
  std::int64_t absent = 0;  // positions, the last ones of the last bucket
  for_buckets([&](std::int64_t bucket) {
    constexpr std::int64_t most = std::int64_t{1} << most_bucket_bits;
    // The two halves of the bucket's elements by turns: counters of one row, which many elements in
    // turn may have, would wait for one another.
    std::int32_t counts[most], later[most];
    Element touched[most + 1];  // row << position_bits | count - 1
    const std::int64_t begin = starts[bucket], end = starts[bucket + 1];
    firsts[bucket + 1] = 0;
    if (begin == end) return;
    // Written below, in an order that the processor does not foresee.
    for (std::int64_t i = begin; i < end; i += 16) __builtin_prefetch(groups.order + i, 1, 2);
    std::memset(counts, 0, static_cast<std::size_t>(row_mask + 1) * 4);
    std::memset(later, 0, static_cast<std::size_t>(row_mask + 1) * 4);
    const std::int64_t half = (end - begin) / 2, middle = begin + half;
    for (std::int64_t i = 0; i < half; ++i) {
      ++counts[elements[begin + i] >> shift];
      ++later[elements[middle + i] >> shift];
    }
    if (middle + half < end) ++later[elements[end - 1] >> shift];
    std::int64_t groups_here = 0;
    auto slot = static_cast<std::int32_t>(begin);
    for (std::int64_t row = 0; row <= row_mask; ++row) {
      const std::int32_t first = counts[row], count = first + later[row];
      counts[row] = slot;
      later[row] = slot + first;
      slot += count;
      touched[groups_here] =
          static_cast<Element>(row << shift) | (static_cast<Element>(count - 1) & position_mask);
      groups_here += count != 0;
    }
    if (bucket + 1 == buckets) {
      absent = end - counts[ids.table_rows & row_mask];
      groups_here -= absent != 0;
    }
    const auto put = [&](std::int32_t* slots_of, Element element) {
      groups.order[slots_of[element >> shift]++] =
          static_cast<std::int32_t>(element & position_mask);
    };
    for (std::int64_t i = 0; i < half; ++i) {
      put(counts, elements[begin + i]);
      put(later, elements[middle + i]);
    }
    if (middle + half < end) put(later, elements[end - 1]);
    std::memcpy(elements + begin, touched, static_cast<std::size_t>(groups_here) * sizeof(Element));
    firsts[bucket + 1] = static_cast<std::int32_t>(groups_here);
  });
  firsts[0] = 0;
  for (std::int64_t bucket = 0; bucket < buckets; ++bucket) firsts[bucket + 1] += firsts[bucket];

  Row* rows = static_cast<Row*>(groups.rows);
  const bool inverse = groups.inverse != nullptr;
  for_buckets([&](std::int64_t bucket) {
    const Element* touched = elements + starts[bucket] - firsts[bucket];
    std::int32_t start = starts[bucket];
    for (std::int32_t group = firsts[bucket]; group < firsts[bucket + 1]; ++group) {
      const std::int64_t row =
          bucket << bucket_bits | static_cast<std::int64_t>(touched[group] >> shift);
      rows[group] = static_cast<Row>(row);
      groups.offsets[group] = start;
      start += static_cast<std::int32_t>(touched[group] & position_mask) + 1;
      if (inverse) rank[row] = group;
    }
  });
  const std::int64_t count = firsts[buckets];
  groups.offsets[count] = static_cast<std::int32_t>(n - absent);
  std::fill(groups.order + n - absent, groups.order + n, -1);
  if (!inverse) return count;
  rank[ids.table_rows] = absent_id<std::int32_t>;
  parallel_parts(parts, [&](int part) {
    const Range range = part_of(n, part, parts);
    std::int32_t* to = groups.inverse;
    ids.visit(range.begin, range.end,
              [=](std::int64_t position, std::int64_t row) { to[position] = rank[row]; });
  });
  return count;
}

// Least significant digit first; an element is row << position_bits | position. Each pass keeps
// the order of equal digits, so that positions stay ascending.
template <class Row>
std::int64_t radix_sort(const Ids& ids, std::int64_t n, const RowGroups& groups, const Plan& plan,
                        void* scratch) {
  auto* from = static_cast<std::uint64_t*>(scratch);
  auto* to = from + padded(n * 8) / 8;
  auto* slots = reinterpret_cast<std::int32_t*>(to + padded(n * 8) / 8);
  const std::int64_t digits = std::int64_t{1} << plan.digit_bits;
  const auto stride = static_cast<std::int64_t>(padded(digits * 4) / 4);
  const std::uint64_t mask = static_cast<std::uint64_t>(digits) - 1;
  const int parts = plan.parts, position_bits = plan.position_bits;

  for (int pass = 0; pass < plan.passes; ++pass) {
    const int shift = position_bits + pass * plan.digit_bits;
    const auto visit = [&](const Range& range, auto f) {
      if (pass > 0) {
        for (std::int64_t i = range.begin; i < range.end; ++i) f(from[i]);
        return;
      }
      ids.visit(range.begin, range.end, [&](std::int64_t position, std::int64_t row) {
        f(static_cast<std::uint64_t>(row) << position_bits | static_cast<std::uint64_t>(position));
      });
    };
    parallel_parts(parts, [&](int part) {
      std::int32_t* own = slots + part * stride;
      std::memset(own, 0, static_cast<std::size_t>(digits) * 4);
      visit(part_of(n, part, parts), [=](std::uint64_t x) { ++own[x >> shift & mask]; });
    });
    counts_to_starts(slots, stride, parts, digits);
    parallel_parts(parts, [&](int part) {
      std::int32_t* own = slots + part * stride;
      visit(part_of(n, part, parts), [=](std::uint64_t x) { to[own[x >> shift & mask]++] = x; });
    });
    std::swap(from, to);
  }

  const std::uint64_t* end =
      std::lower_bound(from, from + n, static_cast<std::uint64_t>(ids.table_rows) << position_bits);
  const std::int64_t present = end - from;
  const auto starts_group = [=](std::int64_t i) {
    return i == 0 || from[i] >> position_bits != from[i - 1] >> position_bits;
  };
  std::int64_t before[most_parts + 1] = {};
  parallel_parts(parts, [&](int part) {
    const Range range = part_of(present, part, parts);
    std::int64_t count = 0;
    for (std::int64_t i = range.begin; i < range.end; ++i) count += starts_group(i);
    before[part + 1] = count;
  });
  for (int part = 0; part < parts; ++part) before[part + 1] += before[part];
  Row* rows = static_cast<Row*>(groups.rows);
  const std::uint64_t position_mask = (std::uint64_t{1} << position_bits) - 1;
  parallel_parts(parts, [&](int part) {
    const Range range = part_of(present, part, parts);
    std::int64_t group = before[part];
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      groups.order[i] = static_cast<std::int32_t>(from[i] & position_mask);
      if (!starts_group(i)) continue;
      rows[group] = static_cast<Row>(from[i] >> position_bits);
      groups.offsets[group++] = static_cast<std::int32_t>(i);
    }
  });
  const std::int64_t count = before[parts];
  groups.offsets[count] = static_cast<std::int32_t>(present);
  std::fill(groups.order + present, groups.order + n, -1);
  if (groups.inverse == nullptr) return count;
  for (std::int64_t i = present; i < n; ++i) {
    groups.inverse[from[i] & position_mask] = absent_id<std::int32_t>;
  }
  parallel_parts(parts, [&](int part) {
    const Range range = part_of(present, part, parts);
    std::int64_t group = before[part] - 1;
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      group += starts_group(i);
      groups.inverse[from[i] & position_mask] = static_cast<std::int32_t>(group);
    }
  });
  return count;
}

template <class Row>
std::int64_t sort(const Ids& ids, std::int64_t n, const RowGroups& groups, const Plan& plan,
                  void* scratch) {
  if (!plan.buckets) return radix_sort<Row>(ids, n, groups, plan, scratch);
  if (plan.narrow()) return bucket_sort<Row, std::uint32_t>(ids, n, groups, plan, scratch);
  return bucket_sort<Row, std::uint64_t>(ids, n, groups, plan, scratch);
}

}  // namespace

std::size_t unique_rows_scratch_bytes(std::int64_t ids, std::int64_t table_rows, int threads) {
  return plan_for(ids, table_rows, threads).bytes;
}

std::int64_t unique_rows(const IdArray* ids, int arrays, std::int64_t table_rows,
                         const RowGroups& groups, void* scratch, int threads) noexcept {
  std::int64_t n = 0;
  for (int a = 0; a < arrays; ++a) n += ids[a].count;
  if (n == 0) {
    groups.offsets[0] = 0;
    return 0;
  }
  const Plan plan = plan_for(n, table_rows, threads);
  const Ids all{ids, arrays, table_rows};
  return groups.wide_rows ? sort<std::int64_t>(all, n, groups, plan, scratch)
                          : sort<std::int32_t>(all, n, groups, plan, scratch);
}

}  // namespace tandem
