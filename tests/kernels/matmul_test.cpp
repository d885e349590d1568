// MatMul over ranks, broadcasting and strides.
#include <gtest/gtest.h>

#include "tests/kernels/product_check.h"

namespace tandem::testing {
namespace {

TEST(MatMul, Ranks) {
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{{{5}, {5}},
                                                                 {{5}, {5, 7}},
                                                                 {{4, 5}, {5}},
                                                                 {{3, 4, 5}, {5}},
                                                                 {{5}, {3, 5, 2}},
                                                                 {{4, 5}, {5, 7}},
                                                                 {{3, 4, 5}, {5, 7}},
                                                                 {{2, 3, 4, 5}, {5, 7}},
                                                                 {{3, 4, 5}, {3, 5, 7}},
                                                                 {{2, 1, 4, 5}, {3, 5, 7}},
                                                                 {{4, 5}, {2, 3, 5, 7}},
                                                                 {{1, 1}, {1, 1}},
                                                                 {{3, 1}, {1, 4}}}) {
    check_product({.op = "MatMul", .inputs = {a, b}, .kernels = {"simd.matmul"}});
  }
}

TEST(MatMul, Strides) {
  for (const Shape& mnk :
       {Shape{13, 35, 17}, Shape{64, 96, 128}, Shape{33, 10, 512}, Shape{200, 31, 9}}) {
    for (const std::vector<int>& a : {std::vector<int>{0, 1}, {1, 0}}) {
      for (const std::vector<int>& b : {std::vector<int>{0, 1}, {1, 0}}) {
        check_product(
            {.op = "MatMul", .inputs = {{mnk[0], mnk[2]}, {mnk[2], mnk[1]}}, .orders = {a, b}});
      }
    }
  }
}

TEST(MatMul, BatchesInAnyOrder) {
  check_product({.op = "MatMul",
                 .inputs = {{4, 6, 33, 16}, {4, 6, 16, 20}},
                 .orders = {{0, 2, 1, 3}, {0, 3, 1, 2}}});
  check_product(
      {.op = "MatMul", .inputs = {{4, 6, 33, 16}, {16, 20}}, .orders = {{1, 0, 2, 3}, {}}});
  check_product({.op = "MatMul", .inputs = {{4, 33, 16}, {16, 20}}, .orders = {{1, 2, 0}, {1, 0}}});
  // More products than rows in each.
  check_product({.op = "MatMul", .inputs = {{21, 3, 16}, {16, 20}}, .orders = {{1, 0, 2}, {}}});
  check_product({.op = "MatMul", .inputs = {{21, 3, 16}, {16, 1}}, .orders = {{1, 0, 2}, {}}});
  check_product(
      {.op = "MatMul", .inputs = {{2, 21, 3, 16}, {16, 20}}, .orders = {{2, 0, 1, 3}, {1, 0}}});
}

TEST(MatMul, NetworkShapes) {
  for (const Shape& mnk :
       {Shape{32, 512, 784}, Shape{32, 10, 512}, Shape{256, 512, 512}, Shape{300, 65, 256},
        Shape{130, 256, 1024}, Shape{64, 84, 120}, Shape{256, 256, 1500}}) {
    const Shape x{mnk[0], mnk[2]}, w{mnk[2], mnk[1]};
    check_product({.op = "MatMul", .inputs = {x, w}, .orders = {{0, 1}, {1, 0}}});  // forward
    check_product(
        {.op = "MatMul", .inputs = {{mnk[0], mnk[1]}, {mnk[1], mnk[2]}}});  // data gradient
    check_product({.op = "MatMul", .inputs = {{mnk[1], mnk[0]}, x}, .orders = {{1, 0}, {0, 1}}});
  }
}

// Epilogues whose batch axes do not become rows: each product has its own part of the mask.
TEST(Gemm, BatchesInAnyOrder) {
  const std::vector<std::vector<int>> orders{{1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}};
  for (const std::vector<int>& order : orders) {
    for (const Shape& a : {Shape{4, 33, 16}, Shape{5, 1, 16}, Shape{4, 3, 1}}) {
      for (const std::int64_t n : {20, 1}) {
        const Shape b{a[2], n}, y{a[0], a[1], n};
        for (const std::vector<int>& turn : {std::vector<int>{0, 1}, {1, 0}}) {
          check_product({.op = "Gemm",
                         .inputs = {a, b, {n}, y},
                         .attributes = {{"activation", std::string("ReluGrad")}},
                         .absent = {2},
                         .orders = {order, turn},
                         .kernels = {"simd.gemm"}});
          check_product({.op = "Gemm",
                         .inputs = {a, b, {n}, y},
                         .attributes = {{"activation", std::string("Relu")}},
                         .absent = {3},
                         .orders = {order, turn},
                         .kernels = {"simd.gemm"}});
        }
      }
    }
  }
  check_product({.op = "Gemm",
                 .inputs = {{2, 3, 5, 7}, {7, 9}, {9}, {2, 3, 5, 9}},
                 .attributes = {{"activation", std::string("ReluGrad")}},
                 .absent = {2},
                 .orders = {{1, 0, 2, 3}}});
}

TEST(MatMul, NothingToSum) {
  check_product({.op = "MatMul", .inputs = {{3, 0}, {0, 4}}});
  check_product({.op = "MatMul", .inputs = {{0, 3}, {3, 4}}});
}

}  // namespace
}  // namespace tandem::testing
