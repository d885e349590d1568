// Batch normalisation in inference and training, and its gradient, against the reference.
#include <gtest/gtest.h>

#include "tests/kernels/pointwise_check.h"

namespace tandem::testing {
namespace {

TEST(BatchNormalization, BothLayouts) {
  for (const Shape& shape : std::vector<Shape>{
           {8, 64, 9, 7}, {3, 5, 4, 4}, {32, 512, 1, 1}, {64, 33}, {4, 17, 50}, {2, 3, 33, 40}}) {
    const std::int64_t c = shape[1];
    const Attributes attributes{{"epsilon", 1e-5}, {"momentum", 0.9}};
    const NodeInput scale{random_tensor({c}, 2)}, bias{random_tensor({c}, 3)},
        mean{random_tensor({c}, 4)}, var{random_tensor({c}, 5, 0.5, 2)};
    std::vector<std::optional<Layout>> layouts{std::nullopt};
    if (shape.size() > 2) layouts.push_back(channels_last(shape));
    for (const auto& layout : layouts) {
      const NodeInput x{random_tensor(shape, 1, 1, 3), layout}, dy{random_tensor(shape, 6), layout};
      check({.op = "BatchNormalization",
             .inputs = {x, scale, bias, mean, var},
             .attributes = {{"epsilon", 1e-5}},
             .output_layouts = {layout}});
      check({.op = "BatchNormalizationTraining",
             .inputs = {x, scale, bias, mean, var},
             .attributes = attributes,
             .output_layouts = {layout}});
      check({.op = "BatchNormalizationTraining",
             .inputs = {x, scale, bias, mean, var},
             .attributes = attributes,
             .output_layouts = {layout},
             .in_place = true});
      check({.op = "BatchNormalizationGrad",
             .inputs = {dy, x, scale, mean, var},
             .attributes = {{"epsilon", 1e-5}},
             .output_layouts = {layout},
             .tolerance = 2e-5});
    }
  }
}

// The statistics take one pass; a mean far above the deviation must not make them inexact.
TEST(BatchNormalization, LargeMean) {
  const Shape shape{16, 8, 20, 20};
  for (const Layout& layout : {row_major(shape), channels_last(shape)}) {
    check({.op = "BatchNormalizationTraining",
           .inputs = {{random_tensor(shape, 1, 99, 101), layout},
                      {random_tensor({8}, 2)},
                      {random_tensor({8}, 3)},
                      {random_tensor({8}, 4)},
                      {random_tensor({8}, 5)}},
           .attributes = {{"epsilon", 1e-5}, {"momentum", 0.9}},
           .output_layouts = {layout},
           .tolerance = 5e-5});
  }
}

}  // namespace
}  // namespace tandem::testing
