// LayerNormalization and its gradient against the reference.
#include <gtest/gtest.h>

#include "tests/kernels/pointwise_check.h"

namespace tandem::testing {
namespace {

TEST(LayerNormalization, ForwardAndGradient) {
  for (const auto& [shape, axis] : std::vector<std::pair<Shape, std::int64_t>>{{{64, 256}, 1},
                                                                               {{7, 33}, 1},
                                                                               {{3, 5, 17}, 1},
                                                                               {{2, 3, 2500}, 2},
                                                                               {{600, 10}, 1},
                                                                               {{1, 9}, 0},
                                                                               {{5, 1}, 1}}) {
    const Shape affine(shape.begin() + axis, shape.end());
    Shape statistics = shape;
    std::fill(statistics.begin() + axis, statistics.end(), 1);
    const NodeInput x{random_tensor(shape, 1, -1, 3)}, scale{random_tensor(affine, 2)},
        bias{random_tensor(affine, 3)};
    const Attributes attributes{{"axis", axis}, {"epsilon", 1e-5}};
    check({"LayerNormalization", {x, scale, bias}, attributes});
    check({.op = "LayerNormalization",
           .inputs = {x, scale},
           .attributes = attributes,
           .unread = {1, 2}});
    const NodeInput mean{random_tensor(statistics, 4)}, rstd{random_tensor(statistics, 5, 0.5, 2)};
    check({"LayerNormalizationGrad",
           {{random_tensor(shape, 6)}, x, scale, mean, rstd},
           {{"axis", axis}}});
    check({.op = "LayerNormalizationGrad",
           .inputs = {{random_tensor(shape, 6)}, x, scale, mean, rstd},
           .attributes = {{"axis", axis}},
           .unread = {0}});
  }
}

// A large mean must not make the variance inexact.
TEST(LayerNormalization, LargeMean) {
  check({.op = "LayerNormalization",
         .inputs = {{random_tensor({9, 300}, 1, 999, 1001)}, {random_tensor({300}, 2)}},
         .attributes = {{"axis", std::int64_t{1}}, {"epsilon", 1e-5}},
         .unread = {1},
         .tolerance = 2e-4});
}

}  // namespace
}  // namespace tandem::testing
