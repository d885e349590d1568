// Convolutions and their gradients on every kernel and layout.
#include <gtest/gtest.h>

#include "tests/kernels/product_check.h"

namespace tandem::testing {
namespace {

struct ConvShape {
  Shape x, weight;
  Ints strides, pads, dilations = {1, 1};
  std::int64_t group = 1;
};

Shape output_of(const ConvShape& c) {
  Shape y{c.x[0], c.weight[0]};
  const std::size_t rank = c.x.size() - 2;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t window = (c.weight[i + 2] - 1) * c.dilations[i] + 1;
    y.push_back((c.x[i + 2] + c.pads[i] + c.pads[i + rank] - window) / c.strides[i] + 1);
  }
  return y;
}

void check_all_passes(const ConvShape& c, const std::vector<std::string>& kernels = {}) {
  const Shape y = output_of(c);
  const auto attributes = [&] { return conv_attributes(c.strides, c.pads, c.dilations, c.group); };
  check_product({.op = "Conv",
                 .inputs = {c.x, c.weight, {c.weight[0]}},
                 .attributes = attributes(),
                 .kernels = kernels});
  check_product({.op = "Conv", .inputs = {c.x, c.weight}, .attributes = attributes()});
  Attributes to_x = attributes(), to_weight = attributes();
  to_x.set("shape", c.x);
  to_weight.set("shape", c.weight);
  check_product(
      {.op = "ConvGradInput", .inputs = {y, c.weight}, .attributes = to_x, .kernels = kernels});
  check_product(
      {.op = "ConvGradWeight", .inputs = {c.x, y}, .attributes = to_weight, .kernels = kernels});
}

TEST(Conv, Pointwise) {
  check_all_passes({{3, 10, 5, 4}, {17, 10, 1, 1}, {1, 1}, {0, 0, 0, 0}}, {"simd.conv_pointwise"});
  check_all_passes({{8, 64, 4, 4}, {96, 64, 1, 1}, {1, 1}, {0, 0, 0, 0}}, {"simd.conv_pointwise"});
  check_all_passes({{4, 32, 8, 8}, {64, 32, 1, 1}, {2, 2}, {0, 0, 0, 0}});
}

TEST(Conv, PointwiseStridesOfFewChannels) {
  for (const Ints& strides : {Ints{2, 2}, Ints{1, 2}, Ints{2, 1}, Ints{1, 3}}) {
    for (const std::int64_t in : {1, 3, 5, 6, 8, 17}) {
      for (const std::int64_t out : {4, 8, 20}) {
        check_all_passes({{3, in, 8, 8}, {out, in, 1, 1}, strides, {0, 0, 0, 0}});
      }
    }
  }
  check_all_passes({{8, 3, 32, 32}, {64, 3, 1, 1}, {2, 2}, {0, 0, 0, 0}});
  check_all_passes({{2, 17, 35}, {12, 17, 1}, {2}, {0, 0}, {1}});
}

TEST(Conv, TinyMaps) {
  check_all_passes({{9, 48, 1, 1}, {40, 48, 3, 3}, {1, 1}, {1, 1, 1, 1}}, {"simd.conv_taps"});
  check_all_passes({{8, 32, 2, 2}, {64, 32, 3, 3}, {2, 2}, {1, 1, 1, 1}}, {"simd.conv_taps"});
  check_all_passes({{16, 64, 2, 2}, {32, 64, 3, 3}, {1, 1}, {1, 1, 1, 1}}, {"simd.conv_taps"});
  check_all_passes({{8, 32, 4, 4}, {64, 32, 3, 3}, {2, 2}, {1, 1, 1, 1}}, {"simd.conv_taps"});
  check_all_passes({{8, 32, 4, 4}, {48, 32, 3, 3}, {1, 1}, {1, 1, 1, 1}});
  check_all_passes({{8, 32, 4, 4}, {32, 32, 1, 1}, {2, 2}, {0, 0, 0, 0}}, {"simd.conv_taps"});
  // Some taps never meet any position.
  check_all_passes({{8, 32, 1, 1}, {32, 32, 3, 3}, {2, 2}, {2, 2, 2, 2}, {2, 2}},
                   {"simd.conv_taps"});
}

TEST(Conv, LargerMaps) {
  check_all_passes({{2, 3, 17, 15}, {16, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}});
  check_all_passes({{2, 32, 9, 8}, {48, 32, 3, 3}, {1, 1}, {1, 1, 1, 1}});
  check_all_passes({{2, 32, 9, 8}, {48, 32, 3, 3}, {2, 2}, {1, 1, 1, 1}});
  check_all_passes({{2, 5, 11, 9}, {7, 5, 3, 2}, {1, 2}, {1, 0, 0, 1}, {2, 1}});
}

TEST(Conv, LeNet) {
  check_all_passes({{4, 1, 28, 28}, {6, 1, 5, 5}, {1, 1}, {2, 2, 2, 2}});
  check_all_passes({{4, 6, 14, 14}, {16, 6, 5, 5}, {1, 1}, {0, 0, 0, 0}});
}

TEST(Conv, Groups) {
  check_all_passes({{2, 12, 7, 7}, {18, 4, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 3});
  check_all_passes({{2, 32, 7, 7}, {32, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 32});
}

void check_weight_gradient(const ConvShape& c, const std::string& kernel) {
  Attributes to_weight = conv_attributes(c.strides, c.pads, c.dilations, c.group);
  to_weight.set("shape", c.weight);
  check_product({.op = "ConvGradWeight",
                 .inputs = {c.x, output_of(c)},
                 .attributes = to_weight,
                 .kernels = {kernel}});
}

/// Tiles of channels: incomplete tiles, one vector after pairs of them, windows over all borders
/// and beyond the map, strides, several blocks of rows, few tiles for many threads, one pixel.
TEST(Conv, WeightsByTiles) {
  const auto check = [](const ConvShape& c) { check_weight_gradient(c, "simd.conv_weights"); };
  check({{3, 19, 7, 6}, {48, 19, 3, 3}, {1, 1}, {1, 1, 1, 1}});
  check({{1, 16, 24, 23}, {32, 16, 3, 3}, {2, 2}, {1, 1, 1, 1}});
  check({{2, 33, 12, 15}, {80, 33, 5, 5}, {2, 1}, {2, 0, 1, 3}});
  check({{2, 29, 16, 16}, {32, 29, 2, 2}, {2, 2}, {0, 0, 0, 0}});
  check({{1, 24, 9, 9}, {32, 24, 7, 7}, {1, 1}, {3, 3, 3, 3}});
  check({{2, 17, 3, 2}, {64, 17, 7, 7}, {1, 1}, {3, 3, 3, 3}});
  check({{2, 20, 11, 10}, {32, 20, 3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}});
  check({{2, 20, 11, 10}, {32, 20, 3, 2}, {3, 2}, {0, 1, 2, 0}, {1, 3}});
  check({{1, 16, 1, 1}, {32, 16, 3, 3}, {1, 1}, {1, 1, 1, 1}});
  check({{5, 96, 32, 40}, {32, 96, 3, 3}, {1, 1}, {1, 1, 1, 1}});
  check({{6, 16, 40, 40}, {32, 16, 1, 3}, {1, 1}, {0, 1, 0, 1}});
  check({{3, 160, 10, 11}, {144, 160, 3, 3}, {1, 1}, {1, 1, 1, 1}});
}

/// One window per channel: windows over all borders, incomplete vectors, more and fewer vectors
/// than threads.
TEST(Conv, Depthwise) {
  const auto check = [](const ConvShape& c) { check_weight_gradient(c, "simd.conv_depthwise"); };
  check({{3, 19, 7, 6}, {19, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 19});
  check({{5, 40, 9, 8}, {40, 1, 3, 3}, {2, 1}, {1, 0, 1, 2}, {1, 1}, 40});
  check({{3, 16, 8, 8}, {16, 1, 5, 5}, {2, 2}, {2, 2, 2, 2}, {1, 1}, 16});
  check({{4, 130, 2, 2}, {130, 1, 5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}, 130});
  check({{2, 8, 9, 9}, {8, 1, 3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}, 8});
  check({{16, 16, 16, 16}, {16, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 16});
  check_all_passes({{2, 24, 6, 6}, {24, 1, 5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}, 24});
}

TEST(Conv, OneAndThreeAxes) {
  check_all_passes({{3, 8, 20}, {12, 8, 3}, {2}, {1, 1}, {1}});
  check_all_passes({{2, 4, 5, 6, 7}, {6, 4, 2, 3, 3}, {1, 2, 1}, {0, 1, 1, 0, 1, 1}, {1, 1, 1}});
}

TEST(Conv, WideMaps) {
  check_all_passes({{1, 2, 1, 33000}, {3, 2, 1, 3}, {1, 1}, {0, 1, 0, 1}});
  check_all_passes({{1, 16, 33000}, {16, 16, 3}, {1}, {1, 1}, {1}});
  check_all_passes({{1, 4, 33000}, {4, 2, 3}, {1}, {1, 1}, {2}, 2});
}

TEST(ConvFused, Epilogues) {
  struct Fused {
    Shape x, weight, y;
    Ints strides, pads;
  };
  for (const Fused& c :
       {Fused{{8, 64, 4, 4}, {96, 64, 1, 1}, {8, 96, 4, 4}, {1, 1}, {0, 0, 0, 0}},
        Fused{{8, 32, 2, 2}, {64, 32, 3, 3}, {8, 64, 2, 2}, {1, 1}, {1, 1, 1, 1}},
        Fused{{2, 32, 9, 8}, {48, 32, 3, 3}, {2, 48, 9, 8}, {1, 1}, {1, 1, 1, 1}},
        Fused{{4, 1, 28, 28}, {6, 1, 5, 5}, {4, 6, 28, 28}, {1, 1}, {2, 2, 2, 2}}}) {
    for (const char* activation : {"", "Relu"}) {
      for (int absent = 0; absent < 4; ++absent) {
        Attributes attributes = conv_attributes(c.strides, c.pads);
        attributes.set("activation", std::string(activation));
        ProductCase product{.op = "ConvFused",
                            .inputs = {c.x, c.weight, {c.weight[0]}, c.y},
                            .attributes = attributes};
        if (absent & 1) product.absent.push_back(2);
        if (absent & 2) product.absent.push_back(3);
        check_product(product);
      }
    }
  }
}

}  // namespace
}  // namespace tandem::testing
