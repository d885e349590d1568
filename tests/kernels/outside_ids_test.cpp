// How lookups and sums of bags report ids outside the table, wherever they are.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/operators/tables/rows.h"
#include "kernels/cpu/rows/rows.h"
#include "tests/harness/instruction_sets.h"

namespace tandem::testing {
namespace {

template <class Id>
class OutsideIds : public ::testing::Test {
 protected:
  /// Checks the result of both functions for one id among many others, on each instruction set.
  static void expect(Id id, std::size_t at, Id other, bool inside) {
    constexpr std::int64_t rows = 7, length = 39, bags = 1700;
    std::vector<Id> ids(static_cast<std::size_t>(length * bags), other);
    ids[at] = id;
    const std::vector<float> table(rows * 2, 1.0f);
    std::vector<float> y(ids.size() * 2);
    for (const Isa isa : instruction_sets()) {
      for (const int threads : {1, 3}) {
        RowBags bag;
        bag.rows = {table.data(), rows, 2, {ids.data(), length * bags, sizeof(Id) == 8},
                    y.data(),     2};
        EXPECT_EQ(gather_rows(bag.rows, isa, threads), inside)
            << "id " << id << " at " << at << " among " << other;
        bag.length = length;
        EXPECT_EQ(sum_bags(bag, isa, threads), inside)
            << "id " << id << " at " << at << " among " << other;
      }
    }
  }
};

using IdTypes = ::testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(OutsideIds, IdTypes);

TYPED_TEST(OutsideIds, AreSeenAnywhere) {
  constexpr TypeParam most = std::numeric_limits<TypeParam>::max();
  const std::vector<TypeParam> outside = {7, 8, -8, most, static_cast<TypeParam>(-most)};
  const std::vector<TypeParam> inside = {0, 6, -1, -7, absent_id<TypeParam>};
  for (const std::size_t at : {std::size_t{0}, std::size_t{16383}, std::size_t{16384},
                               std::size_t{40001}, std::size_t{39 * 1700 - 1}}) {
    for (const TypeParam other : {TypeParam{1}, TypeParam{-1}, absent_id<TypeParam>}) {
      for (const TypeParam id : outside) this->expect(id, at, other, false);
      for (const TypeParam id : inside) this->expect(id, at, other, true);
    }
  }
}

// A table may have more rows than its ids can name.
TEST(OutsideNarrowIds, AllAreInsideOfALargerTable) {
  const std::vector<std::int32_t> ids = {0, 1, 2, 1};
  const std::vector<float> table = {3, 4, 5};
  for (const Isa isa : instruction_sets()) {
    std::vector<float> y(4);
    const RowLookup lookup{
        table.data(), std::int64_t{5} << 31, 1, {ids.data(), 4, false}, y.data(), 1};
    EXPECT_TRUE(gather_rows(lookup, isa, 1));
    EXPECT_EQ(y, (std::vector<float>{3, 4, 5, 4}));
  }
}

}  // namespace
}  // namespace tandem::testing
