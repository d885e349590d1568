// Tables in bfloat16, and split ones: lookups widen exactly, and updates change the halves as they
// change float32, bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "engine/graph/half.h"
#include "engine/graph/split_float.h"
#include "kernels/cpu/rows/row_rule.h"
#include "kernels/cpu/rows/rows.h"
#include "tests/harness/instruction_sets.h"
#include "tests/harness/update_settings.h"
#include "tests/kernels/stateful_rows.h"

namespace tandem::testing {
namespace {

using Floats = std::vector<float>;
using Tops = std::vector<std::uint16_t>;
using Tails = std::vector<std::int16_t>;
using Indices = std::vector<std::int64_t>;

constexpr std::int64_t absent = absent_id<std::int64_t>;

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

struct SplitTable {
  explicit SplitTable(const Floats& x) : tops(x.size()), tails(x.size()) {
    split_floats(x.data(), tops.data(), tails.data(), static_cast<std::int64_t>(x.size()));
  }
  Floats whole() const {
    Floats x(tops.size());
    join_floats(tops.data(), tails.data(), x.data(), static_cast<std::int64_t>(x.size()));
    return x;
  }
  Tops tops;
  Tails tails;
};

Floats normal_floats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.1f);
  Floats all(count);
  for (float& x : all) x = normal(random);
  return all;
}

TEST(SplitRows, VectorsAgreeWithNumbers) {
  Floats x;
  for (std::uint32_t upper = 0; upper < 65536; upper += 3) {
    for (const std::uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      x.push_back(std::bit_cast<float>(upper << 16 | lower));
  }
  const SplitTable expected(x);
  const Floats whole = expected.whole();
  for (const Isa isa : instruction_sets()) {
    // Ranges with any start and length.
    for (std::size_t first = 0, n = 1; first + n <= x.size(); first += n, n = n % 37 + 1) {
      const auto count = static_cast<std::int64_t>(n);
      Tops tops(n + 1, 7);
      Tails tails(n + 1, 7);
      Floats back(n + 1, 7);
      split_rows(x.data() + first, tops.data(), tails.data(), count, isa);
      join_rows(tops.data(), tails.data(), back.data(), count, isa);
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ(tops[i], expected.tops[first + i]);
        ASSERT_EQ(tails[i], expected.tails[first + i]);
        ASSERT_EQ(0, std::memcmp(&back[i], &whole[first + i], 4));
      }
      ASSERT_TRUE(tops[n] == 7 && tails[n] == 7 && back[n] == 7) << "nothing behind the end";
    }
  }
}

constexpr std::int64_t split_table_rows = 300;

Indices some_ids(std::int64_t count, unsigned seed, bool with_absent = false) {
  std::mt19937_64 random(seed);
  Indices ids(static_cast<std::size_t>(count));
  for (auto& id : ids) id = static_cast<std::int64_t>(random() % split_table_rows);
  for (std::size_t i = 0; with_absent && i < ids.size(); i += 5) ids[i] = absent;
  return ids;
}

// Both forms of the result; the larger count is written with non-temporal stores.
TEST(SplitRows, LookupsReadTheUpperHalf) {
  for (const Isa isa : instruction_sets()) {
    for (const std::int64_t columns : {1, 2, 7, 8, 16, 17, 20, 80}) {
      const SplitTable table(
          normal_floats(static_cast<std::size_t>(split_table_rows * columns), 3));
      for (const std::int64_t n : {0, 1, 400, 110000}) {
        const Indices ids = some_ids(n, 5, true);
        for (const std::int64_t gap : {0, 4, 3}) {
          const std::int64_t stride = columns + gap;
          const auto size = static_cast<std::size_t>(n * stride);
          Floats memory(size + 32, -1.0f);
          auto* y = reinterpret_cast<float*>(
              (reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
          Tops halves(size, 7);
          RowLookup lookup{
              table.tops.data(), split_table_rows, columns, {ids.data(), n, true}, y, stride};
          lookup.bfloat16 = lookup.widen = true;
          gather_rows(lookup, isa, 2);
          lookup.widen = false;
          lookup.y = halves.data();
          gather_rows(lookup, isa, 2);
          for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t id = ids[static_cast<std::size_t>(i)];
            for (std::int64_t c = 0; c < columns; ++c) {
              const auto at = static_cast<std::size_t>(i * stride + c);
              const std::uint16_t wanted =
                  id == absent ? std::uint16_t{0}
                               : table.tops[static_cast<std::size_t>(id * columns + c)];
              ASSERT_EQ(halves[at], wanted) << columns << " columns, position " << i;
              ASSERT_EQ(y[at], bfloat16_to_float(wanted)) << columns << " columns, position " << i;
            }
            for (std::int64_t c = columns; c < stride; ++c) {
              ASSERT_EQ(y[i * stride + c], -1.0f);
              ASSERT_EQ(halves[static_cast<std::size_t>(i * stride + c)], 7);
            }
          }
        }
      }
    }
  }
}

TEST(SplitRows, SumsOfRowsAreThoseOfWidenedRows) {
  for (const Isa isa : instruction_sets()) {
    for (const std::int64_t columns : {1, 3, 8, 16, 20, 80}) {
      const SplitTable table(
          normal_floats(static_cast<std::size_t>(split_table_rows * columns), 4));
      Floats wide(table.tops.size());
      for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = bfloat16_to_float(table.tops[i]);
      const std::int64_t bags = 50, length = 7;
      const Indices ids = some_ids(bags * length, 6, true);
      Floats weights = normal_floats(ids.size(), 8);
      weights[3] = 0;
      for (const bool weighted : {false, true}) {
        Floats one(static_cast<std::size_t>(bags * columns)), two = one;
        RowBags call;
        call.rows = {wide.data(), split_table_rows, columns, {ids.data(), bags * length, true},
                     one.data(),  columns};
        call.length = length;
        call.weights = weighted ? weights.data() : nullptr;
        sum_bags(call, isa, 2);
        call.rows.table = table.tops.data();
        call.rows.bfloat16 = true;
        call.rows.y = two.data();
        sum_bags(call, isa, 2);
        EXPECT_TRUE(same_bits(one, two)) << columns << " columns, weighted " << weighted;
      }
    }
  }
}

struct KindWithFactors {
  std::string name;
  RowFactors factors;
};

std::vector<KindWithFactors> kinds_with_factors() {
  std::vector<KindWithFactors> all;
  for (const UpdateSettings& tried : settings_to_try()) {
    if (!find_update_kind(tried.op)->whole_tensor)
      all.push_back({tried.name, row_factors(tried.op, tried.settings)});
  }
  return all;
}

/// Ids of a batch grouped by row.
struct Groups {
  explicit Groups(const Indices& ids) {
    for (std::int64_t row = 0; row < split_table_rows; ++row) {
      offsets.push_back(static_cast<std::int32_t>(order.size()));
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] == row) order.push_back(static_cast<std::int32_t>(i));
      }
      if (offsets.back() == static_cast<std::int32_t>(order.size()))
        offsets.pop_back();
      else
        rows.push_back(row);
    }
    offsets.push_back(static_cast<std::int32_t>(order.size()));
  }
  Indices rows;
  std::vector<std::int32_t> offsets, order;
};

TEST(SplitRows, UpdatesAreThoseOfFloat32) {
  for (const KindWithFactors& kind : kinds_with_factors()) {
    for (const Isa isa : instruction_sets()) {
      for (const std::int64_t columns : {1, 3, 8, 16, 20, 80}) {
        SCOPED_TRACE(kind.name + ", set " + std::to_string(static_cast<int>(isa)) + ", " +
                     std::to_string(columns) + " columns");
        const auto size = static_cast<std::size_t>(split_table_rows * columns);
        const Floats start = normal_floats(size, 7);
        Floats w = start;
        const RowLayout& layout = kind.factors.layout;
        std::vector<RowState> states = row_states(layout, split_table_rows, columns);
        auto split_states = states;
        SplitTable split(start);
        const SplitTable before = split;
        std::vector<bool> touched(static_cast<std::size_t>(split_table_rows), false);
        for (int step = 1; step <= 50; ++step) {
          Indices ids = some_ids(step == 9 ? 0 : 60, static_cast<unsigned>(step));
          for (auto& id : ids) id = step == 11 ? 5 : id % 200;  // rows from 200 on are not touched
          const Groups groups(ids);
          for (const std::int64_t row : groups.rows) touched[static_cast<std::size_t>(row)] = true;
          const auto n = static_cast<std::int64_t>(ids.size());
          const Floats dy = normal_floats(static_cast<std::size_t>(n * columns) + 1,
                                          static_cast<unsigned>(100 + step));
          const GradientArray array{dy.data(), n, columns};
          const RowGradients g{&array,
                               1,
                               columns,
                               false,
                               groups.offsets.data(),
                               groups.order.data(),
                               static_cast<std::int64_t>(groups.rows.size())};
          std::vector<double> scratch(row_scratch_bytes(g.groups, columns, 3) / 8 + 16);
          void* aligned = reinterpret_cast<void*>(
              (reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
          const RowStep factors = kind.factors.step(0.05, step, 0.5);
          RowTable whole;
          whole.weights = w.data();
          whole.rows = groups.rows.data();
          RowTable table;
          for (std::size_t k = 0; k < most_states; ++k) {
            whole.states[k] = states[k].data();
            table.states[k] = split_states[k].data();
          }
          update_rows(factors, whole, g, aligned, isa, 1);
          table.rows = groups.rows.data();
          table.tops = split.tops.data();
          table.tails = split.tails.data();
          update_rows(factors, table, g, aligned, isa, 3);
        }
        ASSERT_TRUE(same_bits(split.whole(), w));
        ASSERT_TRUE(split_states == states);
        for (const RowState& state : states) ASSERT_TRUE(state.ends_where_it_should());
        EXPECT_FALSE(same_bits(w, start)) << "the steps did something";
        for (std::size_t i = 0; i < size; ++i) {
          if (touched[i / static_cast<std::size_t>(columns)]) continue;
          ASSERT_EQ(split.tops[i], before.tops[i]);
          ASSERT_EQ(split.tails[i], before.tails[i]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tandem::testing
