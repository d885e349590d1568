// Updates of the rows of tables by every optimizer against its published formula in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/rows/rows.h"
#include "kernels/shared/update_rules.h"
#include "tests/kernels/row_state.h"
#include "tests/kernels/rows_support.h"

namespace tandem::testing {
namespace {

// One element of a table and its states, and what a published formula makes of it.
struct Element {
  double w, a, b;
};
struct Kind {
  std::string name;
  RowOptimizer kind;
  std::function<RowStep(int step)> settings;
  // w, a, b and summed gradient of one row; step from 1
  std::function<void(int step, std::vector<Element>&, const std::vector<double>&)> formula;
};

constexpr double scale = 0.5;

Kind ftrl_kind(std::string name, FtrlSettings s, double lr) {
  const auto formula = [s, lr](int, std::vector<Element>& row, const std::vector<double>& sum) {
    const double two = s.dialect == FtrlDialect::mcmahan ? 1 : 2;
    for (std::size_t i = 0; i < row.size(); ++i) {
      auto& [w, n, z] = row[i];
      const double g = scale * sum[i];
      const double power = std::pow(n + g * g, -s.lr_power);
      const double sigma = (power - std::pow(n, -s.lr_power)) / lr;
      z += g + 2 * s.l2_shrinkage * w - sigma * w;
      n += g * g;
      const double sign = z > 0 ? 1 : -1;
      w = std::fabs(z) <= s.l1 ? 0 : -(z - sign * s.l1) / ((s.beta + power) / lr + two * s.l2);
    }
  };
  return {std::move(name), RowOptimizer::ftrl,
          [=](int) {
            RowStep step{.kind = RowOptimizer::ftrl};
            step.ftrl = ftrl_step<float>(s, lr, scale);
            return step;
          },
          formula};
}

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  const double lr = 0.05;
  all.push_back({"sgd", RowOptimizer::sgd,
                 [=](int step) {
                   RowStep s{.kind = RowOptimizer::sgd};
                   s.sgd = sgd_step<float>({.weight_decay = 0.01}, lr, step, scale);
                   return s;
                 },
                 [=](int, std::vector<Element>& row, const std::vector<double>& sum) {
                   for (std::size_t i = 0; i < row.size(); ++i)
                     row[i].w -= lr * (scale * sum[i] + 0.01 * row[i].w);
                 }});
  for (const bool mindspore : {false, true}) {
    // MindSpore: lr_t = lr sqrt(1 - beta2^t) / (1 - beta1^t), w -= lr_t m / (sqrt(v) + epsilon)
    all.push_back({mindspore ? "lazy_adam of MindSpore" : "adam", RowOptimizer::adam,
                   [=](int step) {
                     AdamSettings a{.epsilon = 1e-6, .onnx_epsilon = mindspore};
                     RowStep s{.kind = RowOptimizer::adam};
                     s.adam = adam_step<float>(a, lr, step, scale);
                     return s;
                   },
                   [=](int step, std::vector<Element>& row, const std::vector<double>& sum) {
                     const double c1 = 1 - std::pow(0.9, step), c2 = 1 - std::pow(0.999, step);
                     for (std::size_t i = 0; i < row.size(); ++i) {
                       auto& [w, m, v] = row[i];
                       const double g = scale * sum[i];
                       m = 0.9 * m + 0.1 * g;
                       v = 0.999 * v + 0.001 * g * g;
                       w -= mindspore ? lr * std::sqrt(c2) / c1 * m / (std::sqrt(v) + 1e-6)
                                      : lr * (m / c1) / (std::sqrt(v / c2) + 1e-6);
                     }
                   }});
  }
  all.push_back({"adagrad", RowOptimizer::adagrad,
                 [=](int step) {
                   RowStep s{.kind = RowOptimizer::adagrad};
                   s.adagrad = adagrad_step<float>(
                       {.epsilon = 1e-7, .weight_decay = 0.02, .lr_decay = 0.1}, lr, step, scale);
                   return s;
                 },
                 [=](int step, std::vector<Element>& row, const std::vector<double>& sum) {
                   for (std::size_t i = 0; i < row.size(); ++i) {
                     const double g = scale * sum[i] + 0.02 * row[i].w;
                     row[i].a += g * g;
                     row[i].w -= lr / (1 + (step - 1) * 0.1) * g / (std::sqrt(row[i].a) + 1e-7);
                   }
                 }});
  all.push_back({"rowwise_adagrad", RowOptimizer::rowwise_adagrad,
                 [=](int step) {
                   RowStep s{.kind = RowOptimizer::rowwise_adagrad};
                   s.adagrad = adagrad_step<float>({.epsilon = 1e-7, .weight_decay = 0.02}, lr,
                                                   step, scale);
                   return s;
                 },
                 [=](int, std::vector<Element>& row, const std::vector<double>& sum) {
                   double squares = 0;
                   std::vector<double> g(row.size());
                   for (std::size_t i = 0; i < row.size(); ++i) {
                     g[i] = scale * sum[i] + 0.02 * row[i].w;
                     squares += g[i] * g[i];
                   }
                   row[0].a += squares / static_cast<double>(row.size());
                   for (std::size_t i = 0; i < row.size(); ++i)
                     row[i].w -= lr * g[i] / (std::sqrt(row[0].a) + 1e-7);
                 }});
  all.push_back(ftrl_kind("ftrl", {.l1 = 0.1, .l2 = 0.2, .beta = 1}, lr));
  all.push_back(ftrl_kind(
      "ftrl of TensorFlow",
      {.l1 = 0.05, .l2 = 0.1, .l2_shrinkage = 0.01, .dialect = FtrlDialect::tensorflow}, lr));
  all.push_back(
      ftrl_kind("ftrl of MindSpore",
                {.l1 = 0.05, .l2 = 0.1, .lr_power = -0.7, .dialect = FtrlDialect::mindspore}, lr));
  const FtrlSettings lasso{.l1 = 0.05, .l2 = 0.1, .l21 = 0.3, .dialect = FtrlDialect::tensorflow};
  all.push_back({"group_ftrl", RowOptimizer::group_ftrl,
                 [=](int) {
                   RowStep s{.kind = RowOptimizer::group_ftrl};
                   s.ftrl = ftrl_step<float>(lasso, lr, scale);
                   return s;
                 },
                 [=](int, std::vector<Element>& row, const std::vector<double>& sum) {
                   double norm = 0;
                   std::vector<double> x(row.size());
                   for (std::size_t i = 0; i < row.size(); ++i) {
                     auto& [w, n, z] = row[i];
                     const double g = scale * sum[i];
                     z += g - (std::sqrt(n + g * g) - std::sqrt(n)) / lr * w;
                     n += g * g;
                     x[i] = std::min(std::max(z, -lasso.l1), lasso.l1) - z;
                     norm += x[i] * x[i];
                   }
                   norm = std::sqrt(norm);
                   const double limit = lasso.l21 * std::sqrt(static_cast<double>(row.size()));
                   for (std::size_t i = 0; i < row.size(); ++i) {
                     row[i].w = norm > limit ? (1 - limit / norm) * x[i] /
                                                   (std::sqrt(row[i].a) / lr + 2 * lasso.l2)
                                             : 0;
                   }
                 }});
  return all;
}

class UpdateRows : public ::testing::TestWithParam<int> {};

constexpr std::int64_t table_rows = 300;

struct Tables {
  Floats w;
  std::array<RowState, 2> states;
  bool operator==(const Tables&) const = default;
};

void check_updates(const Kind& kind, Isa isa, std::int64_t columns, bool bfloat16,
                   const std::vector<Indices>& batches) {
  SCOPED_TRACE(kind.name + ", " + std::to_string(columns) + " columns, set " +
               std::to_string(static_cast<int>(isa)));
  const bool ftrl = kind.kind == RowOptimizer::ftrl || kind.kind == RowOptimizer::group_ftrl;
  const RowLayout layout = layout_of(kind.kind);
  const auto size = static_cast<std::size_t>(table_rows * columns);
  const float first_state = ftrl ? 0.1f : 0.0f;
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.0f, 0.1f);
  // Float tables with 1 and with 3 threads, and the same in double.
  Tables one{Floats(size),
             {RowState(kind.kind, 0, table_rows, columns, first_state),
              RowState(kind.kind, 1, table_rows, columns, 0.0f)}};
  for (float& w : one.w) w = normal(random);
  const Tables start = one;
  Tables three = one;
  std::vector<std::vector<Element>> exact(static_cast<std::size_t>(table_rows));
  for (std::size_t r = 0; r < exact.size(); ++r) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(columns); ++c)
      exact[r].push_back({one.w[r * static_cast<std::size_t>(columns) + c], first_state, 0.0});
  }
  std::vector<bool> touched(static_cast<std::size_t>(table_rows), false);
  for (std::size_t k = 0; k < batches.size(); ++k) {
    const int step = static_cast<int>(k) + 1;
    const Indices& ids = batches[k];
    const auto n = static_cast<std::int64_t>(ids.size());
    const Grouped groups = group(ids, table_rows, 2);
    const std::vector<std::int64_t> sizes =
        k % 2 == 0 ? std::vector<std::int64_t>{n} : std::vector<std::int64_t>{n / 3, n - n / 3};
    const Gradients gradients(sizes, columns, bfloat16, k % 2 == 0 ? 0 : 3,
                              static_cast<unsigned>(k));
    const RowGradients g = gradients.of(groups, bfloat16);
    Scratch scratch(row_scratch_bytes(g.groups, columns, 3));
    const RowStep factors = kind.settings(step);
    for (Tables* t : {&one, &three}) {
      update_rows(
          factors,
          {t->w.data(), {t->states[0].data(), t->states[1].data()}, groups.rows.data(), true}, g,
          scratch.data(), isa, t == &one ? 1 : 3);
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
      for (int k = 0; k < layout.states; ++k) {
        const std::int64_t own = layout.state_columns(k, columns);
        if (c >= own) continue;
        const auto at = static_cast<std::size_t>(static_cast<std::int64_t>(r) * own + c);
        const auto state = static_cast<std::size_t>(k);
        const double wanted = k == 0 ? e.a : e.b, tolerance = k == 0 ? 3e-6 : 2e-5;
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
  const Kind kind = kinds()[static_cast<std::size_t>(GetParam())];
  for (const Isa isa : instruction_sets()) {
    for (const std::int64_t columns : all_columns)
      check_updates(kind, isa, columns, false, batches());
    check_updates(kind, isa, 1, true, batches());
    check_updates(kind, isa, 20, true, batches());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, UpdateRows, ::testing::Range(0, static_cast<int>(kinds().size())));

TEST(UpdateRowsTest, EveryKindHasAFormulaHere) {
  const std::vector<Kind> all = kinds();
  for (const RowOptimizerOp& known : row_optimizer_ops) {
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Kind& kind) {
      return kind.kind == known.kind;
    })) << known.op;
  }
}

TEST(UpdateRowsTest, SummedRowsNeedNoOrder) {
  const Indices ids = random_ids(5000, table_rows, 2);
  const Grouped groups = group(ids, table_rows, 1);
  const std::int64_t columns = 20;
  const Gradients gradients({5000}, columns, false, 0, 1);
  const RowGradients g = gradients.of(groups, false);
  Scratch scratch(row_scratch_bytes(g.groups, columns, 2));
  for (const Isa isa : instruction_sets()) {
    Floats sums(static_cast<std::size_t>(g.groups * columns));
    segment_sum(g, sums.data(), scratch.data(), isa, 2);
    const GradientArray packed{sums.data(), g.groups, columns};
    const RowGradients summed{&packed, 1, columns, false, nullptr, nullptr, g.groups};
    RowStep step{.kind = RowOptimizer::sgd};
    step.sgd = sgd_step<float>({}, 0.1, 1, 1.0);
    Floats w(static_cast<std::size_t>(table_rows * columns), 1.0f), v = w;
    std::vector<std::int32_t> narrow(groups.rows.begin(), groups.rows.end());
    update_rows(step, {w.data(), {}, groups.rows.data(), true}, g, scratch.data(), isa, 2);
    update_rows(step, {v.data(), {}, narrow.data(), false}, summed, scratch.data(), isa, 2);
    EXPECT_EQ(w, v);
    EXPECT_NE(w[0], 1.0f);
  }
}

}  // namespace
}  // namespace tandem::testing
