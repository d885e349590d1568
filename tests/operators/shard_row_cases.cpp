// Cases of ShardIds and ShardRows, whose numbers follow from row r = row r / ranks of rank r %
// ranks. Also of ShardColumns, where each rank has all rows, and of OwnRows.
#include "engine/operators/tables/rows.h"
#include "tests/operators/network_cases.h"

namespace tandem::testing {
namespace {

constexpr double none32 = -2147483648.0, none64 = -9223372036854775808.0;

void add_ids(Cases& cases) {
  const auto add = [&](const char* name, CaseInput ids, std::int64_t rows, std::int64_t ranks,
                       std::vector<double> places) {
    add_case(cases, "ShardIds", name, {std::move(ids)}, {{"rows", rows}, {"ranks", ranks}})
        .expected = std::move(places);
  };
  // Ten rows on three ranks, in shards of four: 0 3 6 9 | 1 4 7 . | 2 5 8 .
  add("three", valued({2, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, DType::int64), 10, 3,
      {0, 4, 8, 1, 5, 9, 2, 6, 10, 3});
  add("from_the_end", valued({3}, {-1, -10, -4}, DType::int32), 10, 3, {3, 0, 2});
  add("absent", valued({3}, {none32, 4, none32}, DType::int32), 10, 3, {none32, 5, none32});
  add("absent_wide", valued({2}, {none64, -9}, DType::int64), 10, 3, {none32, 4});
  add("one_rank", valued({3}, {4, 0, 2}, DType::int64), 5, 1, {4, 0, 2});
  add("more_ranks_than_rows", valued({2}, {1, 0}, DType::int64), 2, 5, {1, 0});
  // More than 32 bits: row 2^33 + 1 of 2^34 on two ranks.
  add("many_rows", valued({1}, {8589934593.0}, DType::int64), std::int64_t{1} << 34, 2,
      {8589934592.0 + 4294967296.0});
  add_case(cases, "ShardIds", "many", {indices({57, 31}, 1000)}, {{"rows", 1000}, {"ranks", 7}});
  add_case(cases, "ShardIds", "none", {valued({0}, {}, DType::int64)}, {{"rows", 3}, {"ranks", 2}});
}

void add_rows(Cases& cases) {
  const auto add = [&](const char* name, std::vector<double> places, double count,
                       std::vector<double> rows) {
    const auto capacity = static_cast<std::int64_t>(places.size());
    add_case(
        cases, "ShardRows", name,
        {valued({capacity}, std::move(places), DType::int64), valued({}, {count}, DType::int32)},
        {{"rows", 10}, {"ranks", 3}})
        .expected = std::move(rows);
  };
  add("some", {0, 3, 5, 8, 9, 10, -1}, 6, {0, 3, 1, 0, 1, 2, none64});
  add("of_the_last_rank", {8, 10}, 2, {0, 2});
  add("nothing", {-1, -1}, 0, {none64, none64});
  add("no_room", {}, 0, {});
  // Shards of two rows on four ranks.
  add_case(cases, "ShardRows", "other_parts",
           {valued({4}, {1, 2, 3, 7}, DType::int64), valued({}, {4}, DType::int32)},
           {{"rows", 7}, {"ranks", 4}})
      .expected = {1, 0, 1, 1};
}

void add_columns(Cases& cases) {
  const auto add = [&](const char* name, std::vector<double> unique, double count,
                       std::int64_t ranks, std::vector<double> rows) {
    const auto capacity = static_cast<std::int64_t>(unique.size());
    add_case(
        cases, "ShardColumns", name,
        {valued({capacity}, std::move(unique), DType::int64), valued({}, {count}, DType::int32)},
        {{"ranks", ranks}})
        .expected = std::move(rows);
  };
  add("some", {2, 5, 7, -1}, 3, 2, {2, 5, 7, 2, 5, 7, none64, none64});
  add("all", {0, 4}, 2, 3, {0, 4, 0, 4, 0, 4});
  add("one_rank", {3, 8, 9}, 2, 1, {3, 8, none64});
  add("nothing", {-1, -1}, 0, 2, {none64, none64, none64, none64});
  add("no_room", {}, 0, 2, {});
}

void add_own_rows(Cases& cases) {
  const auto add = [&](const char* name, DType type, std::vector<double> places, std::int64_t rows,
                       std::int64_t ranks, std::int64_t rank, std::vector<double> expected) {
    const auto count = static_cast<std::int64_t>(places.size());
    add_case(cases, "OwnRows", name, {valued({count}, std::move(places), type)},
             {{"rows", rows}, {"ranks", ranks}, {"rank", rank}})
        .expected = std::move(expected);
  };
  // Ten rows on three ranks are shards of four: positions 0 to 3, 4 to 7, 8 to 11.
  const std::vector<double> places{0, 3, 4, 7, 8, 10, none32};
  const double none = none32;
  add("first", DType::int32, places, 10, 3, 0, {0, 3, none, none, none, none, none});
  add("middle", DType::int32, places, 10, 3, 1, {none, none, 0, 3, none, none, none});
  cases.back().attributes.set("filled", 0.5);
  add("last", DType::int32, places, 10, 3, 2, {none, none, none, none, 0, 2, none});
  // The largest position of int32, then shards with as many rows, then with more.
  const std::int64_t most = (std::int64_t{1} << 31) - 1;
  add("short_places", DType::int32, {2147483646.0, 0, none32}, most, 1, 0, {2147483646.0, 0, none});
  add("short_rows", DType::int64, {2147483646.0, 2147483647.0, none64}, 2 * most, 2, 1,
      {none32, 0, none32});
  add("long_rows", DType::int64, {0, 2147483648.0, 4294967295.0, none64}, 2 * most + 2, 2, 1,
      {none64, 0, 2147483647.0, none64});
  add("none", DType::int32, {}, 3, 2, 0, {});
}

}  // namespace

void add_shard_row_cases(Cases& cases) {
  const std::size_t first = cases.size();
  add_ids(cases);
  add_rows(cases);
  add_columns(cases);
  add_own_rows(cases);
  for (std::size_t i = first; i < cases.size(); ++i)
    cases[i].tolerance = 0;  // integers, to the bit
}

}  // namespace tandem::testing
