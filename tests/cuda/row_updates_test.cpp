// Updates of a table's rows on a GPU, compared with the double reference over several steps. Also
// sums of gradients by row.
#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>

#include "engine/graph/split_float.h"
#include "engine/operators/tables/rows.h"
#include "tests/cuda/support/row_gpu.h"
#include "tests/harness/update_settings.h"

namespace tandem::testing {
namespace {

using Ids = std::vector<std::int64_t>;

struct RowKind : UpdateSettings {
  /// Larger for FTRL, which divides a difference of two powers by the learning rate, 0.05.
  double tolerance() const { return settings.find("l1") ? 5e-6 : 1e-6; }
};

std::vector<RowKind> row_kinds() {
  std::vector<RowKind> all;
  for (UpdateSettings& tried : settings_to_try()) {
    if (!find_update_kind(tried.op)->whole_tensor) all.push_back({std::move(tried)});
  }
  return all;
}

/// Master and states of a table; states that the settings do not need are left out. The mean of
/// squares is larger than the square of the mean.
Tensors table_of(const RowKind& kind, std::int64_t rows, std::int64_t columns, unsigned seed) {
  const Shape shape{rows, columns};
  Tensors table{uniform(shape, seed)};
  const UpdateKind& known = *find_update_kind(kind.op);
  for (std::size_t k = 0; k < known.states.size(); ++k) {
    table.push_back(known.keeps_state(k, kind.settings, shape)
                        ? uniform(known.state_shape(k, shape), seed + 1 + static_cast<unsigned>(k),
                                  k == 0 ? 0.5 : 0.1, k == 0 ? 1 : 0.5)
                        : no_tensor());
  }
  return table;
}

/// The unique, order, offsets and count of ids that are all in the table.
Tensors groups_of(const Ids& ids, std::int64_t rows) {
  std::map<std::int64_t, std::vector<std::int32_t>> places;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != absent_id<std::int64_t>) places[ids[i]].push_back(static_cast<std::int32_t>(i));
  }
  const auto n = static_cast<std::int64_t>(ids.size()), capacity = std::min(n, rows);
  HostTensor unique(TensorType{DType::int64, {capacity}}), order(TensorType{DType::int32, {n}});
  HostTensor offsets(TensorType{DType::int32, {capacity + 1}});
  std::fill(unique.as<std::int64_t>().begin(), unique.as<std::int64_t>().end(), -1);
  std::fill(order.as<std::int32_t>().begin(), order.as<std::int32_t>().end(), -1);
  std::size_t group = 0, at = 0;
  for (const auto& [row, positions] : places) {
    unique.as<std::int64_t>()[group] = row;
    offsets.as<std::int32_t>()[group++] = static_cast<std::int32_t>(at);
    for (const std::int32_t position : positions) order.as<std::int32_t>()[at++] = position;
  }
  for (std::size_t u = group; u <= static_cast<std::size_t>(capacity); ++u)
    offsets.as<std::int32_t>()[u] = static_cast<std::int32_t>(at);
  return {unique, order, offsets, number_of(static_cast<std::int32_t>(group))};
}

/// Several lookups of one table, one after the other.
struct Batch {
  std::string name;
  Ids ids;
  Ints positions;  // number of positions in each lookup
  Ints bags;       // empty: no bags
  Ints weighted;
  std::int64_t rows;  // rows of the table

  /// Gradients so small that the sum of a row, rounded at each addition, stays precise.
  Tensors gradients(std::int64_t columns, unsigned seed, DType dtype = DType::float32) const {
    std::ptrdiff_t longest = 1;
    for (const std::int64_t id : ids)
      longest = std::max(longest, std::count(ids.begin(), ids.end(), id));
    const double most = 1.0 / static_cast<double>(longest);
    Tensors dy, weights;
    for (std::size_t k = 0; k < positions.size(); ++k) {
      const std::int64_t bag = bags.empty() ? 1 : bags[k];
      const auto own = seed + static_cast<unsigned>(k);
      dy.push_back(uniform({positions[k] / bag, columns}, own, -most, most, dtype));
      if (!weighted.empty() && weighted[k] != 0)
        weights.push_back(uniform({positions[k]}, own + 50, -1, 1, dtype));
    }
    dy.insert(dy.end(), weights.begin(), weights.end());
    return dy;
  }
  void describe(Attributes& settings) const {
    if (bags.empty()) return;
    settings.set("bags", bags);
    settings.set("weighted", weighted);
  }
};

Ids random_ids(std::int64_t count, std::int64_t rows, unsigned seed, double skew) {
  std::mt19937_64 random(seed);
  Ids ids(static_cast<std::size_t>(count));
  for (std::int64_t& id : ids) {
    const double u = static_cast<double>(random() >> 11) * 0x1p-53;
    id = static_cast<std::int64_t>(std::pow(u, skew) * static_cast<double>(rows));
  }
  return ids;
}

std::vector<Batch> batches() {
  std::vector<Batch> all;
  all.push_back({"duplicates", random_ids(50, 20, 1, 1), {30, 20}, {}, {}, 20});
  all.push_back({"all_equal", Ids(300, 4), {300}, {}, {}, 9});
  Ids different(24);
  for (std::size_t i = 0; i < different.size(); ++i)
    different[i] = static_cast<std::int64_t>(i * 7 % 24);
  all.push_back({"all_different", different, {24}, {}, {}, 30});
  // Several rows longer than a chunk among short ones.
  all.push_back({"skewed", random_ids(900, 40, 2, 3), {100, 500, 300}, {}, {}, 40});
  all.push_back({"empty", {}, {0}, {}, {}, 5});
  Ids absent = random_ids(40, 8, 3, 1);
  for (std::size_t i = 0; i < absent.size(); i += 3) absent[i] = absent_id<std::int64_t>;
  all.push_back({"absent", absent, {40}, {}, {}, 8});
  all.push_back({"all_absent", Ids(70, absent_id<std::int64_t>), {70}, {}, {}, 100});
  all.push_back({"bags", random_ids(240, 12, 4, 2), {120, 90, 30}, {4, 9, 1}, {1, 0, 1}, 12});
  // Chunks that begin and end exactly where rows do.
  Ids exact(64, 1);
  exact.insert(exact.end(), 64, 2);
  exact.insert(exact.end(), 128, 3);
  exact.insert(exact.end(), 65, 5);
  all.push_back({"whole_chunks", exact, {321}, {}, {}, 7});
  return all;
}

Tensors row_inputs(const Tensors& table, const HostTensor& tail, const Tensors& groups,
                   const Tensors& step, const Tensors& gradients) {
  Tensors inputs = table;
  if (is_given(tail)) inputs.push_back(tail);
  for (const Tensors* more : {&groups, &step, &gradients})
    inputs.insert(inputs.end(), more->begin(), more->end());
  return inputs;
}

Tensors widened_table(Tensors table) {
  for (HostTensor& tensor : table) {
    if (is_given(tensor)) tensor = tensor.converted(DType::float64);
  }
  return table;
}

class RowUpdates : public ::testing::TestWithParam<RowKind> {
 protected:
  /// Compares steps on the GPU and in double; if `lazy`, rows without ids must keep their bits.
  void check(const Batch& batch, std::int64_t columns, bool lazy, DType dtype, int steps) {
    SCOPED_TRACE(batch.name + ", " + std::to_string(columns) + " columns" +
                 (lazy ? "" : ", every row") + ", " + std::string(name_of(dtype)));
    const RowKind& kind = GetParam();
    Attributes settings = kind.settings;
    settings.set("op", kind.op);
    settings.set("lazy", std::int64_t{lazy});
    batch.describe(settings);
    Tensors own = table_of(kind, batch.rows, columns, 3), exact = widened_table(own);
    const Tensors start = own, groups = groups_of(batch.ids, batch.rows);
    for (int step = 1; step <= steps; ++step) {
      const Tensors scalar = step_scalars(0.05f, step, 0.5f, false);
      const Tensors gradients = batch.gradients(columns, static_cast<unsigned>(20 + step), dtype);
      const auto inputs = [&](const Tensors& table) {
        return row_inputs(table, no_tensor(), groups, scalar, gradients);
      };
      const Tensors results = gpu.run("RowsUpdate", inputs(own), settings);
      const Tensors expected = on_reference("RowsUpdate", inputs(exact), settings);
      for (std::size_t k = 0; k < own.size(); ++k) {
        if (!is_given(own[k])) continue;
        EXPECT_EQ(compare(results[k], expected[k], kind.tolerance()), "")
            << "result " << k << " of " << step;
        own[k] = results[k];
        exact[k] = expected[k];
      }
    }
    for (std::size_t k = 0; lazy && k < own.size(); ++k) {
      if (!is_given(own[k])) continue;
      const auto bytes = own[k].bytes() / static_cast<std::size_t>(batch.rows);
      for (std::int64_t row = 0; row < batch.rows; ++row) {
        if (std::count(batch.ids.begin(), batch.ids.end(), row) > 0) continue;
        const std::size_t at = static_cast<std::size_t>(row) * bytes;
        EXPECT_EQ(std::memcmp(static_cast<const char*>(own[k].data()) + at,
                              static_cast<const char*>(start[k].data()) + at, bytes),
                  0)
            << "row " << row;
      }
    }
  }

  RowGpu gpu{{.late = true}};
};

TEST_P(RowUpdates, FollowTheReferenceForSeveralSteps) {
  for (const Batch& batch : batches()) {
    for (const std::int64_t columns : {1, 4, 7, 64}) {
      check(batch, columns, true, DType::float32, 3);
    }
  }
}

// Rows wider than a warp's and than a block's columns.
TEST_P(RowUpdates, OfWideTables) {
  for (const Batch& batch : batches()) {
    if (batch.name != "duplicates" && batch.name != "skewed") continue;
    for (const std::int64_t columns : {130, 300, 1025, 1028, 2052}) {
      check(batch, columns, true, DType::float32, 2);
    }
  }
}

TEST_P(RowUpdates, OfEveryRow) {
  for (const Batch& batch : batches()) {
    for (const std::int64_t columns : {1, 12, 260}) {
      check(batch, columns, false, DType::float32, 2);
    }
  }
}

TEST_P(RowUpdates, FromGradientsOfSixteenBits) {
  for (const Batch& batch : batches()) {
    check(batch, 5, true, DType::bfloat16, 2);
    check(batch, 8, true, DType::float16, 2);
  }
}

TEST_P(RowUpdates, ThatAreSkippedChangeNothing) {
  const RowKind& kind = GetParam();
  Attributes settings = kind.settings;
  settings.set("op", kind.op);
  for (const std::int64_t lazy : {0, 1}) {
    settings.set("lazy", lazy);
    for (const Batch& batch : batches()) {
      Attributes own = settings;
      batch.describe(own);
      const Tensors table = table_of(kind, batch.rows, 6, 3);
      const Tensors results =
          gpu.run("RowsUpdate",
                  row_inputs(table, no_tensor(), groups_of(batch.ids, batch.rows),
                             step_scalars(0.1f, 2, 1, true), batch.gradients(6, 9)),
                  own);
      for (std::size_t k = 0; k < table.size(); ++k)
        EXPECT_TRUE(!is_given(table[k]) || same_bits(results[k], table[k])) << batch.name;
    }
  }
}

// The halves of a split master change as a float32 would, which the reference updates.
TEST_P(RowUpdates, OfSplitTables) {
  const RowKind& kind = GetParam();
  for (const Batch& batch : batches()) {
    for (const std::int64_t columns : {1, 3, 8, 68}) {
      for (const std::int64_t lazy : {0, 1}) {
        SCOPED_TRACE(batch.name + ", " + std::to_string(columns) + " columns");
        Attributes settings = kind.settings;
        settings.set("op", kind.op);
        settings.set("lazy", lazy);
        batch.describe(settings);
        const Tensors table = table_of(kind, batch.rows, columns, 3);
        const std::int64_t size = table[0].type().elements();
        HostTensor top(TensorType{DType::bfloat16, table[0].shape()});
        HostTensor tail(TensorType{DType::int16, table[0].shape()});
        split_floats(static_cast<const float*>(table[0].data()),
                     static_cast<std::uint16_t*>(top.data()),
                     static_cast<std::int16_t*>(tail.data()), size);
        const Tensors groups = groups_of(batch.ids, batch.rows);
        const Tensors scalar = step_scalars(0.05f, 3, 0.5f, false);
        const Tensors gradients = batch.gradients(columns, 31);
        const Tensors expected = on_reference(
            "RowsUpdate", row_inputs(widened_table(table), no_tensor(), groups, scalar, gradients),
            settings);
        Attributes split = settings;
        split.set("split", std::int64_t{1});
        Tensors halves = table;
        halves[0] = top;
        const Tensors results =
            gpu.run("RowsUpdate", row_inputs(halves, tail, groups, scalar, gradients), split);
        HostTensor joined(table[0].type());
        join_floats(static_cast<const std::uint16_t*>(results[0].data()),
                    static_cast<const std::int16_t*>(results.back().data()),
                    static_cast<float*>(joined.data()), size);
        EXPECT_EQ(compare(joined, expected[0], kind.tolerance()), "");
        for (std::size_t k = 1; k < table.size(); ++k) {
          if (!is_given(table[k])) continue;
          EXPECT_EQ(compare(results[k], expected[k], kind.tolerance()), "") << "result " << k;
        }
      }
    }
  }
}

// A table, a state and gradients at addresses that are not multiples of four elements' size.
TEST_P(RowUpdates, TakeOperandsThatBeginAnywhere) {
  const RowKind& kind = GetParam();
  const Batch batch = batches()[0];
  Attributes settings = kind.settings;
  settings.set("op", kind.op);
  const Tensors table = table_of(kind, batch.rows, 8, 3);
  const auto inputs = [&](const Tensors& own) {
    return row_inputs(own, no_tensor(), groups_of(batch.ids, batch.rows),
                      step_scalars(0.05f, 3, 0.5f, false), batch.gradients(8, 31));
  };
  std::vector<Layout> layouts;
  for (const HostTensor& input : inputs(table)) {
    Layout layout = is_given(input) ? row_major(input.shape()) : Layout{};
    if (input.shape().size() == 2) layout.offset = 1;
    layouts.push_back(layout);
  }
  const Tensors results = gpu.run("RowsUpdate", inputs(table), settings, layouts);
  const Tensors expected = on_reference("RowsUpdate", inputs(widened_table(table)), settings);
  for (std::size_t k = 0; k < table.size(); ++k) {
    if (!is_given(table[k])) continue;
    EXPECT_EQ(compare(results[k], expected[k], kind.tolerance()), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, RowUpdates, ::testing::ValuesIn(row_kinds()),
                         [](const auto& info) { return info.param.name; });

TEST(RowsOfDenseGradients, FollowTheReferenceForSeveralSteps) {
  RowGpu gpu;
  for (const RowKind& kind : row_kinds()) {
    if (!find_update_kind(kind.op)->whole_row) continue;
    for (const std::int64_t columns : {1, 4, 30, 129, 1028}) {
      for (const DType dtype : {DType::float32, DType::bfloat16}) {
        SCOPED_TRACE(kind.name + " of " + std::to_string(columns));
        Tensors own = table_of(kind, 21, columns, 3), exact = widened_table(own);
        for (int step = 1; step <= 3; ++step) {
          const HostTensor grad = uniform({21, columns}, static_cast<unsigned>(step), -1, 1, dtype);
          const auto inputs = [&](const Tensors& table) {
            Tensors all = table;
            all.insert(all.begin() + 1, grad);
            const Tensors scalar = step_scalars(0.05f, step, 0.5f, false);
            all.insert(all.end(), scalar.begin(), scalar.end());
            return all;
          };
          const Tensors results = gpu.run(kind.op, inputs(own), kind.settings);
          const Tensors expected = on_reference(kind.op, inputs(exact), kind.settings);
          for (std::size_t k = 0; k < own.size(); ++k) {
            if (!is_given(own[k])) continue;
            EXPECT_EQ(compare(results[k], expected[k], kind.tolerance()), "") << "result " << k;
            own[k] = results[k];
            exact[k] = expected[k];
          }
        }
      }
    }
  }
}

TEST(SumsOfRows, AddSquaresOfRows) {
  RowGpu gpu({.late = true});
  for (const Batch& batch : batches()) {
    for (const std::int64_t columns : {1, 4, 9, 1028}) {
      for (const DType dtype : {DType::float32, DType::float16}) {
        SCOPED_TRACE(batch.name + ", " + std::to_string(columns) + " columns");
        const Tensors groups = groups_of(batch.ids, batch.rows);
        Tensors inputs{groups[1], groups[2], groups[3]}, exact = inputs;
        for (const HostTensor& x : batch.gradients(columns, 7, dtype)) {
          inputs.push_back(x);
          exact.push_back(x.converted(DType::float64));
        }
        Attributes settings{{"columns", columns}};
        batch.describe(settings);
        const double expected = on_reference("RowsSumOfSquares", exact, settings)[0].number(0);
        const double sum = gpu.run("RowsSumOfSquares", inputs, settings)[0].number(0);
        // A row's terms, up to 1 in all, may cancel in its sum.
        EXPECT_NEAR(sum, expected, 1e-6 * std::max(expected, 1e-3));
      }
    }
  }
}

TEST(SumsOfRows, MakeDenseGradientsOfLookups) {
  RowGpu gpu;
  for (const Batch& batch : batches()) {
    for (const std::int64_t columns : {1, 4, 6, 260}) {
      for (const DType dtype : {DType::float32, DType::bfloat16}) {
        SCOPED_TRACE(batch.name + ", " + std::to_string(columns) + " columns");
        const auto count = static_cast<std::int64_t>(batch.ids.size());
        const HostTensor ids = HostTensor::from<std::int64_t>({count}, batch.ids);
        const HostTensor dy = uniform({count, columns}, 3, -1, 1, dtype);
        const Attributes shape{{"shape", Ints{batch.rows, columns}}};
        const double tolerance = dtype == DType::float32 ? 1e-6 : 4e-3;
        EXPECT_EQ(compare(gpu.run("GatherGrad", {dy, ids}, shape)[0],
                          on_reference("GatherGrad", {dy.converted(DType::float64), ids}, shape)[0],
                          tolerance),
                  "");
        if (count % 10 != 0 || count == 0) continue;
        const HostTensor bags = ids.reshaped({count / 10, 10});
        const HostTensor short_dy = uniform({count / 10, columns}, 4, -1, 1, dtype);
        const HostTensor weights = uniform({count / 10, 10}, 5, -1, 1, dtype);
        for (const bool weighted : {false, true}) {
          Tensors inputs{short_dy, bags}, exact{short_dy.converted(DType::float64), bags};
          if (weighted) {
            inputs.push_back(weights);
            exact.push_back(weights.converted(DType::float64));
          }
          EXPECT_EQ(compare(gpu.run("EmbeddingBagGrad", inputs, shape)[0],
                            on_reference("EmbeddingBagGrad", exact, shape)[0], tolerance),
                    "");
        }
      }
    }
  }
}

TEST(SumsOfRows, AreTheSameOnEveryRun) {
  RowGpu gpu;
  const Batch batch = batches()[3];
  const HostTensor ids =
      HostTensor::from<std::int64_t>({static_cast<std::int64_t>(batch.ids.size())}, batch.ids);
  const HostTensor dy = uniform({static_cast<std::int64_t>(batch.ids.size()), 16}, 3);
  const Attributes shape{{"shape", Ints{batch.rows, 16}}};
  const HostTensor first = gpu.run("GatherGrad", {dy, ids}, shape)[0];
  RowGpu small({.properties = {.name = "small",
                               .major = 8,
                               .minor = 0,
                               .multiprocessors = 2,
                               .memory_bytes = 1u << 30,
                               .shared_bytes = 48u << 10}});
  EXPECT_TRUE(same_bits(small.run("GatherGrad", {dy, ids}, shape)[0], first))
      << "sums do not depend on the number of multiprocessors";
}

TEST(SumsOfRows, SayWhatTheyDoNotTake) {
  RowGpu gpu;
  const RowKind kind = row_kinds()[0];
  Batch batch{"many", Ids(81, 1), Ints(81, 1), {}, {}, 4};
  Attributes settings = kind.settings;
  settings.set("op", kind.op);
  const auto inputs = [&](const Tensors& table) {
    return row_inputs(table, no_tensor(), groups_of(batch.ids, batch.rows),
                      step_scalars(0.05f, 3, 0.5f, false), batch.gradients(2, 31));
  };
  const Tensors table = table_of(kind, 4, 2, 3);
  EXPECT_EQ(gpu.refusal("RowsUpdate", inputs(table), settings),
            "cuda.rows_update: more than 80 lookups of one table");
  batch = batches()[0];
  EXPECT_EQ(gpu.refusal("RowsUpdate", inputs(widened_table(table_of(kind, 20, 2, 3))), settings),
            "cuda.rows_update: element type float64");
}

}  // namespace
}  // namespace tandem::testing
