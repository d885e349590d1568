// Which rank has which whole table: by bytes and by the rows that are looked up.
#include "engine/train/sharding/table_owners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(TableOwners, TheHeaviestGoesToWhoHasLeast) {
  EXPECT_THAT(table_owners({{"a", 52, 0}, {"b", 30, 0}, {"c", 20, 0}, {"d", 10, 0}}, 2),
              ElementsAre(Pair("a", 0), Pair("b", 1), Pair("c", 1), Pair("d", 1)));
}

// Small tables that every sample looks up many rows of weigh as much as a large one.
TEST(TableOwners, RowsThatAreLookedUpCount) {
  EXPECT_THAT(table_owners({{"large", 900, 10}, {"hot", 50, 80}, {"cold", 50, 10}}, 2),
              ElementsAre(Pair("cold", 1), Pair("hot", 1), Pair("large", 0)));
}

TEST(TableOwners, EqualTablesGoByName) {
  EXPECT_THAT(table_owners({{"c", 1, 1}, {"a", 1, 1}, {"b", 1, 1}}, 4),
              ElementsAre(Pair("a", 0), Pair("b", 1), Pair("c", 2)));
  EXPECT_THAT(table_owners({{"b", 0, 0}, {"a", 0, 0}}, 1), ElementsAre(Pair("a", 0), Pair("b", 0)));
}

// Graham's bound, against the mean and the largest table, neither of which any choice beats.
TEST(TableOwners, NoRankHasMuchMoreThanTheOthers) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<TableLoad> tables;
    for (int i = 0; i < 26; ++i) {
      const double rows = std::pow(10.0, 1 + static_cast<double>(random() % 500) / 100);
      tables.push_back({"t" + std::to_string(i), rows * 64, 64});
    }
    double all = 0, largest = 0;
    for (const TableLoad& table : tables) all += table.bytes;
    const auto load = [&](const TableLoad& table) { return table.bytes / all + 1.0 / 26; };
    for (const TableLoad& table : tables) largest = std::max(largest, load(table));
    for (const int ranks : {2, 3, 4, 8}) {
      std::vector<double> loads(static_cast<std::size_t>(ranks), 0);
      for (const auto& [name, rank] : table_owners(tables, ranks)) {
        const auto found = std::find_if(tables.begin(), tables.end(),
                                        [&, n = name](const auto& t) { return t.name == n; });
        loads[static_cast<std::size_t>(rank)] += load(*found);
      }
      EXPECT_LE(*std::max_element(loads.begin(), loads.end()),
                2.0 / ranks + (1 - 1.0 / ranks) * largest + 1e-9);
    }
  }
}

}  // namespace
}  // namespace tandem
