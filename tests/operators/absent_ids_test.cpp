// Ids that name no row, on every kernel: they are in range whatever the table holds, they touch no
// row, and groups of ids contain only the other ids.
#include <cmath>
#include <limits>
#include <random>

#include "engine/operators/tables/rows.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

constexpr DType id_types[] = {DType::int32, DType::int64};
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Ids of the type; absent_id<std::int64_t> becomes the type's absent id.
HostTensor ids_of(DType type, Shape shape, std::vector<std::int64_t> values) {
  for (std::int64_t& value : values) {
    if (value == absent_id<std::int64_t>) value = absent_id_of(type);
  }
  return HostTensor::from<std::int64_t>(std::move(shape), values).converted(type);
}

constexpr std::int64_t none = absent_id<std::int64_t>;

/// Output 0 of the node on each kernel; no kernel may report an error.
template <class F>
void each_result(const std::string& op, const std::vector<HostTensor>& inputs,
                 const Attributes& attributes, F f) {
  const Graph graph = single_node(op, inputs, attributes);
  each_kernel(graph, [&](const Kernel& kernel) {
    ErrorWord error;
    RunOptions options;
    options.error = &error;
    f(run_node(kernel, graph, graph.nodes[0], inputs, options)[0]);
    EXPECT_EQ(error.packed.load(), 0);
  });
}

// Rows 0 and 2, which are nearest to ids outside the table, are NaN.
TEST(AbsentIds, NothingOfTheTableIsRead) {
  for (const DType type : id_types) {
    for (const std::int64_t columns : {1, 5, 8, 16, 33}) {
      SCOPED_TRACE(std::string(name_of(type)) + ", columns " + std::to_string(columns));
      HostTensor table(TensorType{DType::float32, {3, columns}});
      for (std::int64_t i = 0; i < 3 * columns; ++i) {
        table.as<float>()[i] = i / columns == 1 ? static_cast<float>(i) : not_a_number;
      }
      const auto row = [&](std::int64_t c) { return table.number(columns + c); };
      each_result("Gather", {table, ids_of(type, {3}, {none, 1, none})}, {},
                  [&](const HostTensor& y) {
                    for (std::int64_t c = 0; c < columns; ++c) {
                      EXPECT_EQ(y.number(c), 0);
                      EXPECT_EQ(y.number(columns + c), row(c));
                      EXPECT_EQ(y.number(2 * columns + c), 0);
                    }
                  });
      const HostTensor ids = ids_of(type, {2, 2}, {none, 1, none, none});
      const auto sums_of = [&](double factor) {
        return [&, factor](const HostTensor& y) {
          for (std::int64_t c = 0; c < columns; ++c) {
            EXPECT_EQ(y.number(c), factor * row(c));
            EXPECT_EQ(y.number(columns + c), 0);
          }
        };
      };
      each_result("EmbeddingBag", {table, ids}, {}, sums_of(1));
      const HostTensor weights =
          HostTensor::from<float>({2, 2}, {not_a_number, 0.5f, not_a_number, 2});
      each_result("EmbeddingBag", {table, ids, weights}, {}, sums_of(0.5));

      HostTensor dy(TensorType{DType::float32, {3, columns}});
      for (std::int64_t i = 0; i < 3 * columns; ++i) {
        dy.as<float>()[i] = i / columns == 1 ? 2.0f : not_a_number;
      }
      const auto one_row = [&](double x) {
        return [=](const HostTensor& dx) {
          for (std::int64_t i = 0; i < 3 * columns; ++i)
            EXPECT_EQ(dx.number(i), i / columns == 1 ? x : 0);
        };
      };
      const Attributes shape{{"shape", Ints{3, columns}}};
      each_result("GatherGrad", {dy, ids_of(type, {3}, {none, 1, none})}, shape, one_row(2));
      const HostTensor bags = ids_of(type, {3, 1}, {none, 1, none});
      each_result("EmbeddingBagGrad", {dy, bags}, shape, one_row(2));
      const HostTensor factors = HostTensor::from<float>({3, 1}, {1, 0.25f, not_a_number});
      each_result("EmbeddingBagGrad", {dy, bags, factors}, shape, one_row(0.5));
    }
  }
}

// Other ids that are (almost) as far from the table as an absent id are out of range.
TEST(AbsentIds, AreTheOnlyOnesOutsideThatAreInRange) {
  for (const DType type : id_types) {
    const std::int64_t bad = absent_id_of(type) + 1;
    for (const std::int64_t columns : {4, 16}) {
      const HostTensor table(TensorType{DType::float32, {3, columns}}),
          flat = ids_of(type, {2}, {none, bad}), bag = ids_of(type, {1, 2}, {none, bad});
      const auto expect_report = [&](const std::string& op, const std::vector<HostTensor>& inputs,
                                     const Attributes& attributes = {}) {
        const Graph graph = single_node(op, inputs, attributes);
        each_kernel(graph, [&](const Kernel& kernel) {
          ErrorWord error;
          RunOptions options;
          options.error = &error;
          run_node(kernel, graph, graph.nodes[0], inputs, options);
          EXPECT_EQ(error.packed.load() >> 32, ErrorWord::index_out_of_range);
          EXPECT_EQ(error.value.load(), bad);
        });
      };
      expect_report("Gather", {table, flat});
      expect_report("EmbeddingBag", {table, bag});
      expect_report("UniqueIndices", {flat}, {{"rows", std::int64_t{3}}});
      expect_report("UniqueIndices", {bag, ids_of(type, {3}, {0, 3, 2})},
                    {{"rows", std::int64_t{3}}});
    }
  }
  // The absent id of int32 is not an absent id among int64 ids.
  const HostTensor table(TensorType{DType::float32, {3, 4}});
  const std::vector<HostTensor> inputs{
      table, HostTensor::from<std::int64_t>({1}, {std::int64_t{absent_id<std::int32_t>}})};
  const Graph graph = single_node("Gather", inputs, {});
  each_kernel(graph, [&](const Kernel& kernel) {
    ErrorWord error;
    RunOptions options;
    options.error = &error;
    run_node(kernel, graph, graph.nodes[0], inputs, options);
    EXPECT_EQ(error.packed.load() >> 32, ErrorWord::index_out_of_range);
  });
}

TEST(AbsentIds, GroupsHoldTheOthers) {
  for (const DType type : id_types) {
    const std::vector<HostTensor> inputs{ids_of(type, {5}, {4, none, -2, 0, none}),
                                         ids_of(type, {1, 2}, {none, 4})};
    for (const std::int64_t rows : {std::int64_t{6}, std::int64_t{1} << 30}) {
      SCOPED_TRACE(std::string(name_of(type)) + ", rows " + std::to_string(rows));
      const Graph graph = single_node("UniqueIndices", inputs, {{"rows", rows}});
      each_kernel(graph, [&](const Kernel& kernel) {
        const std::vector<HostTensor> y = run_node(kernel, graph, graph.nodes[0], inputs);
        const auto numbers = [&](std::size_t i) { return y[i].integers(); };
        using Integers = std::vector<std::int64_t>;
        const std::int64_t no = absent_id<std::int32_t>;
        if (rows == 6) {  // -2 is row 4
          EXPECT_EQ(numbers(UniqueOutputs::unique), (Integers{0, 4, -1, -1, -1, -1}));
          EXPECT_EQ(numbers(UniqueOutputs::order), (Integers{3, 0, 2, 6, -1, -1, -1}));
          EXPECT_EQ(numbers(UniqueOutputs::offsets), (Integers{0, 1, 4, 4, 4, 4, 4}));
          EXPECT_EQ(numbers(UniqueOutputs::count), (Integers{2}));
          EXPECT_EQ(numbers(UniqueOutputs::inverse), (Integers{1, no, 1, 0, no, no, 1}));
        } else {
          EXPECT_EQ(numbers(UniqueOutputs::unique), (Integers{0, 4, rows - 2, -1, -1, -1, -1}));
          EXPECT_EQ(numbers(UniqueOutputs::order), (Integers{3, 0, 6, 2, -1, -1, -1}));
          EXPECT_EQ(numbers(UniqueOutputs::offsets), (Integers{0, 1, 3, 4, 4, 4, 4, 4}));
          EXPECT_EQ(numbers(UniqueOutputs::count), (Integers{3}));
          EXPECT_EQ(numbers(UniqueOutputs::inverse), (Integers{1, no, 2, 0, no, no, 1}));
        }
      });
    }
  }
}

HostTensor random_tensor(Shape shape, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  HostTensor tensor(TensorType{DType::float32, std::move(shape)});
  for (float& x : tensor.as<float>()) x = uniform(random);
  return tensor;
}

// Computes the table minus the sum of gradients, row by row from groups and from the dense
// gradient. Also compares a lookup of packed rows by the groups' inverse.
TEST(AbsentIds, RowsAgreeWithTheDenseGradient) {
  constexpr std::int64_t rows = 200, count = 6000;
  std::mt19937 random(3);
  for (const DType type : id_types) {
    std::vector<std::int64_t> values(count);
    for (std::int64_t& id : values) {
      id = random() % 2 == 0 ? none : static_cast<std::int64_t>(random() % (rows - 50));
    }
    const HostTensor ids = ids_of(type, {count}, values);
    const Graph grouping = single_node("UniqueIndices", {ids}, {{"rows", rows}});
    for (const std::int64_t columns : {1, 7, 24}) {
      SCOPED_TRACE(std::string(name_of(type)) + ", columns " + std::to_string(columns));
      const HostTensor table = random_tensor({rows, columns}, random),
                       dy = random_tensor({count, columns}, random);
      const Graph dense = single_node("GatherGrad", {dy, ids}, {{"shape", Ints{rows, columns}}});
      const Kernel* exact = choose_kernel(reference_list(), plain_request(dense, dense.nodes[0]));
      const HostTensor sums = run_node(*exact, dense, dense.nodes[0], std::vector{dy, ids})[0];
      each_kernel(grouping, [&](const Kernel& grouper) {
        const std::vector<HostTensor> groups =
            run_node(grouper, grouping, grouping.nodes[0], std::vector{ids});
        const std::vector<HostTensor> inputs{table,
                                             {},
                                             groups[UniqueOutputs::unique],
                                             groups[UniqueOutputs::order],
                                             groups[UniqueOutputs::offsets],
                                             groups[UniqueOutputs::count],
                                             scalar_of(1),
                                             HostTensor::from<std::int64_t>({}, {1}),
                                             scalar_of(1),
                                             HostTensor(TensorType{DType::boolean, {}}),
                                             dy};
        const Graph update = single_node("RowsUpdate", inputs, {{"op", std::string("SgdUpdate")}});
        each_kernel(update, [&](const Kernel& updater) {
          const HostTensor after = run_node(updater, update, update.nodes[0], inputs)[0];
          for (std::int64_t i = 0; i < rows * columns; ++i) {
            ASSERT_NEAR(after.number(i), table.number(i) - sums.number(i), 2e-5) << i;
            const bool looked_up = i / columns < rows - 50;
            ASSERT_TRUE(looked_up || after.number(i) == table.number(i)) << i;
          }
        });
        const std::vector<HostTensor> packing{table, groups[UniqueOutputs::unique],
                                              groups[UniqueOutputs::count]};
        const Graph pack = single_node("GatherRows", packing, {});
        const Kernel* packer = choose_kernel(cpu_list(), plain_request(pack, pack.nodes[0]));
        const HostTensor packed = run_node(*packer, pack, pack.nodes[0], packing)[0];
        const HostTensor inverse = groups[UniqueOutputs::inverse];
        const std::vector<HostTensor> looked{packed, inverse};
        each_result("Gather", looked, {}, [&](const HostTensor& y) {
          for (std::int64_t i = 0; i < count; ++i) {
            for (std::int64_t c = 0; c < columns; ++c) {
              const double x = values[i] == none ? 0 : table.number(values[i] * columns + c);
              ASSERT_EQ(y.number(i * columns + c), x);
            }
          }
        });
      });
    }
  }
}

}  // namespace
}  // namespace tandem::testing
