// Pooling and its gradients in both activation layouts.
#include <gtest/gtest.h>

#include "tests/kernels/product_check.h"

namespace tandem::testing {
namespace {

struct PoolShape {
  Shape x, y;
  Ints window, strides, pads, dilations;
  std::int64_t ceil_mode = 0;
};

void check_pool(const PoolShape& p) {
  const auto attributes = [&] {
    return Attributes{{"kernel_shape", p.window},
                      {"strides", p.strides},
                      {"pads", p.pads},
                      {"dilations", p.dilations},
                      {"ceil_mode", p.ceil_mode}};
  };
  Attributes maximum = attributes();
  maximum.set("storage_order", std::int64_t{0});
  check_product(
      {.op = "MaxPool", .inputs = {p.x}, .attributes = maximum, .kernels = {"simd.pool"}});
  check_product({.op = "MaxPoolGrad",
                 .inputs = {p.x, p.y, p.y},
                 .attributes = maximum,
                 .kernels = {"simd.pool"}});
  for (const std::int64_t include : {0, 1}) {
    Attributes average = attributes();
    average.set("count_include_pad", include);
    check_product(
        {.op = "AveragePool", .inputs = {p.x}, .attributes = average, .kernels = {"simd.pool"}});
    average.set("shape", p.x);
    check_product({.op = "AveragePoolGrad",
                   .inputs = {p.y},
                   .attributes = average,
                   .kernels = {"simd.pool"}});
  }
}

TEST(Pool, LeNet) {
  check_pool({{3, 6, 28, 28}, {3, 6, 14, 14}, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}});
  check_pool({{3, 16, 10, 10}, {3, 16, 5, 5}, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}});
}

TEST(Pool, ResNet) {
  check_pool({{2, 64, 16, 16}, {2, 64, 8, 8}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}});
}

TEST(Pool, OddWindows) {
  check_pool({{1, 40, 9, 7}, {1, 40, 4, 6}, {3, 2}, {2, 1}, {0, 0, 1, 0}, {1, 1}});
  check_pool({{2, 5, 11, 9}, {2, 5, 7, 7}, {3, 2}, {1, 1}, {0, 0, 0, 0}, {2, 2}});
  check_pool({{2, 300, 6, 6}, {2, 300, 3, 3}, {3, 3}, {2, 2}, {0, 0, 0, 0}, {1, 1}, 1});
}

TEST(Pool, OneAxis) { check_pool({{2, 19, 13}, {2, 19, 6}, {3}, {2}, {0, 0}, {1}}); }

TEST(Pool, ThreeAxes) {
  check_pool(
      {{2, 3, 6, 9, 7}, {2, 3, 3, 4, 5}, {2, 3, 3}, {2, 2, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}});
  check_pool(
      {{1, 40, 4, 5, 6}, {1, 40, 4, 5, 4}, {2, 3, 2}, {1, 1, 1}, {1, 1, 0, 0, 1, 0}, {1, 1, 2}});
}

// Along axes where windows have extent 1, neighbours are pooled together.
TEST(Pool, SomeOfThreeAxes) {
  check_pool(
      {{2, 3, 10, 5, 7}, {2, 3, 8, 5, 7}, {3, 1, 1}, {1, 1, 1}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}});
  check_pool(
      {{2, 20, 4, 8, 8}, {2, 20, 4, 4, 4}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1, 0, 1, 1}, {1, 1, 1}});
  check_pool(
      {{1, 3, 6, 4, 6}, {1, 3, 3, 4, 3}, {2, 1, 2}, {2, 1, 2}, {0, 0, 0, 0, 0, 0}, {1, 1, 1}});
}

}  // namespace
}  // namespace tandem::testing
