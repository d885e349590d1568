// The GPU's copies, pads and lookups on any axis against the reference kernels, over the fake
// runtime.
#include <limits>

#include "tests/cuda/pointwise_support.h"

namespace tandem::testing::pointwise {
namespace {

// Between row-major and channels-last, by tiles and by elements; with every element size.
TEST(CudaMoves, CopiesBetweenLayouts) {
  for (DType dtype : {DType::uint8, DType::bfloat16, DType::float32, DType::int64}) {
    for (const Shape& shape : {Shape{2, 3, 17, 19}, Shape{2, 16, 16, 16}, Shape{3, 130, 9, 15},
                               Shape{1, 64, 7, 7}, Shape{2, 200, 40}}) {
      SCOPED_TRACE(to_string(shape));
      const HostTensor x = random_numbers(shape, dtype, 5);
      const Layout last = channels_last(shape), rows = row_major(shape);
      check("Copy", {x}, {}, 0, {rows}, {last});
      check("Copy", {x}, {}, 0, {last}, {rows});
      check("Copy", {x}, {}, 0, {layout_with_gaps(shape)}, {last});
      check("Copy", {x}, {}, 0, {last}, {layout_with_gaps(shape)});
      check("Copy", {x}, {}, 0, {layout_backwards(shape)}, {rows});
      check("Copy", {x}, {}, 0, {layout_in_reversed_order(shape)}, {rows});
    }
  }
}

// Rows that begin at any address, copied in words of 1 to 16 bytes.
TEST(CudaMoves, CopiesOfRows) {
  for (std::int64_t columns : {1, 2, 6, 12, 16, 31, 64}) {
    for (std::int64_t gap : {0, 1, 2, 4, 8, 16}) {
      const Shape shape{9, columns};
      Layout from = row_major({9, columns + gap});
      from.offset = gap;
      for (DType dtype : {DType::uint8, DType::float16, DType::float32}) {
        SCOPED_TRACE(std::to_string(columns) + " columns, gap " + std::to_string(gap));
        const HostTensor x = random_numbers(shape, dtype, 5);
        check("Copy", {x}, {}, 0, {from});
        check("Copy", {x}, {}, 0, {}, {from});
      }
    }
  }
}

TEST(CudaMoves, ConcatAndSplitOfManyPieces) {
  for (std::int64_t axis : {0, 1, 2}) {
    std::vector<HostTensor> pieces;
    Ints sizes;
    Shape whole{4, 6, 8};
    whole[axis] = 0;
    for (int i = 0; i < 27; ++i) {
      Shape shape{4, 6, 8};
      shape[axis] = i % 5;
      whole[axis] += i % 5;
      sizes.push_back(i % 5);
      pieces.push_back(random_numbers(shape, DType::float32, static_cast<unsigned>(i)));
    }
    check("Concat", pieces, {{"axis", axis}});
    check("Split", {random_numbers(whole, DType::bfloat16, 99)},
          {{"axis", axis}, {"sizes", sizes}});
  }
}

TEST(CudaMoves, PadsAndTriangles) {
  const Shape shape{3, 5, 8};
  for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
    for (const Ints& pads : {Ints{0, 1, 0, 2, 0, 0}, Ints{2, 0, 3, 0, 4, 5}, Ints(6, 0)}) {
      SCOPED_TRACE(std::string(mode) + " " + to_string(pads));
      Shape padded = shape;
      for (int i = 0; i < 3; ++i) padded[i] += pads[i] + pads[3 + i];
      for (DType dtype : {DType::float32, DType::bfloat16, DType::int8, DType::int64}) {
        const Attributes attributes{{"pads", pads}, {"mode", std::string(mode)}, {"value", 3.0}};
        check("Pad", {random_numbers(shape, dtype, 1)}, attributes);
        check("Pad", {random_numbers(shape, dtype, 1)}, attributes, 0, {channels_last(shape)},
              {channels_last(padded)});
        check("PadGrad", {random_numbers(padded, dtype, 2)},
              {{"pads", pads}, {"mode", std::string(mode)}, {"shape", shape}},
              4 * rounding_of(dtype));
      }
    }
  }
  for (std::int64_t k : {-2, 0, 3}) {
    for (std::int64_t upper : {0, 1}) {
      check("Trilu", {random_numbers({2, 5, 7}, DType::int16, 1)}, {{"k", k}, {"upper", upper}});
      check("Trilu", {random_numbers({1, 1}, DType::float32, 1)}, {{"k", k}, {"upper", upper}});
    }
  }
}

TEST(CudaMoves, GatherTakesWordsOfAnySize) {
  for (std::int64_t inner : {1, 2, 3, 4, 8, 31, 64}) {
    for (DType dtype : {DType::uint8, DType::bfloat16, DType::float32, DType::int64}) {
      for (DType id : {DType::int32, DType::int64}) {
        SCOPED_TRACE(inner);
        check("Gather",
              {random_numbers({3, 11, inner}, dtype, 1), random_numbers({4, 5}, id, 2, -11, 11)},
              {{"axis", std::int64_t{1}}}, 0,
              {row_major_from({3, 11, inner}, 1), row_major({4, 5})});
        check("Gather",
              {random_numbers({11, inner}, dtype, 1), random_numbers({70}, id, 2, -11, 11)},
              {{"axis", std::int64_t{0}}});
      }
    }
  }
  for (DType from : {DType::float16, DType::bfloat16, DType::float32}) {
    check("Gather", {random_numbers({11, 6}, from, 1), random_numbers({9}, DType::int64, 2, 0, 11)},
          {{"axis", std::int64_t{0}}, {"to", std::string("float64")}});
  }
}

// With few indices every row looks at all of them; more indices are sorted: runs of one index that
// are shorter and longer than what a thread sums, absent indices, and tables that need several
// digits.
TEST(CudaMoves, GatherGradAddsInOrder) {
  struct Case {
    std::int64_t rows, count;
    double low, high;
  };
  for (const Case& c :
       {Case{5, 64, 0, 5}, Case{5, 65, -5, 5}, Case{3, 1000, 0, 3}, Case{1, 333, 0, 1},
        Case{40000, 3000, 0, 40000}, Case{700, 5000, 0, 30}, Case{2000, 20000, -2000, 2000}}) {
    for (DType dtype : {DType::float32, DType::bfloat16, DType::float64, DType::int32}) {
      for (std::int64_t inner : {1, 8, 12}) {
        if (c.rows > 10000 && inner > 8) continue;
        SCOPED_TRACE(std::to_string(c.rows) + " rows, " + std::to_string(c.count) + " indices");
        HostTensor ids = random_numbers({c.count}, DType::int64, 2, c.low, c.high);
        for (std::int64_t k = 0; k < c.count; k += 7)
          ids.as<std::int64_t>()[k] = std::numeric_limits<std::int64_t>::min();
        const HostTensor dy = random_numbers({2, c.count, inner}, dtype, 3);
        const Attributes attributes{{"axis", std::int64_t{1}}, {"shape", Shape{2, c.rows, inner}}};
        // The reference rounds each sum to the type; here the expected sums are in double.
        const DType exact = is_float(dtype) ? DType::float64 : dtype;
        const Graph wide = single_node("GatherGrad", {{exact, dy.shape()}, ids.type()}, attributes);
        const auto expected = run_reference(wide, {dy.converted(exact), ids});
        const Graph graph = single_node("GatherGrad", {dy.type(), ids.type()}, attributes);
        const auto results = kernels().run(graph, {dy, ids});
        expect_equal(results, expected, rounding_of(dtype));
        const auto again = kernels().run(graph, {dy, ids});
        EXPECT_EQ(compare(again[0], results[0], 0), "");
      }
    }
  }
}

TEST(CudaMoves, IndicesOutOfRangeAreReportedAndClamped) {
  for (std::int64_t count : {6, 100}) {
    HostTensor ids = random_numbers({count}, DType::int32, 2, 0, 5);
    ids.as<std::int32_t>()[3] = 17;
    const HostTensor x = random_numbers({5, 8}, DType::float32, 1);
    const HostTensor dy = random_numbers({count, 8}, DType::float32, 1);
    const Graph gather = single_node("Gather", {x.type(), ids.type()});
    const Graph grad = single_node("GatherGrad", {dy.type(), ids.type()}, {{"shape", Shape{5, 8}}});
    ErrorWord found, expected, grad_found;
    expect_equal(kernels().run(gather, {x, ids}, {}, {}, &found),
                 run_reference(gather, {x, ids}, &expected), 0);
    EXPECT_EQ(found.packed.load(), expected.packed.load());
    EXPECT_EQ(found.value.load(), 17);
    expect_equal(kernels().run(grad, {dy, ids}, {}, {}, &grad_found),
                 run_reference(grad, {dy, ids}), 1e-6);
    EXPECT_EQ(grad_found.packed.load(), expected.packed.load());
    EXPECT_EQ(grad_found.value.load(), 17);
  }
}

}  // namespace
}  // namespace tandem::testing::pointwise
