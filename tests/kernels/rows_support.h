// Common parts of tests of rows: ids and their groups, gradients, scratch memory with guards.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "kernels/cpu/rows/rows.h"
#include "tests/harness/instruction_sets.h"

namespace tandem::testing {

using Indices = std::vector<std::int64_t>;
using Floats = std::vector<float>;

/// 64-byte aligned memory, followed by guard bytes.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) : size_(bytes), memory_(bytes + 128, guard) {}
  void* data() {
    const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + (64 - start % 64) % 64;
  }
  bool whole() {
    const auto* end = static_cast<unsigned char*>(data()) + size_;
    for (int i = 0; i < 64; ++i) {
      if (end[i] != guard) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned char guard = 0xa5;
  std::size_t size_;
  std::vector<unsigned char> memory_;
};

struct Grouped {
  Indices rows;
  std::vector<std::int32_t> offsets, order, inverse;
};

inline std::map<std::int64_t, std::vector<std::int32_t>> expected_groups(const Indices& ids) {
  std::map<std::int64_t, std::vector<std::int32_t>> groups;
  for (std::size_t i = 0; i < ids.size(); ++i) groups[ids[i]].push_back(static_cast<int>(i));
  return groups;
}

/// Groups ids in `pieces` arrays, int64 and int32 in turn if `mixed`.
inline Grouped group(const Indices& ids, std::int64_t table_rows, int threads, int pieces = 1,
                     bool mixed = false, bool wide_rows = true) {
  std::vector<IdArray> arrays;
  std::vector<std::vector<std::int32_t>> narrow(static_cast<std::size_t>(pieces));
  const std::size_t n = ids.size(), count = static_cast<std::size_t>(pieces);
  for (std::size_t p = 0; p < count; ++p) {
    const std::size_t begin = n * p / count, end = n * (p + 1) / count;
    const bool wide = !mixed || p % 2 == 0;
    for (std::size_t i = begin; i < end; ++i) narrow[p].push_back(static_cast<int>(ids[i]));
    const void* data = wide ? static_cast<const void*>(ids.data() + begin) : narrow[p].data();
    arrays.push_back({data, static_cast<std::int64_t>(end - begin), wide});
  }
  const std::size_t most = std::min(n, static_cast<std::size_t>(table_rows));
  constexpr std::int64_t mark = -77;
  Grouped result{Indices(most + 1, mark), std::vector<std::int32_t>(most + 2, -77),
                 std::vector<std::int32_t>(n + 1, -77), std::vector<std::int32_t>(n + 1, -77)};
  std::vector<std::int32_t> narrow_rows(most + 1, -77);
  Scratch scratch(unique_rows_scratch_bytes(static_cast<std::int64_t>(n), table_rows, threads));
  void* rows = wide_rows ? static_cast<void*>(result.rows.data()) : narrow_rows.data();
  const std::int64_t groups = unique_rows(
      arrays.data(), pieces, table_rows,
      {rows, wide_rows, result.offsets.data(), result.order.data(), result.inverse.data()},
      scratch.data(), threads);
  EXPECT_TRUE(scratch.whole());
  if (!wide_rows) result.rows.assign(narrow_rows.begin(), narrow_rows.end());
  // Nothing may be written after the results.
  EXPECT_EQ(result.rows[most], mark);
  EXPECT_EQ(result.offsets[most + 1], -77);
  EXPECT_EQ(result.order[n], -77);
  EXPECT_EQ(result.inverse[n], -77);
  result.rows.resize(static_cast<std::size_t>(groups));
  result.offsets.resize(static_cast<std::size_t>(groups) + 1);
  result.order.resize(n);
  result.inverse.resize(n);
  return result;
}

inline Indices random_ids(std::int64_t n, std::int64_t table_rows, unsigned seed,
                          bool skewed = false) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  Indices ids(static_cast<std::size_t>(n));
  for (auto& id : ids) {
    const double u = uniform(random), x = skewed ? u * u * u * u : u;
    id = std::min(table_rows - 1, static_cast<std::int64_t>(x * static_cast<double>(table_rows)));
  }
  return ids;
}

struct Gradients {
  std::int64_t columns;
  std::vector<Floats> floats;
  std::vector<std::vector<std::uint16_t>> halves;
  std::vector<GradientArray> arrays;
  std::vector<Floats> rows;  // as the sums read them, by position

  /// `sizes`: positions in each array; rows are `gap` elements apart.
  Gradients(const std::vector<std::int64_t>& sizes, std::int64_t width, bool bfloat16,
            std::int64_t gap, unsigned seed)
      : columns(width) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, 0.5f);
    for (const std::int64_t n : sizes) {
      const std::int64_t stride = columns + gap;
      Floats data(static_cast<std::size_t>(n * stride + 1));
      std::vector<std::uint16_t> half(data.size());
      for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = normal(random);
        std::uint32_t bits;
        std::memcpy(&bits, &data[i], 4);
        half[i] = static_cast<std::uint16_t>(bits >> 16);
        if (!bfloat16) continue;
        bits = bits >> 16 << 16;
        std::memcpy(&data[i], &bits, 4);
      }
      for (std::int64_t i = 0; i < n; ++i)
        rows.emplace_back(data.begin() + i * stride, data.begin() + i * stride + columns);
      floats.push_back(std::move(data));
      halves.push_back(std::move(half));
      const void* start =
          bfloat16 ? static_cast<const void*>(halves.back().data()) : floats.back().data();
      arrays.push_back({start, n, stride});
    }
  }

  RowGradients of(const Grouped& groups, bool bfloat16) const {
    return {arrays.data(),
            static_cast<int>(arrays.size()),
            columns,
            bfloat16,
            groups.offsets.data(),
            groups.order.data(),
            static_cast<std::int64_t>(groups.rows.size())};
  }

  std::vector<double> sum(const std::vector<std::int32_t>& positions) const {
    std::vector<double> total(static_cast<std::size_t>(columns), 0.0);
    for (const std::int32_t p : positions) {
      for (std::size_t c = 0; c < total.size(); ++c)
        total[c] += static_cast<double>(rows[static_cast<std::size_t>(p)][c]);
    }
    return total;
  }
};

inline const std::vector<std::int64_t> all_columns{1, 2, 7, 8, 16, 80, 100, 192, 208};

}  // namespace tandem::testing
