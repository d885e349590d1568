// Reductions over leading, trailing and other axes against the reference.
#include <gtest/gtest.h>

#include "tests/kernels/pointwise_check.h"

namespace tandem::testing {
namespace {

void check_reductions(const Shape& shape, const Ints& axes, std::optional<Layout> layout = {}) {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax"}) {
    for (std::int64_t keepdims : {0, 1}) {
      check({.op = op,
             .inputs = {{random_tensor(shape), layout}},
             .attributes = {{"axes", axes}, {"keepdims", keepdims}}});
    }
  }
}

TEST(Reduce, LeadingAxes) {
  check_reductions({2048, 1024}, {0});
  check_reductions({300, 10}, {0});
  check_reductions({300, 1}, {0});
  check_reductions({7, 3000}, {0});
  check_reductions({4, 33, 5000}, {0, 1});
}

TEST(Reduce, TrailingAxes) {
  check_reductions({300, 10}, {1});
  check_reductions({2048, 1024}, {1});
  check_reductions({3, 5000}, {1});
  check_reductions({5, 40, 50}, {1, 2});
  check_reductions({100003}, {0});
  check_reductions({}, {});
  check_reductions({5, 6}, {});
}

TEST(Reduce, OtherAxes) {
  const Shape shape{6, 35, 9, 11};
  for (const Ints& axes :
       {Ints{1}, Ints{2}, Ints{0, 2}, Ints{1, 3}, Ints{0, 2, 3}, Ints{0, 1, 2, 3}, Ints{2, 3}}) {
    check_reductions(shape, axes);
    check_reductions(shape, axes, channels_last(shape));
    check_reductions(shape, axes, with_gaps(shape, 2));
  }
}

TEST(Reduce, MillionsOfElements) {
  check({.op = "ReduceSum",
         .inputs = {{random_tensor({1 << 20}, 1, 0, 1)}},
         .attributes = {{"axes", Ints{0}}, {"keepdims", std::int64_t{0}}},
         .tolerance = 1e-6});
  check({.op = "ReduceSum",
         .inputs = {{random_tensor({1 << 18, 4}, 1, 0, 1)}},
         .attributes = {{"axes", Ints{0}}, {"keepdims", std::int64_t{0}}},
         .tolerance = 2e-6});
  check({.op = "SumOfSquares", .inputs = {{random_tensor({1000, 1001})}}, .tolerance = 1e-6});
  check({.op = "SumOfSquares",
         .inputs = {{random_tensor({3, 4, 5, 6}), channels_last({3, 4, 5, 6})}}});
}

}  // namespace
}  // namespace tandem::testing
