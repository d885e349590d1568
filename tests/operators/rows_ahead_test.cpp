// Rows fetched a step ahead, on every kernel: whatever was fetched, each row is found and is read
// from where it is up to date.
#include <algorithm>
#include <random>
#include <set>

#include "engine/operators/tables/rows.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<std::int64_t>;  // ascending

HostTensor list_of(const Rows& rows, std::int64_t capacity) {
  Rows all = rows;
  all.resize(static_cast<std::size_t>(capacity), -1);
  return HostTensor::from<std::int64_t>({capacity}, all);
}
HostTensor row_count_of(const Rows& rows) {
  return HostTensor::from<std::int32_t>({}, {static_cast<std::int32_t>(rows.size())});
}
HostTensor step_of(std::int64_t step) { return HostTensor::from<std::int64_t>({}, {step}); }

Rows rows_in(const HostTensor& list, const HostTensor& count) {
  Rows rows;
  for (std::int64_t i = 0; i < list.type().elements(); ++i) {
    const auto row = static_cast<std::int64_t>(list.number(i));
    if (i < static_cast<std::int64_t>(count.number(0)))
      rows.push_back(row);
    else
      EXPECT_EQ(row, -1) << i;
  }
  return rows;
}

Rows some_rows(std::mt19937& random, double share, std::int64_t of) {
  std::bernoulli_distribution is_in(share);
  Rows rows;
  for (std::int64_t row = 0; row < of; ++row) {
    if (is_in(random)) rows.push_back(row);
  }
  return rows;
}

// Fetches the next step's rows, without those that this step changes.
TEST(RowsAhead, WhatThisStepChangesIsNotFetched) {
  std::mt19937 random(3);
  constexpr std::int64_t capacity = 200;
  for (const double share : {0.0, 0.05, 0.5, 1.0}) {
    for (const double changed_share : {0.0, 0.3, 1.0}) {
      const Rows wanted = some_rows(random, share, capacity),
                 changed = some_rows(random, changed_share, capacity);
      Rows expected;
      std::set_difference(wanted.begin(), wanted.end(), changed.begin(), changed.end(),
                          std::back_inserter(expected));
      const std::vector<HostTensor> inputs{list_of(wanted, capacity),
                                           row_count_of(wanted),
                                           list_of(changed, capacity),
                                           row_count_of(changed),
                                           step_of(41),
                                           list_of({}, capacity),
                                           row_count_of({}),
                                           step_of(0)};
      const Graph graph = single_node("RowsWithout", inputs, {});
      each_kernel(graph, [&](const Kernel& kernel) {
        const std::vector<HostTensor> y = run_in_context(kernel, graph, inputs, {});
        EXPECT_EQ(rows_in(y[0], y[1]), expected);
        EXPECT_EQ(y[2].number(0), 42);
      });
    }
  }
}

// A row of the table holds its own number; rows that were not fetched hold wrong numbers.
TEST(RowsAhead, EveryRowIsFound) {
  std::mt19937 random(5);
  constexpr std::int64_t capacity = 150, columns = 3;
  for (const bool is_of_step : {true, false}) {
    for (const double kept_share : {0.0, 0.4, 1.0}) {
      const Rows unique = some_rows(random, 0.5, capacity),
                 kept = some_rows(random, kept_share, capacity);
      const std::vector<HostTensor> inputs{list_of(unique, capacity),   row_count_of(unique),
                                           list_of(kept, capacity + 7), row_count_of(kept),
                                           step_of(is_of_step ? 9 : 8), step_of(9)};
      Rows expected = unique;
      if (is_of_step) {
        expected.clear();
        std::set_difference(unique.begin(), unique.end(), kept.begin(), kept.end(),
                            std::back_inserter(expected));
      }
      const Graph graph = single_node("PlanRows", inputs, {});
      each_kernel(graph, [&](const Kernel& kernel) {
        const std::vector<HostTensor> plan = run_in_context(kernel, graph, inputs, {});
        const Rows late = rows_in(plan[0], plan[1]);
        EXPECT_EQ(late, expected);

        HostTensor first(TensorType{DType::float32, {capacity + 7, columns}}),
            second(TensorType{DType::float32, {capacity, columns}});
        const auto fill = [&](HostTensor& part, const Rows& rows) {
          for (float& x : part.as<float>()) x = -5;
          for (std::size_t i = 0; i < rows.size(); ++i) {
            for (std::size_t c = 0; c < columns; ++c)
              part.as<float>()[i * columns + c] = static_cast<float>(rows[i]);
          }
        };
        fill(first, is_of_step ? kept : Rows());
        fill(second, late);
        std::vector<std::int32_t> index;  // each row twice, then an absent one
        for (std::size_t u = 0; u < 2 * unique.size(); ++u)
          index.push_back(static_cast<std::int32_t>(u % unique.size()));
        index.push_back(absent_id<std::int32_t>);
        const auto ids = static_cast<std::int64_t>(index.size());
        const std::vector<HostTensor> parts{first, second, plan[2],
                                            HostTensor::from<std::int32_t>({ids}, index)};
        const Graph lookup = single_node("GatherParts", parts, {});
        each_kernel(lookup, [&](const Kernel& other) {
          const HostTensor y = run_in_context(other, lookup, parts, {})[0];
          for (std::int64_t i = 0; i < ids * columns; ++i) {
            const std::int32_t u = index[static_cast<std::size_t>(i / columns)];
            const double row = u < 0 ? 0 : static_cast<double>(unique[static_cast<std::size_t>(u)]);
            ASSERT_EQ(y.number(i), row) << "id " << i / columns;
          }
        });
      });
    }
  }
}

}  // namespace
}  // namespace tandem::testing
