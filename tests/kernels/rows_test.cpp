// Look-ups, sums and updates of the rows of embedding tables against plain loops in double.
#include "kernels/cpu/rows/rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/isa.h"

namespace tandem::testing {
namespace {

using Indices = std::vector<std::int64_t>;
using Floats = std::vector<float>;

std::vector<Isa> instruction_sets() {
  const DeviceFacts facts{"cpu", processor_features(), 1};
  std::vector<Isa> sets{Isa::baseline};
  if (facts.has("avx2")) sets.push_back(Isa::avx2);
  if (facts.has("avx512")) sets.push_back(Isa::avx512);
  return sets;
}

/// 64-byte aligned, with guard bytes behind.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) : size_(bytes), memory_(bytes + 128, guard) {}
  void* data() {
    const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + (64 - start % 64) % 64;
  }
  bool whole() {
    const auto* end = static_cast<unsigned char*>(data()) + size_;
    for (int i = 0; i < 64; ++i) {
      if (end[i] != guard) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned char guard = 0xa5;
  std::size_t size_;
  std::vector<unsigned char> memory_;
};

struct Grouped {
  Indices rows;
  std::vector<std::int32_t> offsets, order, inverse;
};

std::map<std::int64_t, std::vector<std::int32_t>> expected_groups(const Indices& ids) {
  std::map<std::int64_t, std::vector<std::int32_t>> groups;
  for (std::size_t i = 0; i < ids.size(); ++i) groups[ids[i]].push_back(static_cast<int>(i));
  return groups;
}

/// Ids in `pieces` arrays, int64 and int32 in turn where `mixed`.
Grouped group(const Indices& ids, std::int64_t table_rows, int threads, int pieces = 1,
              bool mixed = false, bool wide_rows = true) {
  std::vector<IdArray> arrays;
  std::vector<std::vector<std::int32_t>> narrow(static_cast<std::size_t>(pieces));
  const std::size_t n = ids.size(), count = static_cast<std::size_t>(pieces);
  for (std::size_t p = 0; p < count; ++p) {
    const std::size_t begin = n * p / count, end = n * (p + 1) / count;
    const bool wide = !mixed || p % 2 == 0;
    for (std::size_t i = begin; i < end; ++i) narrow[p].push_back(static_cast<int>(ids[i]));
    const void* data = wide ? static_cast<const void*>(ids.data() + begin) : narrow[p].data();
    arrays.push_back({data, static_cast<std::int64_t>(end - begin), wide});
  }
  const std::size_t most = std::min(n, static_cast<std::size_t>(table_rows));
  constexpr std::int64_t mark = -77;
  Grouped result{Indices(most + 1, mark), std::vector<std::int32_t>(most + 2, -77),
                 std::vector<std::int32_t>(n + 1, -77), std::vector<std::int32_t>(n + 1, -77)};
  std::vector<std::int32_t> narrow_rows(most + 1, -77);
  Scratch scratch(unique_rows_scratch_bytes(static_cast<std::int64_t>(n), table_rows, threads));
  void* rows = wide_rows ? static_cast<void*>(result.rows.data()) : narrow_rows.data();
  const std::int64_t groups = unique_rows(
      arrays.data(), pieces, table_rows,
      {rows, wide_rows, result.offsets.data(), result.order.data(), result.inverse.data()},
      scratch.data(), threads);
  EXPECT_TRUE(scratch.whole());
  if (!wide_rows) result.rows.assign(narrow_rows.begin(), narrow_rows.end());
  // Nothing may be written behind the results.
  EXPECT_EQ(result.rows[most], mark);
  EXPECT_EQ(result.offsets[most + 1], -77);
  EXPECT_EQ(result.order[n], -77);
  EXPECT_EQ(result.inverse[n], -77);
  result.rows.resize(static_cast<std::size_t>(groups));
  result.offsets.resize(static_cast<std::size_t>(groups) + 1);
  result.order.resize(n);
  result.inverse.resize(n);
  return result;
}

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

Indices random_ids(std::int64_t n, std::int64_t table_rows, unsigned seed, bool skewed = false) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  Indices ids(static_cast<std::size_t>(n));
  for (auto& id : ids) {
    const double u = uniform(random), x = skewed ? u * u * u * u : u;
    id = std::min(table_rows - 1, static_cast<std::int64_t>(x * static_cast<double>(table_rows)));
  }
  return ids;
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
      // The larger of the counts makes an output that is written around the caches.
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

struct Gradients {
  std::int64_t columns;
  std::vector<Floats> floats;
  std::vector<std::vector<std::uint16_t>> halves;
  std::vector<GradientArray> arrays;
  std::vector<Floats> rows;  // as the sums see them, by position

  /// `sizes` positions in the arrays, rows `gap` elements apart.
  Gradients(const std::vector<std::int64_t>& sizes, std::int64_t width, bool bfloat16,
            std::int64_t gap, unsigned seed)
      : columns(width) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, 0.5f);
    for (const std::int64_t n : sizes) {
      const std::int64_t stride = columns + gap;
      Floats data(static_cast<std::size_t>(n * stride + 1));
      std::vector<std::uint16_t> half(data.size());
      for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = normal(random);
        std::uint32_t bits;
        std::memcpy(&bits, &data[i], 4);
        half[i] = static_cast<std::uint16_t>(bits >> 16);
        if (!bfloat16) continue;
        bits = bits >> 16 << 16;
        std::memcpy(&data[i], &bits, 4);
      }
      for (std::int64_t i = 0; i < n; ++i)
        rows.emplace_back(data.begin() + i * stride, data.begin() + i * stride + columns);
      floats.push_back(std::move(data));
      halves.push_back(std::move(half));
      const void* start =
          bfloat16 ? static_cast<const void*>(halves.back().data()) : floats.back().data();
      arrays.push_back({start, n, stride});
    }
  }

  RowGradients of(const Grouped& groups, bool bfloat16) const {
    return {arrays.data(),
            static_cast<int>(arrays.size()),
            columns,
            bfloat16,
            groups.offsets.data(),
            groups.order.data(),
            static_cast<std::int64_t>(groups.rows.size())};
  }

  std::vector<double> sum(const std::vector<std::int32_t>& positions) const {
    std::vector<double> total(static_cast<std::size_t>(columns), 0.0);
    for (const std::int32_t p : positions) {
      for (std::size_t c = 0; c < total.size(); ++c)
        total[c] += static_cast<double>(rows[static_cast<std::size_t>(p)][c]);
    }
    return total;
  }
};

const std::vector<std::int64_t> all_columns{1, 2, 7, 8, 16, 80, 100};

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
    // Elements of size 0.5: their sum of 100,000 has rounding of about sqrt(n) 0.5 2^-24.
    for (std::size_t c = 0; c < 16; ++c) EXPECT_NEAR(sum[c], expected[c], 1e-4);
  }
}

// One element of a table and its states, and what a published formula makes of it.
struct Element {
  double w, a, b;
};
struct Kind {
  std::string name;
  RowOptimizer kind;
  bool row_state;  // the first state has one element a row
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
  return {std::move(name), RowOptimizer::ftrl, false,
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
  all.push_back({"sgd", RowOptimizer::sgd, false,
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
    all.push_back({mindspore ? "lazy_adam of MindSpore" : "adam", RowOptimizer::adam, false,
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
  all.push_back({"adagrad", RowOptimizer::adagrad, false,
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
  all.push_back({"rowwise_adagrad", RowOptimizer::rowwise_adagrad, true,
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
  all.push_back({"group_ftrl", RowOptimizer::group_ftrl, false,
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

/// Float tables with 1 and with 3 threads, and the same in double.
struct Tables {
  Floats w, a, b;
  bool operator==(const Tables&) const = default;
};

void check_updates(const Kind& kind, Isa isa, std::int64_t columns, bool bfloat16,
                   const std::vector<Indices>& batches) {
  SCOPED_TRACE(kind.name + ", " + std::to_string(columns) + " columns, set " +
               std::to_string(static_cast<int>(isa)));
  const bool ftrl = kind.kind == RowOptimizer::ftrl || kind.kind == RowOptimizer::group_ftrl;
  const auto size = static_cast<std::size_t>(table_rows * columns);
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.0f, 0.1f);
  Tables one{Floats(size), Floats(size, ftrl ? 0.1f : 0.0f), Floats(size, 0.0f)};
  for (float& w : one.w) w = normal(random);
  const Tables start = one;
  Tables three = one;
  std::vector<std::vector<Element>> exact(static_cast<std::size_t>(table_rows));
  for (std::size_t r = 0; r < exact.size(); ++r) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(columns); ++c) {
      const std::size_t i = r * static_cast<std::size_t>(columns) + c;
      exact[r].push_back({one.w[i], one.a[i], one.b[i]});
    }
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
      update_rows(factors, {t->w.data(), {t->a.data(), t->b.data()}, groups.rows.data(), true}, g,
                  scratch.data(), isa, t == &one ? 1 : 3);
    }
    EXPECT_TRUE(scratch.whole());
    for (const auto& [row, positions] : expected_groups(ids)) {
      touched[static_cast<std::size_t>(row)] = true;
      kind.formula(step, exact[static_cast<std::size_t>(row)], gradients.sum(positions));
    }
  }
  ASSERT_TRUE(one == three);
  for (std::size_t r = 0; r < exact.size(); ++r) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(columns); ++c) {
      const std::size_t i = r * static_cast<std::size_t>(columns) + c;
      const std::size_t state = kind.row_state ? r : i;
      const Element& e = exact[r][c];
      if (!touched[r]) {
        ASSERT_EQ(0, std::memcmp(&one.w[i], &start.w[i], 4));
        ASSERT_EQ(0, std::memcmp(&one.a[state], &start.a[state], 4));
        ASSERT_EQ(0, std::memcmp(&one.b[i], &start.b[i], 4));
        continue;
      }
      ASSERT_NEAR(one.w[i], e.w, 3e-6 * (1 + std::fabs(e.w))) << "row " << r << " column " << c;
      if (kind.row_state && c > 0) continue;
      ASSERT_NEAR(one.a[state], e.a, 3e-6 * (1 + std::fabs(e.a)));
      ASSERT_NEAR(one.b[i], e.b, 2e-5 * (1 + std::fabs(e.b)));
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
