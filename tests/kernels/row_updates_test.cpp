// Updates of table rows by every optimizer in every instruction set, compared with its rule in
// double, which row_optimizers_test.cpp compares with independent numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "engine/optimizers/settings.h"
#include "kernels/cpu/rows/row_rule.h"
#include "tests/harness/update_settings.h"
#include "tests/kernels/plain_sgd.h"
#include "tests/kernels/rows_support.h"
#include "tests/kernels/stateful_rows.h"

namespace tandem::testing {
namespace {

// One element of a table and its states; a state with one number per row is in the first element.
struct Element {
  double w;
  double states[most_states];
};
struct KindWithFormula {
  std::string name;
  RowFactors factors;
  // Applies the rule in double to one row and its summed gradient; steps count from 1.
  std::function<void(int step, std::vector<Element>&, const std::vector<double>&)> formula;
};

constexpr double lr = 0.05, scale = 0.5;

template <class R>
void update_exactly(const R& rule, int number, std::vector<Element>& row,
                    const std::vector<double>& sum) {
  const auto step = rule.step(lr, number, scale);
  if constexpr (R::whole_row) {
    using Rule = typename R::Kind;
    double squares = 0, none = 0;
    double& row_state = R::row_state < 0 ? none : row[0].states[std::max(R::row_state, 0)];
    for (std::size_t i = 0; i < row.size(); ++i)
      squares += Rule::first(step, row[i].w, sum[i], row[i].states);
    const double factor = Rule::factor(step, squares, static_cast<double>(row.size()), row_state);
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i].w = Rule::last(step, row[i].w, sum[i], row[i].states, factor);
  } else if constexpr (!R::whole_tensor) {
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i].w = R::element(step, row[i].w, sum[i], row[i].states);
  }
}

std::vector<KindWithFormula> kinds_with_formulas() {
  std::vector<KindWithFormula> all;
  for (const UpdateSettings& tried : settings_to_try()) {
    if (find_update_kind(tried.op)->whole_tensor) continue;
    KindWithFormula kind{tried.name, row_factors(tried.op, tried.settings), {}};
    kind.formula =
        with_rule<double>(tried.op, tried.settings, [](const auto& rule) -> decltype(kind.formula) {
          return [rule](int step, std::vector<Element>& row, const std::vector<double>& sum) {
            update_exactly(rule, step, row, sum);
          };
        });
    all.push_back(std::move(kind));
  }
  return all;
}

class UpdateRows : public ::testing::TestWithParam<int> {};

constexpr std::int64_t updated_table_rows = 300;

struct Tables {
  Floats w;
  std::vector<RowState> states;
  bool operator==(const Tables&) const = default;
};

void check_updates(const KindWithFormula& kind, Isa isa, std::int64_t columns, bool bfloat16,
                   const std::vector<Indices>& batches) {
  SCOPED_TRACE(kind.name + ", " + std::to_string(columns) + " columns, set " +
               std::to_string(static_cast<int>(isa)));
  const RowLayout& layout = kind.factors.layout;
  const auto size = static_cast<std::size_t>(updated_table_rows * columns);
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.0f, 0.1f);
  // Float tables with 1 and with 3 threads, and the same in double.
  Tables one{Floats(size), row_states(layout, updated_table_rows, columns)};
  for (float& w : one.w) w = normal(random);
  const Tables start = one;
  Tables three = one;
  std::vector<std::vector<Element>> exact(static_cast<std::size_t>(updated_table_rows));
  for (std::size_t r = 0; r < exact.size(); ++r) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(columns); ++c) {
      Element element{one.w[r * static_cast<std::size_t>(columns) + c], {}};
      for (int k = 0; k < most_states; ++k)
        element.states[k] = static_cast<double>(start_of_state(k));
      exact[r].push_back(element);
    }
  }
  std::vector<bool> touched(static_cast<std::size_t>(updated_table_rows), false);
  for (std::size_t k = 0; k < batches.size(); ++k) {
    const int step = static_cast<int>(k) + 1;
    const Indices& ids = batches[k];
    const auto n = static_cast<std::int64_t>(ids.size());
    const Grouped groups = group(ids, updated_table_rows, 2);
    const std::vector<std::int64_t> sizes =
        k % 2 == 0 ? std::vector<std::int64_t>{n} : std::vector<std::int64_t>{n / 3, n - n / 3};
    const Gradients gradients(sizes, columns, bfloat16, k % 2 == 0 ? 0 : 3,
                              static_cast<unsigned>(k));
    const RowGradients g = gradients.of(groups, bfloat16);
    Scratch scratch(row_scratch_bytes(g.groups, columns, 3));
    const RowStep factors = kind.factors.step(lr, step, scale);
    for (Tables* t : {&one, &three}) {
      RowTable table{.weights = t->w.data(), .rows = groups.rows.data()};
      for (std::size_t s = 0; s < most_states; ++s) table.states[s] = t->states[s].data();
      update_rows(factors, table, g, scratch.data(), isa, t == &one ? 1 : 3);
    }
    EXPECT_TRUE(scratch.whole());
    for (const auto& [row, positions] : expected_groups(ids)) {
      touched[static_cast<std::size_t>(row)] = true;
      kind.formula(step, exact[static_cast<std::size_t>(row)], gradients.sum(positions));
    }
  }
  ASSERT_TRUE(one == three);
  for (const RowState& state : one.states) ASSERT_TRUE(state.ends_where_it_should());
  for (std::size_t r = 0; r < exact.size(); ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto i = static_cast<std::size_t>(static_cast<std::int64_t>(r) * columns + c);
      const Element& e = exact[r][static_cast<std::size_t>(c)];
      if (touched[r])
        ASSERT_NEAR(one.w[i], e.w, 3e-6 * (1 + std::fabs(e.w))) << "row " << r << " column " << c;
      else
        ASSERT_EQ(0, std::memcmp(&one.w[i], &start.w[i], 4));
      for (int k = 0; k < most_states; ++k) {
        if (!layout.has(k)) continue;
        const std::int64_t own = layout.state_columns(k, columns);
        if (c >= own) continue;
        const auto at = static_cast<std::size_t>(static_cast<std::int64_t>(r) * own + c);
        const auto state = static_cast<std::size_t>(k);
        const double wanted = e.states[k], tolerance = k == 0 ? 3e-6 : 2e-5;
        if (touched[r])
          ASSERT_NEAR(one.states[state][at], wanted, tolerance * (1 + std::fabs(wanted)));
        else
          ASSERT_EQ(0, std::memcmp(&one.states[state][at], &start.states[state][at], 4));
      }
    }
  }
}

// Duplicates, an empty batch, all ids equal, all different; row 0 and rows above 290 untouched.
std::vector<Indices> batches() {
  std::vector<Indices> all;
  for (unsigned k = 0; k < 12; ++k) {
    Indices ids = random_ids(500, 290, k, k % 2 == 1);
    for (auto& id : ids) id = std::max<std::int64_t>(id, 1);
    all.push_back(ids);
  }
  all.emplace_back();
  all.emplace_back(400, 5);
  Indices different(250);
  for (std::size_t i = 0; i < different.size(); ++i)
    different[i] = static_cast<std::int64_t>(1 + i * 37 % 250);
  all.push_back(different);
  for (unsigned k = 20; k < 24; ++k) all.push_back(random_ids(30, 1, k));
  for (auto& ids : all) {
    for (auto& id : ids) id = std::max<std::int64_t>(id, 1);
  }
  return all;
}

TEST_P(UpdateRows, AgreesWithTheFormula) {
  const KindWithFormula kind = kinds_with_formulas()[static_cast<std::size_t>(GetParam())];
  for (const Isa isa : instruction_sets()) {
    for (const std::int64_t columns : all_columns)
      check_updates(kind, isa, columns, false, batches());
    check_updates(kind, isa, 1, true, batches());
    check_updates(kind, isa, 20, true, batches());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, UpdateRows,
                         ::testing::Range(0, static_cast<int>(kinds_with_formulas().size())));

TEST(UpdateRowsTest, SummedRowsNeedNoOrder) {
  const Indices ids = random_ids(5000, updated_table_rows, 2);
  const Grouped groups = group(ids, updated_table_rows, 1);
  const std::int64_t columns = 20;
  const Gradients gradients({5000}, columns, false, 0, 1);
  const RowGradients g = gradients.of(groups, false);
  Scratch scratch(row_scratch_bytes(g.groups, columns, 2));
  for (const Isa isa : instruction_sets()) {
    Floats sums(static_cast<std::size_t>(g.groups * columns));
    segment_sum(g, sums.data(), scratch.data(), isa, 2);
    const GradientArray packed{sums.data(), g.groups, columns};
    const RowGradients summed{&packed, 1, columns, false, nullptr, nullptr, g.groups};
    const RowStep step = plain_sgd(0.1);
    Floats w(static_cast<std::size_t>(updated_table_rows * columns), 1.0f), v = w;
    std::vector<std::int32_t> narrow(groups.rows.begin(), groups.rows.end());
    update_rows(step, {w.data(), {}, groups.rows.data(), true}, g, scratch.data(), isa, 2);
    update_rows(step, {v.data(), {}, narrow.data(), false}, summed, scratch.data(), isa, 2);
    EXPECT_EQ(w, v);
    EXPECT_NE(w[0], 1.0f);
  }
}

}  // namespace
}  // namespace tandem::testing
