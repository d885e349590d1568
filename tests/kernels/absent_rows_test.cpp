// Lookups, groups and sums of table rows, where many ids name no row, against plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/operators/tables/rows.h"
#include "kernels/cpu/rows/rows.h"
#include "tests/harness/instruction_sets.h"
#include "tests/kernels/plain_sgd.h"

namespace tandem::testing {
namespace {

using Floats = std::vector<float>;
using Indices = std::vector<std::int64_t>;
using Narrow = std::vector<std::int32_t>;

constexpr std::int64_t none = absent_id<std::int64_t>;
constexpr std::int32_t narrow_none = absent_id<std::int32_t>;

/// Random ids, of which about `share` are absent, at random positions.
Indices ids_with_gaps(std::int64_t count, std::int64_t table_rows, double share) {
  std::mt19937_64 random(static_cast<std::uint64_t>(count + table_rows));
  std::uniform_real_distribution<double> uniform(0, 1);
  Indices ids(static_cast<std::size_t>(count));
  for (auto& id : ids) {
    const double u = uniform(random);
    id = static_cast<std::int64_t>(u * u * static_cast<double>(table_rows));
    id = std::min(id, table_rows - 1);
    if (uniform(random) < share) id = none;
  }
  return ids;
}

Narrow narrowed(const Indices& ids) {
  Narrow result;
  for (const std::int64_t id : ids)
    result.push_back(id == none ? narrow_none : static_cast<std::int32_t>(id));
  return result;
}

struct GroupedPresent {
  Indices rows;
  Narrow offsets, order, inverse;
  std::int64_t count = 0;
};

/// Groups ids in `pieces` arrays, int64 and int32 in turn if `mixed`. Checks that no result is
/// written past its end, which is marked.
GroupedPresent group_present(const Indices& ids, std::int64_t table_rows, int threads, int pieces,
                             bool mixed) {
  const Narrow narrow = narrowed(ids);
  const std::size_t n = ids.size();
  std::vector<IdArray> arrays;
  for (std::size_t p = 0; p < static_cast<std::size_t>(pieces); ++p) {
    const std::size_t begin = n * p / static_cast<std::size_t>(pieces),
                      end = n * (p + 1) / static_cast<std::size_t>(pieces);
    const bool wide = !mixed || p % 2 == 0;
    const void* data = wide ? static_cast<const void*>(ids.data() + begin) : narrow.data() + begin;
    arrays.push_back({data, static_cast<std::int64_t>(end - begin), wide});
  }
  const std::size_t most = std::min(n, static_cast<std::size_t>(table_rows));
  GroupedPresent result{Indices(most + 1, -77), Narrow(most + 2, -77), Narrow(n + 1, -77),
                        Narrow(n + 1, -77)};
  const std::size_t bytes =
      unique_rows_scratch_bytes(static_cast<std::int64_t>(n), table_rows, threads);
  std::vector<unsigned char> memory(bytes + 128, 0xa5);
  auto* scratch = reinterpret_cast<unsigned char*>(
      (reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
  result.count = unique_rows(
      arrays.data(), pieces, table_rows,
      {result.rows.data(), true, result.offsets.data(), result.order.data(), result.inverse.data()},
      scratch, threads);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(scratch[bytes + static_cast<std::size_t>(i)], 0xa5);
  EXPECT_EQ(result.rows[most], -77);
  EXPECT_EQ(result.offsets[most + 1], -77);
  EXPECT_EQ(result.order[n], -77);
  EXPECT_EQ(result.inverse[n], -77);
  return result;
}

void check_groups_of_present(const Indices& ids, const GroupedPresent& result) {
  std::map<std::int64_t, Narrow> expected;
  std::size_t present = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == none) {
      ASSERT_EQ(result.inverse[i], narrow_none);
      continue;
    }
    expected[ids[i]].push_back(static_cast<std::int32_t>(i));
    ++present;
  }
  ASSERT_EQ(static_cast<std::size_t>(result.count), expected.size());
  ASSERT_EQ(result.offsets[0], 0);
  ASSERT_EQ(result.offsets[expected.size()], static_cast<std::int32_t>(present));
  for (std::size_t i = present; i < ids.size(); ++i) ASSERT_EQ(result.order[i], -1);
  std::size_t i = 0;
  for (const auto& [row, positions] : expected) {
    ASSERT_EQ(result.rows[i], row);
    const Narrow own(result.order.begin() + result.offsets[i],
                     result.order.begin() + result.offsets[i + 1]);
    ASSERT_EQ(own, positions) << "row " << row;
    for (const std::int32_t p : positions)
      ASSERT_EQ(result.inverse[static_cast<std::size_t>(p)], static_cast<std::int32_t>(i));
    ++i;
  }
}

// Some tables have a power of two of rows: the row after the last one then needs one more bit.
TEST(AbsentRows, AreInNoGroup) {
  for (const std::int64_t table_rows :
       {std::int64_t{1}, std::int64_t{2}, std::int64_t{256}, std::int64_t{700}, std::int64_t{4096},
        std::int64_t{300000}, std::int64_t{1} << 20, std::int64_t{1} << 22, std::int64_t{6} << 20,
        std::int64_t{1} << 31}) {
    for (const std::int64_t n : {1, 2, 7, 100, 3000, 40000}) {
      for (const double share : {0.02, 0.5, 0.98, 1.0}) {
        const Indices ids = ids_with_gaps(n, table_rows, share);
        for (const int threads : {1, 2, 3}) {
          SCOPED_TRACE(std::to_string(table_rows) + " rows, " + std::to_string(n) + " ids, " +
                       std::to_string(threads) + " threads, share " + std::to_string(share));
          ASSERT_NO_FATAL_FAILURE(
              check_groups_of_present(ids, group_present(ids, table_rows, threads, 1, false)));
        }
      }
    }
  }
}

// The largest table whose rows are counted and not sorted.
TEST(AbsentRows, AreInNoGroupOfALargeTableEither) {
  const std::int64_t table_rows = std::int64_t{1} << 22;
  const Indices ids = ids_with_gaps(270000, table_rows, 0.5);
  check_groups_of_present(ids, group_present(ids, table_rows, 2, 1, false));
}

TEST(AbsentRows, OfSeveralArraysOfBothTypes) {
  for (const std::int64_t table_rows : {std::int64_t{900}, std::int64_t{1} << 30}) {
    const Indices ids = ids_with_gaps(20000, table_rows, 0.4);
    for (const int pieces : {2, 39}) {
      for (const int threads : {1, 2})
        check_groups_of_present(ids, group_present(ids, table_rows, threads, pieces, true));
    }
  }
}

// Arrays with space for more ids than there are: the rest is absent.
TEST(AbsentRows, AtTheEndOfTheirArrays) {
  for (const std::int64_t table_rows : {std::int64_t{900}, std::int64_t{1} << 30}) {
    for (const std::size_t used : {0, 1, 700, 6001}) {
      Indices ids = ids_with_gaps(20000, table_rows, 0.1);
      std::fill(ids.begin() + static_cast<std::ptrdiff_t>(used), ids.end(), none);
      for (const int pieces : {1, 3}) {
        for (const int threads : {1, 2})
          check_groups_of_present(ids, group_present(ids, table_rows, threads, pieces, true));
      }
    }
  }
}

// The least int32 is an ordinary id among int64 ids: in a large table it names a row.
TEST(AbsentRows, AreOfTheirOwnType) {
  const std::int64_t table_rows = (std::int64_t{1} << 31) + 5;
  const Indices ids{std::int64_t{narrow_none}, 5, none, -1};
  const GroupedPresent groups = group_present(ids, table_rows, 1, 1, false);
  ASSERT_EQ(groups.count, 2);
  EXPECT_EQ(groups.rows[0], 5);  // named by two ids: -2^31 counts from the end
  EXPECT_EQ(groups.rows[1], table_rows - 1);
  EXPECT_EQ(groups.offsets[2], 3);
}

// Every row of the table is NaN except those that ids name.
TEST(AbsentRows, LookupZeros) {
  const std::int64_t table_rows = 5000;
  for (const Isa isa : instruction_sets()) {
    for (const std::int64_t columns : {1, 2, 7, 8, 16, 20, 80, 100}) {
      // The largest count makes an output that is written with non-temporal stores.
      for (const std::int64_t n : {1, 17, 400, 110000}) {
        const Indices ids = ids_with_gaps(n, table_rows, 0.5);
        const Narrow narrow = narrowed(ids);
        Floats table(static_cast<std::size_t>(table_rows * columns), NAN);
        for (const std::int64_t id : ids) {
          if (id == none) continue;
          for (std::int64_t c = 0; c < columns; ++c)
            table[static_cast<std::size_t>(id * columns + c)] = static_cast<float>(id + c);
        }
        for (const std::int64_t gap : {0, 4, 3}) {
          for (const bool wide : {true, false}) {
            const std::int64_t stride = columns + gap;
            Floats memory(static_cast<std::size_t>(n * stride) + 32, -1.0f);
            auto* y = reinterpret_cast<float*>(
                (reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
            const void* data = wide ? static_cast<const void*>(ids.data()) : narrow.data();
            gather_rows({table.data(), table_rows, columns, {data, n, wide}, y, stride}, isa, 2);
            for (std::int64_t i = 0; i < n; ++i) {
              const std::int64_t id = ids[static_cast<std::size_t>(i)];
              for (std::int64_t c = 0; c < stride; ++c) {
                const float x = c >= columns ? -1.0f
                                : id == none ? 0.0f
                                             : static_cast<float>(id + c);
                ASSERT_EQ(y[i * stride + c], x) << "columns " << columns << " position " << i;
              }
            }
          }
        }
      }
    }
  }
}

TEST(AbsentRows, AddNothingToBags) {
  const std::int64_t table_rows = 300, count = 200;
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0.0f, 0.5f);
  for (const Isa isa : instruction_sets()) {
    for (const std::int64_t columns : {1, 3, 8, 16, 33}) {
      for (const std::int64_t length : {1, 5, 39}) {
        const Indices ids = ids_with_gaps(count * length, table_rows - 1, 0.5);
        const Narrow narrow = narrowed(ids);
        Floats table(static_cast<std::size_t>(table_rows * columns)),
            weights(static_cast<std::size_t>(count * length));
        for (float& x : table) x = normal(random);
        for (float& x : weights) x = normal(random);
        for (std::int64_t c = 0; c < columns; ++c)
          table[static_cast<std::size_t>((table_rows - 1) * columns + c)] = NAN;
        for (std::size_t i = 0; i < ids.size(); i += 3) weights[i] = ids[i] == none ? NAN : 0;
        for (const bool weighted : {false, true}) {
          Floats y(static_cast<std::size_t>(count * columns) + 1, -1.0f), again = y;
          RowBags bags;
          bags.rows = {table.data(), table_rows, columns, {ids.data(), count * length, true},
                       y.data(),     columns};
          bags.length = length;
          if (weighted) bags.weights = weights.data();
          sum_bags(bags, isa, 1);
          bags.rows.ids = {narrow.data(), count * length, false};
          bags.rows.y = again.data();
          sum_bags(bags, isa, 3);
          ASSERT_EQ(y, again);
          ASSERT_EQ(y.back(), -1.0f);
          for (std::int64_t b = 0; b < count; ++b) {
            for (std::int64_t c = 0; c < columns; ++c) {
              double sum = 0;
              for (std::int64_t i = b * length; i < (b + 1) * length; ++i) {
                const auto k = static_cast<std::size_t>(i);
                if (ids[k] == none) continue;
                sum += (weighted ? static_cast<double>(weights[k]) : 1.0) *
                       static_cast<double>(table[static_cast<std::size_t>(ids[k] * columns + c)]);
              }
              ASSERT_NEAR(y[static_cast<std::size_t>(b * columns + c)], sum, 5e-6)
                  << "columns " << columns << " bag " << b;
            }
          }
        }
      }
    }
  }
}

// Sums, norms and updates must not read gradients of absent positions: those are NaN.
TEST(AbsentRows, HaveNoGradient) {
  const std::int64_t table_rows = 700, n = 9000;
  const Indices ids = ids_with_gaps(n, table_rows, 0.5);
  const GroupedPresent groups = group_present(ids, table_rows, 2, 1, false);
  for (const Isa isa : instruction_sets()) {
    for (const std::int64_t columns : {1, 2, 7, 8, 16, 80, 100}) {
      Floats dy(static_cast<std::size_t>(n * columns), NAN), weights(static_cast<std::size_t>(n));
      std::vector<double> sums(static_cast<std::size_t>(table_rows * columns), 0.0), plain = sums;
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t id = ids[static_cast<std::size_t>(i)];
        float& weight = weights[static_cast<std::size_t>(i)];
        weight = id == none ? NAN : static_cast<float>(i % 5 - 2);
        for (std::int64_t c = 0; id != none && c < columns; ++c) {
          float& x = dy[static_cast<std::size_t>(i * columns + c)];
          x = static_cast<float>((i + c) % 7 - 3);
          plain[static_cast<std::size_t>(id * columns + c)] += static_cast<double>(x);
          sums[static_cast<std::size_t>(id * columns + c)] += static_cast<double>(weight * x);
        }
      }
      for (const bool weighted : {false, true}) {
        const GradientArray array{dy.data(), n, columns, 1, weighted ? weights.data() : nullptr};
        const RowGradients g{
            &array, 1, columns, false, groups.offsets.data(), groups.order.data(), groups.count};
        const std::vector<double>& expected = weighted ? sums : plain;
        std::vector<char> memory(row_scratch_bytes(g.groups, columns, 2) + 64);
        void* scratch = reinterpret_cast<void*>(
            (reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
        Floats by_group(static_cast<std::size_t>(g.groups * columns));
        segment_sum(g, by_group.data(), scratch, isa, 2);
        double squares = 0;
        for (std::int64_t i = 0; i < g.groups * columns; ++i) {
          const std::int64_t row = groups.rows[static_cast<std::size_t>(i / columns)];
          const double x = expected[static_cast<std::size_t>(row * columns + i % columns)];
          ASSERT_EQ(static_cast<double>(by_group[static_cast<std::size_t>(i)]), x);
          squares += x * x;
        }
        EXPECT_DOUBLE_EQ(rows_sum_of_squares(g, scratch, isa, 2), squares);
        Floats table(expected.size(), 0.25f);
        const RowStep step = plain_sgd(1.0);
        RowTable target;
        target.weights = table.data();
        target.rows = groups.rows.data();
        update_rows(step, target, g, scratch, isa, 2);
        for (std::size_t i = 0; i < table.size(); ++i)
          ASSERT_EQ(static_cast<double>(table[i]), 0.25 - expected[i]);
      }
    }
  }
}

}  // namespace
}  // namespace tandem::testing
