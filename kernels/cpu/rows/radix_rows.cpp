// The distinct rows among lookup indices where the table is large compared with the batch.
#include <cstring>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows/row_sort.h"

namespace tandem::row_sort {

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

template std::int64_t radix_sort<std::int32_t>(const Ids&, std::int64_t, const RowGroups&,
                                               const Plan&, void*);
template std::int64_t radix_sort<std::int64_t>(const Ids&, std::int64_t, const RowGroups&,
                                               const Plan&, void*);

}  // namespace tandem::row_sort
