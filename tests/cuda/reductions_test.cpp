// ReduceSum, ReduceMean, ReduceMax and the softmax family on a GPU against the double reference.
#include <cmath>
#include <limits>

#include "tests/cuda/reductions_check.h"
#include "tests/harness/layout_variants.h"

namespace tandem::testing {
namespace {

constexpr const char* reductions[] = {"ReduceSum", "ReduceMean", "ReduceMax"};
constexpr float infinity = std::numeric_limits<float>::infinity();
const float nan = std::numeric_limits<float>::quiet_NaN();

void check_axes(const Shape& shape, const Ints& axes, std::optional<Layout> layout = {}) {
  for (const char* op : reductions) {
    for (const std::int64_t keepdims : {0, 1}) {
      check_reduction({.op = op,
                       .inputs = {{some_numbers(shape, 1, -0.2, 1), layout}},
                       .attributes = {{"axes", axes}, {"keepdims", keepdims}},
                       .tolerance = 2e-6});
    }
  }
}

TEST(CudaReduce, Rows) {
  for (const std::int64_t columns : {1, 2, 31, 33, 64, 1000, 1025, 50257}) {
    for (const std::int64_t rows : {1, 5}) check_axes({rows, columns}, {1});
  }
  check_axes({3000, 7}, {1});
  check_axes({700, 64}, {1});
}

TEST(CudaReduce, Columns) {
  for (const std::int64_t columns : {1, 3, 31, 33, 1000, 1025, 50257}) {
    for (const std::int64_t rows : {1, 6}) check_axes({rows, columns}, {0});
  }
  check_axes({5000, 4}, {0});
  check_axes({3001, 33}, {0});
  check_axes({513, 264}, {0});
}

TEST(CudaReduce, NothingToReduce) {
  check_axes({}, {});
  check_axes({5, 6}, {});
  check_axes({3, 1, 4}, {1});
  check_axes({0, 4}, {0});  // sums without terms
  check_axes({4, 0}, {1});
  check_axes({0, 4}, {1});  // no results
  check_axes({0}, {0});
}

TEST(CudaReduce, OtherAxesAndLayouts) {
  const Shape shape{6, 35, 8, 12};
  for (const Ints& axes : {Ints{1}, Ints{2}, Ints{0, 2}, Ints{1, 3}, Ints{0, 2, 3},
                           Ints{0, 1, 2, 3}, Ints{2, 3}, Ints{3}}) {
    for (const LayoutVariant& variant : layout_variants) {
      SCOPED_TRACE(variant.name);
      check_axes(shape, axes, variant.layout(shape));
    }
  }
  // Repeats numbers with a stride of 0 on a reduced or on a kept axis.
  const HostTensor x = some_numbers({4, 1, 40}, 1, -0.2, 1);
  HostTensor repeated(TensorType{DType::float32, {4, 9, 40}});
  for (std::int64_t i = 0; i < 4 * 9 * 40; ++i)
    repeated.as<float>()[i] = x.as<float>()[i / 360 * 40 + i % 40];
  const Layout once{0, {40, 0, 1}, "", 0};
  for (const Ints& axes : {Ints{0}, Ints{1}, Ints{2}, Ints{1, 2}, Ints{0, 1}}) {
    check_reduction({.op = "ReduceSum",
                     .inputs = {{repeated, once}},
                     .attributes = {{"axes", axes}, {"keepdims", std::int64_t{0}}},
                     .tolerance = 2e-6});
  }
}

TEST(CudaReduce, StridedResults) {
  const Shape shape{6, 8, 40};
  for (const auto& [axes, result] : std::vector<std::pair<Ints, Shape>>{
           {{0}, {8, 40}}, {{1}, {6, 40}}, {{2}, {6, 8}}, {{1, 2}, {6}}}) {
    for (const char* op : reductions) {
      check_reduction({.op = op,
                       .inputs = {{some_numbers(shape)}},
                       .attributes = {{"axes", axes}, {"keepdims", std::int64_t{0}}},
                       .output_layouts = {layout_with_gaps(result)},
                       .tolerance = 2e-6});
    }
  }
}

// Millions of equal numbers: every rounding of the sum goes in the same direction.
TEST(CudaReduce, LongSums) {
  HostTensor x(TensorType{DType::float32, {3000017}});
  for (float& value : x.as<float>()) value = 0.1f;
  const auto check = [&](const HostTensor& of, const Ints& axes) {
    const std::vector<HostTensor> inputs{of};
    const Attributes attributes{{"axes", axes}, {"keepdims", std::int64_t{0}}};
    const Graph graph = reduction_graph("ReduceSum", inputs, attributes);
    for (const int multiprocessors : {1, 132}) {
      ReductionGpu gpu(multiprocessors);
      const HostTensor y =
          run_node(*gpu.kernel_for(graph), graph, graph.nodes[0], inputs, gpu.run_options())[0];
      const auto results = static_cast<double>(y.type().elements());
      const double expected =
          static_cast<double>(0.1f) * static_cast<double>(of.type().elements()) / results;
      for (const float sum : y.as<float>())
        EXPECT_NEAR(static_cast<double>(sum) / expected, 1, 3e-6);
      EXPECT_EQ(gpu.problem(), "");
    }
  };
  check(x, {0});
  HostTensor columns(TensorType{DType::float32, {750001, 4}});
  for (float& value : columns.as<float>()) value = 0.1f;
  check(columns, {0});
}

TEST(CudaReduce, Integers) {
  for (const DType dtype : {DType::int8, DType::int16, DType::int32, DType::int64, DType::uint8,
                            DType::uint16, DType::uint32, DType::uint64}) {
    const bool is_signed = dtype == DType::int8 || dtype == DType::int16 || dtype == DType::int32 ||
                           dtype == DType::int64;
    for (const auto& [shape, axes] : std::vector<std::pair<Shape, Ints>>{{{7, 33}, {1}},
                                                                         {{3, 1500}, {1}},
                                                                         {{200, 5}, {0}},
                                                                         {{3, 4, 5}, {0, 2}},
                                                                         {{4, 0}, {1}}}) {
      for (const char* op : reductions) {
        check_reduction({.op = op,
                         .inputs = {{some_integers(shape, dtype, is_signed ? -128 : 0, 128)}},
                         .attributes = {{"axes", axes}, {"keepdims", std::int64_t{0}}},
                         .tolerance = 0,
                         .types = {DType::float32}});
      }
    }
  }
  for (const Shape& shape : {Shape{40, 3}, Shape{3, 40}, Shape{2, 0}}) {
    check_reduction({.op = "ReduceMax",
                     .inputs = {{some_integers(shape, DType::boolean, 0, 2)}},
                     .attributes = {{"axes", Ints{1}}, {"keepdims", std::int64_t{0}}},
                     .tolerance = 0,
                     .types = {DType::float32}});
  }
}

TEST(CudaReduce, InfinitiesAndNaN) {
  HostTensor x = some_numbers({4, 2000});
  x.as<float>()[7] = infinity;
  x.as<float>()[2500] = nan;
  for (int i = 0; i < 2000; ++i) x.as<float>()[6000 + i] = -infinity;
  for (const char* op : reductions) {
    for (const Ints& axes : {Ints{0}, Ints{1}}) {
      check_reduction({.op = op,
                       .inputs = {{x}},
                       .attributes = {{"axes", axes}, {"keepdims", std::int64_t{0}}}});
    }
  }
}

TEST(CudaReduce, RefusesWhatItCannotDo) {
  ReductionGpu gpu;
  const Attributes attributes{{"axes", Ints{0}}, {"keepdims", std::int64_t{0}}};
  const auto refusal = [&](const HostTensor& x) {
    const Graph graph = reduction_graph("ReduceSum", {x}, attributes);
    std::vector<std::string> refusals;
    EXPECT_EQ(choose_kernel(gpu.kernels, plain_request(graph, graph.nodes[0]), &refusals), nullptr);
    return refusals.empty() ? "" : refusals[0];
  };
  EXPECT_EQ(refusal(HostTensor(TensorType{DType::float64, {3}})),
            "cuda.reduce_sum: element type float64");
  EXPECT_EQ(refusal(HostTensor(TensorType{DType::float32, Shape(9, 1)})),
            "cuda.reduce_sum: more than 8 axes");
}

// Empty tensors launch nothing; few results of many elements take two launches.
TEST(CudaReduce, Launches) {
  const auto launches = [](const Shape& shape, const Ints& axes) {
    ReductionGpu gpu;
    const HostTensor x = some_numbers(shape);
    const Graph graph =
        reduction_graph("ReduceSum", {x}, {{"axes", axes}, {"keepdims", std::int64_t{0}}});
    gpu.runtime->clear_calls();
    run_node(*gpu.kernel_for(graph), graph, graph.nodes[0], {x}, gpu.run_options());
    int count = 0;
    for (const std::string& call : gpu.runtime->calls()) count += call.starts_with("launch ");
    return count;
  };
  EXPECT_EQ(launches({0, 5}, {1}), 0);
  EXPECT_EQ(launches({0, 5}, {0}), 1);
  EXPECT_EQ(launches({3000, 1000}, {1}), 1);
  EXPECT_EQ(launches({300000}, {0}), 2);
  EXPECT_EQ(launches({30000, 8}, {0}), 2);
}

void check_softmax(const Shape& shape, std::int64_t axis, double low = -5, double high = 5,
                   std::optional<Layout> layout = {}) {
  for (const std::string op : {"Softmax", "LogSoftmax"}) {
    const Attributes attributes{{"axis", axis}};
    check_reduction({.op = op,
                     .inputs = {{some_numbers(shape, 1, low, high), layout}},
                     .attributes = attributes});
    check_reduction(
        {.op = op + "Grad",
         .inputs = {{some_numbers(shape, 2), layout}, {some_numbers(shape, 3, -2, 0.5), layout}},
         .attributes = attributes,
         .tolerance = 2e-5});
  }
}

TEST(CudaSoftmax, Rows) {
  for (const std::int64_t columns : {1, 10, 31, 33, 256, 300, 1000, 1024, 1025, 50257})
    for (const std::int64_t rows : {1, 5}) check_softmax({rows, columns}, 1);
  check_softmax({3000, 9}, 1);
  check_softmax({2, 3, 40}, 2);
  check_softmax({0, 4}, 1);
  check_softmax({64, 1000}, 1, -90, 90);
}

TEST(CudaSoftmax, OtherAxes) {
  for (const std::int64_t axis : {0, 1, 2}) check_softmax({3, 70, 33}, axis);
  check_softmax({500, 3}, 0);
  check_softmax({2, 21, 9, 7}, 1);
  check_softmax({2, 21, 9, 7}, 1, -5, 5, channels_last({2, 21, 9, 7}));
  check_softmax({2, 21, 9, 7}, 2, -5, 5, channels_last({2, 21, 9, 7}));
  check_softmax({12, 40}, 1, -5, 5, layout_in_reversed_order({12, 40}));
  check_softmax({12, 40}, 1, -5, 5, layout_with_gaps({12, 40}));
}

TEST(CudaSoftmax, InfinitiesAndNaN) {
  for (const Shape& shape : {Shape{6, 40}, Shape{6, 20000}}) {
    HostTensor x = some_numbers(shape, 1, -5, 5);
    const std::int64_t columns = shape[1];
    auto values = x.as<float>();
    for (std::int64_t i = 0; i < columns - 3; ++i) values[columns + i] = -infinity;
    for (std::int64_t i = 0; i < columns; ++i) values[2 * columns + i] = -infinity;
    values[3 * columns + 5] = infinity;
    values[4 * columns + 7] = nan;
    for (std::int64_t i = 3; i < columns; ++i) values[5 * columns + i] = -infinity;
    for (const char* op : {"Softmax", "LogSoftmax"}) {
      check_reduction({.op = op, .inputs = {{x}}, .attributes = {{"axis", std::int64_t{1}}}});
      HostTensor turned(TensorType{DType::float32, {columns, 6}});
      for (std::int64_t i = 0; i < 6 * columns; ++i)
        turned.as<float>()[i % columns * 6 + i / columns] = values[i];
      check_reduction({.op = op, .inputs = {{turned}}, .attributes = {{"axis", std::int64_t{0}}}});
    }
  }
}

}  // namespace
}  // namespace tandem::testing
