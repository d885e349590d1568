// The distinct rows among lookup indices, and the positions of each: indices are distributed to
// buckets of neighbouring rows and each bucket is counted in the first cache; where the table is
// large compared with the batch, a radix sort (radix_rows.cpp), in which absent indices count as
// those of a row after the table's last one, which is then dropped.
#include <bit>
#include <cstring>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows/row_sort.h"

namespace tandem {
namespace row_sort {
namespace {

constexpr int most_counted_bits = 22;     // bits of the table rows that buckets sort
constexpr std::int64_t rows_per_id = 16;  // at most this many table rows for each id

int bits_of(std::int64_t largest) { return std::bit_width(static_cast<std::uint64_t>(largest)); }

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

// An element is a row of its bucket << position_bits | position. Buckets and parts keep positions
// in order, so that they are ascending within a row.
template <class Row, class Element>
std::int64_t bucket_sort(Ids ids, std::int64_t n, const RowGroups& groups, const Plan& plan,
                         void* scratch) {
  const int parts = plan.parts, bucket_bits = plan.bucket_bits, shift = plan.position_bits;
  const std::int64_t buckets = plan.bucket_count(ids.table_rows);
  const auto stride = static_cast<std::int64_t>(padded(buckets * 4) / 4);
  char* memory = static_cast<char*>(scratch);
  auto* elements = reinterpret_cast<Element*>(memory);
  memory += padded(n * static_cast<std::int64_t>(sizeof(Element)));
  auto* rank = reinterpret_cast<std::int32_t*>(memory);  // rank of each touched table row
  memory += padded((ids.table_rows + 1) * 4);
  auto* starts = reinterpret_cast<std::int32_t*>(memory);  // where each bucket's elements start
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
      wrong[part] = ids.visit_present(range.begin, range.end, [=](std::int64_t, std::int64_t row) {
        ++own[row >> bucket_bits];
      });
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

  const std::int64_t row_mask = (std::int64_t{1} << bucket_bits) - 1;
  parallel_parts(parts, [&](int part) {
    std::int32_t* own = slots + part * stride;
    const Range range = part_of(n, part, parts);
    ids.visit_present(range.begin, range.end, [=](std::int64_t position, std::int64_t row) {
      const std::int32_t slot = own[row >> bucket_bits]++;
      elements[slot] = static_cast<Element>((row & row_mask) << shift | position);
      __builtin_prefetch(elements + slot + 32, 1);  // more streams than the processor follows
    });
  });

  const std::int32_t present = slots[(parts - 1) * stride + buckets - 1];
  starts[buckets] = present;

  // A part takes the buckets that begin in its range of elements.
  const auto first_bucket = [&](int part) {
    return part == 0
               ? 0
               : std::lower_bound(starts, starts + buckets,
                                  static_cast<std::int32_t>(part_of(present, part, parts).begin)) -
                     starts;
  };
  const auto for_buckets = [&](auto f) {
    parallel_parts(parts, [&](int part) {
      const std::int64_t last = part + 1 == parts ? buckets : first_bucket(part + 1);
      for (std::int64_t bucket = first_bucket(part); bucket < last; ++bucket) f(bucket);
    });
  };

  const Element position_mask = static_cast<Element>((std::uint64_t{1} << shift) - 1);
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
  groups.offsets[count] = present;
  std::fill(groups.order + present, groups.order + n, -1);
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

template <class Id>
std::int64_t used_ids(const Id* ids, std::int64_t count) {
  while (count > 0 && ids[count - 1] == absent_id<Id>) --count;
  return count;
}
// The number of ids without the absent ones at the end, of which buffers for ids that ranks
// exchange have many.
std::int64_t used_ids(const IdArray& ids) {
  return ids.wide ? used_ids(static_cast<const std::int64_t*>(ids.data), ids.count)
                  : used_ids(static_cast<const std::int32_t*>(ids.data), ids.count);
}

template <class Row>
std::int64_t sort(const Ids& ids, std::int64_t n, const RowGroups& groups, const Plan& plan,
                  void* scratch) {
  if (!plan.buckets) return radix_sort<Row>(ids, n, groups, plan, scratch);
  if (plan.narrow()) return bucket_sort<Row, std::uint32_t>(ids, n, groups, plan, scratch);
  return bucket_sort<Row, std::uint64_t>(ids, n, groups, plan, scratch);
}

}  // namespace
}  // namespace row_sort

std::size_t unique_rows_scratch_bytes(std::int64_t ids, std::int64_t table_rows, int threads) {
  return row_sort::plan_for(ids, table_rows, threads).bytes;
}

std::int64_t unique_rows(const IdArray* ids, int arrays, std::int64_t table_rows,
                         const RowGroups& groups, void* scratch, int threads) noexcept {
  std::int64_t room = 0, n = 0;  // n: up to the last id that is not absent
  for (int a = 0; a < arrays; ++a) {
    const std::int64_t used = row_sort::used_ids(ids[a]);
    if (used > 0) n = room + used;
    room += ids[a].count;
  }
  std::fill(groups.order + n, groups.order + room, -1);
  if (groups.inverse != nullptr)
    std::fill(groups.inverse + n, groups.inverse + room, absent_id<std::int32_t>);
  if (n == 0) {
    groups.offsets[0] = 0;
    return 0;
  }
  const row_sort::Plan plan = row_sort::plan_for(room, table_rows, threads);
  const row_sort::Ids all{ids, arrays, table_rows};
  return groups.wide_rows ? row_sort::sort<std::int64_t>(all, n, groups, plan, scratch)
                          : row_sort::sort<std::int32_t>(all, n, groups, plan, scratch);
}

}  // namespace tandem
