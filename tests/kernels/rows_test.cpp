// Groups of ids, lookups of rows and sums of their gradients against plain loops in double.
#include "kernels/cpu/rows/rows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/rows_support.h"

namespace tandem::testing {
namespace {

void check_groups(const Indices& ids, const Grouped& result) {
  const auto expected = expected_groups(ids);
  ASSERT_EQ(result.rows.size(), expected.size());
  ASSERT_EQ(result.offsets[0], 0);
  std::size_t i = 0;
  for (const auto& [row, positions] : expected) {
    ASSERT_EQ(result.rows[i], row);
    const std::vector<std::int32_t> own(result.order.begin() + result.offsets[i],
                                        result.order.begin() + result.offsets[i + 1]);
    ASSERT_EQ(own, positions) << "row " << row;
    for (std::int32_t p : positions)
      ASSERT_EQ(result.inverse[static_cast<std::size_t>(p)], static_cast<std::int32_t>(i));
    ++i;
  }
}

TEST(UniqueRows, AgreesWithAMap) {
  constexpr std::int64_t beyond_int32 = (std::int64_t{1} << 31) + 1000;
  for (const std::int64_t table_rows :
       {std::int64_t{1}, std::int64_t{2}, std::int64_t{511}, std::int64_t{5000},
        std::int64_t{300000}, std::int64_t{6} << 20, beyond_int32}) {
    for (const std::int64_t n : {1, 2, 7, 100, 3000, 40000}) {
      for (const bool skewed : {false, true}) {
        const Indices ids = random_ids(n, table_rows, static_cast<unsigned>(n), skewed);
        for (const int threads : {1, 2, 3}) {
          SCOPED_TRACE(std::to_string(table_rows) + " rows, " + std::to_string(n) + " ids, " +
                       std::to_string(threads) + " threads");
          check_groups(ids, group(ids, table_rows, threads));
        }
      }
    }
  }
}

TEST(UniqueRows, SeveralArraysOfBothTypes) {
  for (const std::int64_t table_rows : {std::int64_t{900}, std::int64_t{1} << 30}) {
    const Indices ids = random_ids(20000, table_rows, 5);
    for (const int pieces : {2, 3, 39}) {
      for (const int threads : {1, 2}) {
        check_groups(ids, group(ids, table_rows, threads, pieces, true));
        check_groups(ids, group(ids, table_rows, threads, pieces, true, false));
      }
    }
  }
}

TEST(UniqueRows, EmptyEqualAndDistinct) {
  for (const int threads : {1, 2}) {
    check_groups({}, group({}, 1000, threads));
    check_groups(Indices(30000, 17), group(Indices(30000, 17), 1000, threads));
    check_groups(Indices(30000, 17), group(Indices(30000, 17), std::int64_t{1} << 40, threads));
    Indices all(30000);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i * 7919 % all.size());
    check_groups(all, group(all, 30000, threads));
  }
}

TEST(UniqueRows, IndicesOutsideStayInTheTable) {
  const std::int64_t table_rows = 100;
  const Indices ids{-1,
                    5,
                    100,
                    1 << 20,
                    -100,
                    -101,
                    std::numeric_limits<std::int64_t>::min() + 1,
                    std::numeric_limits<std::int64_t>::max(),
                    99};
  const Indices inside{99, 5, 99, 99, 0, 0, 0, 99, 99};
  check_groups(inside, group(ids, table_rows, 2));
}

TEST(GatherRows, CopiesRows) {
  for (const Isa isa : instruction_sets()) {
    for (const std::int64_t columns : {1, 2, 7, 8, 16, 20, 80, 100}) {
      const std::int64_t table_rows = 5000;
      Floats table(static_cast<std::size_t>(table_rows * columns));
      for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
      // The largest count makes an output that is written with non-temporal stores.
      for (const std::int64_t n : {0, 1, 17, 400, 110000}) {
        const Indices ids = random_ids(n, table_rows, 3);
        for (const std::int64_t gap : {0, 4, 3}) {
          const std::int64_t stride = columns + gap;
          Floats memory(static_cast<std::size_t>(n * stride) + 32, -1.0f);
          auto* y = reinterpret_cast<float*>(
              (reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
          gather_rows({table.data(), table_rows, columns, {ids.data(), n, true}, y, stride}, isa,
                      2);
          for (std::int64_t i = 0; i < n; ++i) {
            ASSERT_EQ(0, std::memcmp(y + i * stride,
                                     table.data() + ids[static_cast<std::size_t>(i)] * columns,
                                     static_cast<std::size_t>(columns) * 4))
                << "columns " << columns << " position " << i;
            for (std::int64_t c = columns; c < stride; ++c) ASSERT_EQ(y[i * stride + c], -1.0f);
          }
        }
      }
    }
  }
}

TEST(SegmentSum, AgreesWithDouble) {
  for (const Isa isa : instruction_sets()) {
    for (const std::int64_t columns : all_columns) {
      for (const bool bfloat16 : {false, true}) {
        for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
                 {9000}, {3000, 3000, 3000}, {100, 8000, 0, 900}}) {
          const Indices ids = random_ids(9000, 700, 11, true);
          const Grouped groups = group(ids, 700, 2);
          const Gradients gradients(sizes, columns, bfloat16, sizes.size() == 1 ? 0 : 5, 4);
          const RowGradients g = gradients.of(groups, bfloat16);
          Scratch scratch(row_scratch_bytes(g.groups, columns, 3));
          Floats one(static_cast<std::size_t>(g.groups * columns), -1.0f), two = one;
          segment_sum(g, one.data(), scratch.data(), isa, 1);
          segment_sum(g, two.data(), scratch.data(), isa, 3);
          ASSERT_EQ(0, std::memcmp(one.data(), two.data(), one.size() * 4));
          double squares = 0;
          std::size_t at = 0;
          for (const auto& [row, positions] : expected_groups(ids)) {
            for (const double x : gradients.sum(positions)) {
              ASSERT_NEAR(one[at++], x, 2e-6 * static_cast<double>(positions.size()) + 1e-6);
              squares += x * x;
            }
          }
          const double a = rows_sum_of_squares(g, scratch.data(), isa, 1);
          EXPECT_NEAR(a / squares, 1.0, 1e-6);
          EXPECT_EQ(a, rows_sum_of_squares(g, scratch.data(), isa, 2));
          EXPECT_EQ(a, rows_sum_of_squares(g, scratch.data(), isa, 3));
          EXPECT_TRUE(scratch.whole());
        }
      }
    }
  }
}

TEST(SegmentSum, OneRowOfManyKeepsItsDigits) {
  const std::int64_t n = 100000;
  const Indices ids(static_cast<std::size_t>(n), 3);
  const Grouped groups = group(ids, 10, 2);
  const Gradients gradients({n}, 16, false, 0, 9);
  const RowGradients g = gradients.of(groups, false);
  const std::vector<double> expected = gradients.sum(groups.order);
  for (const Isa isa : instruction_sets()) {
    Scratch scratch(row_scratch_bytes(1, 16, 2));
    Floats sum(16);
    segment_sum(g, sum.data(), scratch.data(), isa, 2);
    // Elements of size 0.5: a sum of 100,000 is rounded by about sqrt(n) 0.5 2^-24.
    for (std::size_t c = 0; c < 16; ++c) EXPECT_NEAR(sum[c], expected[c], 1e-4);
  }
}

// Rows of few whole vectors have special loops for their sums, all others share one.
TEST(SegmentSum, AColumnsSumsDoNotDependOnTheOthers) {
  const std::int64_t n = 3000;
  const Indices ids = random_ids(n, 400, 4, true);  // groups of 1 to about 600
  const Grouped groups = group(ids, 400, 2);
  for (const bool bfloat16 : {false, true}) {
    const Gradients gradients({n}, 212, bfloat16, 0, 11);
    const auto sums_of = [&](std::int64_t columns, Isa isa) {
      RowGradients g = gradients.of(groups, bfloat16);
      g.columns = columns;
      Floats sums(static_cast<std::size_t>(g.groups * columns));
      Scratch scratch(row_scratch_bytes(g.groups, columns, 2));
      segment_sum(g, sums.data(), scratch.data(), isa, 2);
      EXPECT_TRUE(scratch.whole());
      return sums;
    };
    for (const Isa isa : instruction_sets()) {
      const Floats all = sums_of(211, isa);  // not a multiple of a vector
      for (std::int64_t columns = 12; columns <= 208; columns += 4) {
        const Floats sums = sums_of(columns, isa);
        for (std::size_t row = 0; row < groups.rows.size(); ++row) {
          ASSERT_EQ(0, std::memcmp(sums.data() + row * static_cast<std::size_t>(columns),
                                   all.data() + row * 211, static_cast<std::size_t>(columns) * 4))
              << columns << " columns, row " << row;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tandem::testing
