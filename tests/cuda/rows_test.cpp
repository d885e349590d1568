// Lookups and groups of ids on a GPU have the same bits as on the reference kernels.
#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/operators/tables/rows.h"
#include "engine/operators/tables/split_ids.h"
#include "tests/cuda/support/row_gpu.h"

namespace tandem::testing {
namespace {

using Ids = std::vector<std::int64_t>;

/// Absent ids become the absent id of the type.
HostTensor ids_tensor(const Ids& ids, DType dtype = DType::int64, Shape shape = {}) {
  HostTensor tensor(
      TensorType{dtype, shape.empty() ? Shape{static_cast<std::int64_t>(ids.size())} : shape});
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (dtype == DType::int64) {
      tensor.as<std::int64_t>()[i] = ids[i];
    } else {
      tensor.as<std::int32_t>()[i] = ids[i] == absent_id<std::int64_t>
                                         ? absent_id<std::int32_t>
                                         : static_cast<std::int32_t>(ids[i]);
    }
  }
  return tensor;
}

enum class Mix { random, few, equal, different, absent, all_absent, negative };

Ids make_ids(Mix mix, std::int64_t count, std::int64_t rows, unsigned seed) {
  std::mt19937_64 random(seed);
  Ids ids(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto row = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(rows));
    if (mix == Mix::few) row %= 3;
    if (mix == Mix::equal) row = rows / 2;
    if (mix == Mix::different) row = (static_cast<std::int64_t>(i) * 7 + 3) % rows;
    if (mix == Mix::negative && i % 2 == 0) row -= rows;
    const bool absent = (mix == Mix::absent && i % 3 == 1) || mix == Mix::all_absent;
    ids[i] = absent ? absent_id<std::int64_t> : row;
  }
  return ids;
}

void expect_same(const Tensors& results, const Tensors& expected) {
  ASSERT_EQ(results.size(), expected.size());
  for (std::size_t k = 0; k < results.size(); ++k) {
    EXPECT_TRUE(same_bits(results[k], expected[k])) << "result " << k;
  }
}

TEST(RowsOnGpus, GroupIdsAsTheReferenceDoes) {
  RowGpu gpu;
  struct Size {
    std::int64_t ids, rows;
  };
  // One block; one pass and several; more tiles than each block sums itself; row numbers of 33
  // bits.
  const Size sizes[] = {{1, 1},      {31, 7},          {33, 255},        {600, 256},
                        {4095, 300}, {4096, 5000},     {4097, 256},      {5000, 70000},
                        {9000, 40},  {6001, 16777215}, {300, 1ll << 33}, {140001, 1000}};
  for (const Size& size : sizes) {
    for (const Mix mix : {Mix::random, Mix::few, Mix::equal, Mix::different, Mix::absent,
                          Mix::all_absent, Mix::negative}) {
      if (size.ids > 100000 && mix != Mix::random && mix != Mix::equal) continue;
      SCOPED_TRACE(std::to_string(size.ids) + " ids of " + std::to_string(size.rows) +
                   " rows, mix " + std::to_string(static_cast<int>(mix)));
      const Tensors ids{ids_tensor(make_ids(mix, size.ids, size.rows, 3))};
      const Attributes settings{{"rows", size.rows}};
      expect_same(gpu.run("UniqueIndices", ids, settings),
                  on_reference("UniqueIndices", ids, settings));
    }
  }
}

TEST(RowsOnGpus, GroupIdsOfSeveralLookups) {
  RowGpu gpu({.late = true});
  for (const std::int64_t each : {0, 3, 700, 2500}) {
    SCOPED_TRACE(each);
    Tensors ids;
    for (unsigned k = 0; k < 7; ++k) {
      const std::int64_t count = k == 2 ? 0 : each + k;
      ids.push_back(ids_tensor(make_ids(k % 2 == 0 ? Mix::absent : Mix::negative, count, 900, k),
                               k % 3 == 0 ? DType::int32 : DType::int64));
    }
    const Attributes settings{{"rows", std::int64_t{900}}};
    expect_same(gpu.run("UniqueIndices", ids, settings),
                on_reference("UniqueIndices", ids, settings));
  }
  const Tensors none{ids_tensor({}), ids_tensor({}, DType::int32)};
  const Attributes settings{{"rows", std::int64_t{9}}};
  expect_same(gpu.run("UniqueIndices", none, settings),
              on_reference("UniqueIndices", none, settings));
  const Tensors many(65, ids_tensor({1}));
  EXPECT_EQ(gpu.refusal("UniqueIndices", many, settings),
            "cuda.unique_indices: more than 64 lookups of one table");
}

TEST(RowsOnGpus, AFewIdsAreGroupedByOneLaunch) {
  RowGpu gpu;
  const Attributes settings{{"rows", std::int64_t{100000}}};
  gpu.runtime->clear_calls();
  gpu.run("UniqueIndices", {ids_tensor(make_ids(Mix::random, 4096, 100000, 1))}, settings);
  EXPECT_EQ(gpu.launches(), 1);
  gpu.runtime->clear_calls();
  gpu.run("UniqueIndices", {ids_tensor(make_ids(Mix::random, 5000, 100000, 1))}, settings);
  EXPECT_EQ(gpu.launches(), 3 * 2 + 2);  // three passes for 17 bits
}

// Both ways to group, and lookups: the nearest row is used, and the id is reported.
TEST(RowsOnGpus, IdsOutsideOfTheTableAreReported) {
  RowGpu gpu;
  const HostTensor table = uniform({10, 4}, 1);
  for (const std::int64_t count : {5, 4500}) {
    for (const std::int64_t bad : {10, 11, -11, 1 << 30}) {
      for (const DType dtype : {DType::int32, DType::int64}) {
        SCOPED_TRACE(std::to_string(bad) + " among " + std::to_string(count));
        Ids list = make_ids(Mix::random, count, 10, 2);
        list[static_cast<std::size_t>(count) / 2] = bad;
        const HostTensor ids = ids_tensor(list, dtype);
        const auto check = [&](const std::string& op, const Tensors& inputs,
                               const Attributes& settings) {
          ErrorWord error, expected_error;
          RunOptions options;
          options.error = &expected_error;
          expect_same(gpu.run(op, inputs, settings, {}, &error),
                      on_reference(op, inputs, settings, options));
          EXPECT_EQ(error.packed.load(), expected_error.packed.load()) << op;
          EXPECT_NE(error.packed.load(), 0) << op;
          EXPECT_EQ(error.value.load(), bad) << op;
        };
        check("UniqueIndices", {ids}, {{"rows", std::int64_t{10}}});
        check("Gather", {table, ids}, {});
        check("EmbeddingBag", {table, ids_tensor(list, dtype, {1, count}).reshaped({count, 1})},
              {});
        check("GatherAdd", {uniform({count, 4}, 4), table, ids}, {});
      }
    }
  }
}

TEST(RowsOnGpus, LookupRowsOfAnyWidthAndType) {
  RowGpu gpu({.late = true});
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::uint8, DType::int64}) {
    for (const std::int64_t columns : {1, 2, 3, 4, 8, 17, 64, 1025, 2048, 0}) {
      for (const Mix mix : {Mix::random, Mix::absent, Mix::negative}) {
        SCOPED_TRACE(std::string(name_of(dtype)) + " of " + std::to_string(columns));
        const HostTensor table = uniform({23, columns}, 3, 0, 100, dtype);
        const Tensors inputs{table, ids_tensor(make_ids(mix, 37, 23, 5), DType::int32)};
        expect_same(gpu.run("Gather", inputs), on_reference("Gather", inputs));
      }
    }
  }
  const Tensors none{uniform({5, 3}, 1), ids_tensor({})};
  expect_same(gpu.run("Gather", none), on_reference("Gather", none));
  // Other axes; a table at any address.
  const Tensors inner{uniform({3, 5, 6}, 2), ids_tensor({4, 0, -1, absent_id<std::int64_t>})};
  const Attributes second{{"axis", std::int64_t{1}}};
  expect_same(gpu.run("Gather", inner, second), on_reference("Gather", inner, second));
  Layout shifted = row_major({3, 5, 6});
  shifted.offset = 1;
  expect_same(gpu.run("Gather", inner, second, {shifted}), on_reference("Gather", inner, second));
}

TEST(RowsOnGpus, LookupsWidenSixteenBits) {
  RowGpu gpu;
  const Attributes wide{{"to", std::string("float32")}};
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    for (const std::int64_t columns : {1, 4, 7, 100, 1028}) {
      const Tensors inputs{uniform({40, columns}, 3, -5, 5, dtype),
                           ids_tensor(make_ids(Mix::absent, 300, 40, 6))};
      expect_same(gpu.run("Gather", inputs, wide), on_reference("Gather", inputs, wide));
    }
  }
  EXPECT_EQ(gpu.refusal("Gather", {uniform({4, 2}, 1), ids_tensor({1})},
                        {{"to", std::string("float64")}}),
            "cuda.gather_rows: float32 looked up as float64");
}

TEST(RowsOnGpus, PackTheRowsThatOccur) {
  RowGpu gpu;
  for (const std::int64_t columns : {1, 5, 16}) {
    for (const std::int32_t count : {0, 1, 4}) {
      const HostTensor table = uniform({9, columns}, 1);
      const HostTensor unique = ids_tensor({0, 3, 7, 8, -1, -1});
      const HostTensor result = gpu.run("GatherRows", {table, unique, number_of(count)})[0];
      const auto bits = static_cast<std::size_t>(columns) * 4;
      for (std::int64_t i = 0; i < 6; ++i) {
        const auto* row =
            static_cast<const char*>(result.data()) + static_cast<std::size_t>(i) * bits;
        if (i < count) {
          const std::int64_t from = unique.as<std::int64_t>()[static_cast<std::size_t>(i)];
          EXPECT_EQ(std::memcmp(row,
                                static_cast<const char*>(table.data()) +
                                    static_cast<std::size_t>(from) * bits,
                                bits),
                    0);
        } else {  // as the harness has filled it
          EXPECT_TRUE(std::all_of(row, row + bits, [](char byte) { return byte == '\xff'; }));
        }
      }
    }
  }
}

TEST(RowsOnGpus, SumBags) {
  RowGpu gpu({.late = true});
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const double tolerance = dtype == DType::float32 ? 1e-6 : dtype == DType::float16 ? 1e-3 : 8e-3;
    for (const std::int64_t columns : {1, 3, 4, 36, 1025, 1028}) {
      for (const std::int64_t length : {1, 3, 4, 9}) {
        SCOPED_TRACE(std::string(name_of(dtype)) + " " + std::to_string(columns) + " columns, " +
                     std::to_string(length) + " ids");
        const HostTensor table = uniform({50, columns}, 1, -1, 1, dtype);
        const HostTensor ids =
            ids_tensor(make_ids(Mix::absent, 6 * length, 50, 2)).reshaped({6, length});
        HostTensor weights = uniform({6, length}, 3, -1, 1, dtype);
        std::memset(weights.data(), 0, size_of(dtype));
        const Tensors plain{table, ids}, weighted{table, ids, weights};
        for (const Tensors& inputs : {plain, weighted}) {
          Tensors exact;
          for (const HostTensor& x : inputs) {
            exact.push_back(is_float(x.dtype()) ? x.converted(DType::float64) : x);
          }
          EXPECT_EQ(compare(gpu.run("EmbeddingBag", inputs)[0],
                            on_reference("EmbeddingBag", exact)[0], tolerance),
                    "");
        }
        const Attributes wide{{"to", std::string("float32")}};
        EXPECT_EQ(
            compare(gpu.run("EmbeddingBag", plain, wide)[0],
                    on_reference("EmbeddingBag", {table.converted(DType::float64), ids})[0], 1e-6),
            "");
      }
    }
  }
  // A row of weight 0 counts as zeros, whatever it contains.
  HostTensor table = uniform({3, 2}, 1);
  table.as<float>()[2] = std::numeric_limits<float>::quiet_NaN();
  const Tensors masked{table, ids_tensor({1, 2}).reshaped({1, 2}),
                       HostTensor::from<float>({1, 2}, {0, 2})};
  EXPECT_EQ(gpu.run("EmbeddingBag", masked)[0].as<float>()[0], 2 * table.as<float>()[4]);
  EXPECT_EQ(
      gpu.run("EmbeddingBag", {table, HostTensor(TensorType{DType::int64, {0, 4}})})[0].shape(),
      (Shape{0, 2}));
}

TEST(RowsOnGpus, MarkAndListTouchedRows) {
  RowGpu gpu;
  for (const std::int64_t rows : {1, 8, 2047, 2048, 5000}) {
    for (const std::int64_t first : {0, 1}) {
      HostTensor marks(TensorType{DType::boolean, {rows}});
      for (std::int64_t i = 0; i < rows; i += 5) static_cast<bool*>(marks.data())[i] = true;
      const Tensors inputs{marks, ids_tensor(make_ids(Mix::absent, 90, rows, 1)), ids_tensor({}),
                           ids_tensor(make_ids(Mix::negative, 50, rows, 2), DType::int32),
                           ids_tensor({rows, -rows - 1})};
      const Attributes settings{{"first", first}};
      const Tensors results = gpu.run("MarkRows", inputs, settings);
      expect_same(results, on_reference("MarkRows", inputs, settings));
      expect_same(gpu.run("TouchedRows", results), on_reference("TouchedRows", results));
    }
  }
  const Tensors none{HostTensor(TensorType{DType::boolean, {3000}})};
  expect_same(gpu.run("TouchedRows", none), on_reference("TouchedRows", none));
}

// More tiles than each block sums itself.
TEST(RowsOnGpus, ListTouchedRowsOfLargeTables) {
  RowGpu gpu;
  HostTensor marks(TensorType{DType::boolean, {2200001}});
  for (std::int64_t i = 3; i < 2200001; i += 1 + i % 4001) {
    static_cast<bool*>(marks.data())[i] = true;
  }
  gpu.runtime->clear_calls();
  const Tensors results = gpu.run("TouchedRows", {marks});
  EXPECT_EQ(gpu.launches(), 3);
  expect_same(results, on_reference("TouchedRows", {marks}));
}

TEST(RowsOnGpus, PlanTheRowsOfTheNextStep) {
  RowGpu gpu;
  std::mt19937_64 random(3);
  for (const std::int64_t capacity : {1, 40, 3000}) {
    for (const std::int64_t kept_step : {4, 5}) {
      const auto ascending = [&](std::int64_t size, std::int32_t count) {
        Ids rows(static_cast<std::size_t>(size), -1);
        std::int64_t row = 0;
        for (std::int32_t i = 0; i < count; ++i) {
          row += 1 + static_cast<std::int64_t>(random() % 3);
          rows[static_cast<std::size_t>(i)] = row;
        }
        return ids_tensor(rows);
      };
      const auto count = static_cast<std::int32_t>(capacity * 3 / 4);
      const auto others = static_cast<std::int32_t>(capacity / 2);
      const HostTensor unique = ascending(capacity, count), kept = ascending(capacity + 3, others);
      const HostTensor steps = number_of(std::int64_t{5});
      const Tensors plan{unique, number_of(count), kept, number_of(others), number_of(kept_step),
                         steps};
      const Tensors results = gpu.run("PlanRows", plan);
      expect_same(results, on_reference("PlanRows", plan));
      const Tensors without{unique,
                            number_of(count),
                            kept,
                            number_of(others),
                            steps,
                            HostTensor(unique.type()),
                            number_of(std::int32_t{0}),
                            number_of(std::int64_t{0})};
      expect_same(gpu.run("RowsWithout", without), on_reference("RowsWithout", without));

      Ids indices;
      for (std::int32_t i = 0; i < count; ++i) indices.push_back(i % 7 == 6 ? -1 : i);
      const Tensors parts{uniform({capacity + 3, 5}, 1), uniform({capacity, 5}, 2), results[2],
                          ids_tensor(indices, DType::int32)};
      expect_same(gpu.run("GatherParts", parts), on_reference("GatherParts", parts));
    }
  }
}

TEST(RowsOnGpus, SplitIdsBetweenATableAndItsCache) {
  RowGpu gpu;
  const std::int64_t rows = 1000;
  Ids cached;
  for (std::int64_t row = 5; row < rows; row += 1 + row % 6) cached.push_back(row);
  const CachedMarks marks(cached, rows);
  for (const DType dtype : {DType::int32, DType::int64}) {
    for (const Mix mix : {Mix::random, Mix::absent, Mix::negative}) {
      Ids list = make_ids(mix, 700, rows, 4);
      list[5] = rows;  // no row: the table's lookup reports it
      const Tensors inputs{ids_tensor(list, dtype), marks.marks, marks.ranks};
      const Attributes settings{{"rows", rows}};
      expect_same(gpu.run("SplitIds", inputs, settings),
                  on_reference("SplitIds", inputs, settings));
    }
  }
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    for (const std::int64_t columns : {1, 6, 64}) {
      const Tensors inputs{uniform({50, columns}, 1, -1, 1, dtype),
                           uniform({9, columns}, 2, -1, 1, dtype),
                           ids_tensor(make_ids(Mix::absent, 50, 9, 3), DType::int32)};
      const Tensors expected = on_reference("GatherAdd", inputs);
      EXPECT_EQ(
          compare(gpu.run("GatherAdd", inputs)[0], expected[0], dtype == DType::float32 ? 1e-7 : 0),
          "");
    }
  }
}

}  // namespace
}  // namespace tandem::testing
