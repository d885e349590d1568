// Sums of looked-up rows, and the sums and updates of their gradients, against plain loops in
// double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/rows/rows.h"
#include "tests/harness/instruction_sets.h"
#include "tests/kernels/plain_sgd.h"

namespace tandem::testing {
namespace {

using Floats = std::vector<float>;

constexpr std::int64_t summed_table_rows = 300;

Floats random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.5f);
  Floats values(static_cast<std::size_t>(count));
  for (float& x : values) x = normal(random);
  return values;
}

std::vector<std::int32_t> narrow_ids(std::int64_t count) {
  std::mt19937 random(5);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  for (auto& id : ids) id = static_cast<std::int32_t>(random() % summed_table_rows);
  return ids;
}

// Two lookups: bags of 39 ids with or without weights, and one row each.
struct Lookups {
  std::int64_t bags = 100, length = 39, single = 500, columns;
  std::vector<std::int32_t> ids;
  Floats bag_rows, single_rows, weights;
  std::vector<std::vector<double>> sums;  // by table row
  std::vector<std::int64_t> rows;
  std::vector<std::int32_t> offsets, order;
  GradientArray arrays[2];
  std::vector<float> scratch;

  Lookups(std::int64_t width, bool weighted)
      : columns(width),
        ids(narrow_ids(bags * length + single)),
        bag_rows(random_floats(bags * width, 1)),
        single_rows(random_floats(single * width, 2)),
        weights(random_floats(bags * length, 3)) {
    sums.assign(summed_table_rows, std::vector<double>(static_cast<std::size_t>(width), 0.0));
    for (std::int64_t p = 0; p < bags * length + single; ++p) {
      const bool bag = p < bags * length;
      const float* row = bag ? &bag_rows[static_cast<std::size_t>(p / length * width)]
                             : &single_rows[static_cast<std::size_t>((p - bags * length) * width)];
      const double weight =
          bag && weighted ? static_cast<double>(weights[static_cast<std::size_t>(p)]) : 1.0;
      for (std::size_t c = 0; c < static_cast<std::size_t>(width); ++c) {
        sums[static_cast<std::size_t>(ids[static_cast<std::size_t>(p)])][c] +=
            weight * static_cast<double>(row[c]);
      }
    }
    const IdArray array{ids.data(), static_cast<std::int64_t>(ids.size()), false};
    rows.resize(summed_table_rows);
    offsets.resize(summed_table_rows + 1);
    order.resize(ids.size());
    std::vector<char> memory(unique_rows_scratch_bytes(array.count, summed_table_rows, 1) + 64);
    const std::int64_t groups =
        unique_rows(&array, 1, summed_table_rows, {rows.data(), true, offsets.data(), order.data()},
                    aligned(memory.data()), 1);
    rows.resize(static_cast<std::size_t>(groups));
    arrays[0] = {bag_rows.data(), bags * length, width, 1.0 / static_cast<double>(length),
                 weighted ? weights.data() : nullptr};
    arrays[1] = {single_rows.data(), single, width};
    scratch.resize(row_scratch_bytes(groups, width, 3) / 4 + 32);
  }

  static void* aligned(void* memory) {
    return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(memory) + 63) / 64 * 64);
  }
  RowGradients gradients() const {
    return {arrays,
            2,
            columns,
            false,
            offsets.data(),
            order.data(),
            static_cast<std::int64_t>(rows.size())};
  }
};

TEST(RowBags, GradientsOfBags) {
  for (const Isa isa : instruction_sets()) {
    for (const std::int64_t columns : {1, 3, 8, 16, 33}) {
      for (const bool weighted : {false, true}) {
        SCOPED_TRACE(columns);
        Lookups lookups(columns, weighted);
        const RowGradients g = lookups.gradients();
        void* scratch = Lookups::aligned(lookups.scratch.data());
        Floats sums(static_cast<std::size_t>(g.groups * columns)), again = sums;
        segment_sum(g, sums.data(), scratch, isa, 1);
        segment_sum(g, again.data(), scratch, isa, 3);
        ASSERT_EQ(0, std::memcmp(sums.data(), again.data(), sums.size() * 4));
        double squares = 0;
        Floats table(static_cast<std::size_t>(summed_table_rows * columns), 1.0f);
        const RowStep step = plain_sgd(0.1);
        update_rows(step, {table.data(), {}, lookups.rows.data(), true}, g, scratch, isa, 2);
        for (std::size_t i = 0; i < lookups.rows.size(); ++i) {
          const auto row = static_cast<std::size_t>(lookups.rows[i]);
          for (std::size_t c = 0; c < static_cast<std::size_t>(columns); ++c) {
            const double exact = lookups.sums[row][c];
            squares += exact * exact;
            ASSERT_NEAR(sums[i * static_cast<std::size_t>(columns) + c], exact, 1e-5);
            ASSERT_NEAR(table[row * static_cast<std::size_t>(columns) + c], 1 - 0.1 * exact, 2e-6);
          }
        }
        EXPECT_NEAR(rows_sum_of_squares(g, scratch, isa, 2) / squares, 1.0, 1e-6);
      }
    }
  }
}

// One column in one array has a special code path.
TEST(RowBags, GradientsOfColumnBags) {
  Lookups lookups(1, false);
  lookups.single = 0;
  const std::int64_t count = lookups.bags * lookups.length;
  const IdArray ids{lookups.ids.data(), count, false};
  std::vector<char> memory(unique_rows_scratch_bytes(count, summed_table_rows, 1) + 64);
  std::vector<std::int64_t> rows(summed_table_rows);
  std::vector<std::int32_t> offsets(summed_table_rows + 1), order(static_cast<std::size_t>(count));
  const std::int64_t groups =
      unique_rows(&ids, 1, summed_table_rows, {rows.data(), true, offsets.data(), order.data()},
                  Lookups::aligned(memory.data()), 1);
  const RowGradients g{lookups.arrays, 1, 1, false, offsets.data(), order.data(), groups};
  std::vector<double> exact(summed_table_rows, 0.0);
  for (std::int64_t p = 0; p < count; ++p) {
    exact[static_cast<std::size_t>(lookups.ids[static_cast<std::size_t>(p)])] +=
        static_cast<double>(lookups.bag_rows[static_cast<std::size_t>(p / lookups.length)]);
  }
  for (const Isa isa : instruction_sets()) {
    Floats sums(static_cast<std::size_t>(groups));
    segment_sum(g, sums.data(), Lookups::aligned(lookups.scratch.data()), isa, 2);
    for (std::size_t i = 0; i < sums.size(); ++i)
      ASSERT_NEAR(sums[i], exact[static_cast<std::size_t>(rows[i])], 1e-5);
  }
}

TEST(RowBags, SumsOfRows) {
  for (const Isa isa : instruction_sets()) {
    for (const std::int64_t columns : {1, 3, 8, 16, 33}) {
      const Floats table = random_floats(summed_table_rows * columns, 4);
      for (const std::int64_t length : {1, 5, 39}) {
        for (const bool weighted : {false, true}) {
          const std::int64_t count = 200;
          const std::vector<std::int32_t> ids = narrow_ids(count * length);
          const std::vector<std::int64_t> wide(ids.begin(), ids.end());
          Floats weights = random_floats(count * length, 6);
          for (std::size_t i = 0; i < weights.size(); i += 3) weights[i] = 0;
          Floats y(static_cast<std::size_t>(count * columns) + 1, -1.0f), again = y;
          RowBags bags;
          bags.rows = {table.data(), summed_table_rows,
                       columns,      {ids.data(), count * length, false},
                       y.data(),     columns};
          bags.length = length;
          if (weighted) bags.weights = weights.data();
          sum_bags(bags, isa, 1);
          bags.rows.ids = {wide.data(), count * length, true};
          bags.rows.y = again.data();
          sum_bags(bags, isa, 3);
          ASSERT_EQ(y, again);
          ASSERT_EQ(y.back(), -1.0f);
          for (std::int64_t b = 0; b < count; ++b) {
            for (std::int64_t c = 0; c < columns; ++c) {
              double sum = 0;
              for (std::int64_t i = b * length; i < (b + 1) * length; ++i) {
                const auto k = static_cast<std::size_t>(i);
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

// Padding may contain anything.
TEST(RowBags, RowsOfWeightZeroAreNotRead) {
  for (const Isa isa : instruction_sets()) {
    for (const std::int64_t columns : {1, 16}) {
      Floats table = random_floats(3 * columns, 4), y(static_cast<std::size_t>(columns));
      for (std::int64_t c = 0; c < columns; ++c) table[static_cast<std::size_t>(c)] = NAN;
      const std::vector<std::int64_t> ids{0, 2, 0};
      const Floats weights{0, 1, 0};
      RowBags bags;
      bags.rows = {table.data(), 3, columns, {ids.data(), 3, true}, y.data(), columns};
      bags.length = 3;
      bags.weights = weights.data();
      sum_bags(bags, isa, 1);
      for (std::int64_t c = 0; c < columns; ++c)
        EXPECT_EQ(y[static_cast<std::size_t>(c)], table[static_cast<std::size_t>(2 * columns + c)]);
    }
  }
}

}  // namespace
}  // namespace tandem::testing
