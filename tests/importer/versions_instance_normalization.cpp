// Rows of normalizations over channels, groups of them, lines and neighbours; what they mean in
// double arithmetic.
#include <cmath>

#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<VersionRow>;

// Parts of `length` elements that follow each other, each with mean 0 and variance 1.
Numbers normalised(const Numbers& x, std::size_t length, double epsilon) {
  Numbers y = x;
  const auto count = static_cast<double>(length);
  for (std::size_t first = 0; first < x.size(); first += length) {
    double mean = 0, variance = 0;
    for (std::size_t i = first; i < first + length; ++i) mean += x[i] / count;
    for (std::size_t i = first; i < first + length; ++i) {
      variance += (x[i] - mean) * (x[i] - mean) / count;
    }
    for (std::size_t i = first; i < first + length; ++i) {
      y[i] = (x[i] - mean) / std::sqrt(variance + epsilon);
    }
  }
  return y;
}

// x [2, 2, 3]: the channel of element i is i / 3 % 2.
void add_instances_and_groups(Rows& rows) {
  const Numbers x{1, 2, 4, 5, -1, 0, 3, 6, -2, 8, 1, 1}, scale{2, -0.5}, bias{1, -1};
  const auto affine = [&](Numbers y) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = y[i] * scale[i / 3 % 2] + bias[i / 3 % 2];
    return y;
  };
  Numbers of_one_group = normalised(x, 6, 0.5);
  for (double& y : of_one_group) y = y * 3 + 0.5;
  for (DType dtype : {f32, f64, bf16}) {
    const std::vector<HostTensor> inputs{typed(dtype, {2, 2, 3}, x), typed(dtype, {2}, scale),
                                         typed(dtype, {2}, bias)};
    rows.push_back({.op = "InstanceNormalization",
                    .inputs = inputs,
                    .outputs = {typed(dtype, {2, 2, 3}, affine(normalised(x, 3, 1e-5)))}});
    rows.push_back({.op = "InstanceNormalization",
                    .inputs = {typed(dtype, {2, 2, 1, 3}, x), inputs[1], inputs[2]},
                    .attributes = {{"epsilon", 0.5}},
                    .outputs = {typed(dtype, {2, 2, 1, 3}, affine(normalised(x, 3, 0.5)))},
                    .note = "epsilon"});
    rows.push_back({.op = "GroupNormalization",
                    .last = 18,
                    .inputs = {inputs[0], typed(dtype, {1}, {3}), typed(dtype, {1}, {0.5})},
                    .attributes = {{"num_groups", 1}, {"epsilon", 0.5}},
                    .outputs = {typed(dtype, {2, 2, 3}, of_one_group)},
                    .note = "a scale for each group"});
    rows.push_back({.op = "GroupNormalization",
                    .first = 21,
                    .inputs = inputs,
                    .attributes = {{"num_groups", 1}, {"epsilon", 0.5}},
                    .outputs = {typed(dtype, {2, 2, 3}, affine(normalised(x, 6, 0.5)))},
                    .note = "all channels together"});
    rows.push_back({.op = "GroupNormalization",
                    .first = 21,
                    .inputs = inputs,
                    .attributes = {{"num_groups", 2}},
                    .outputs = {typed(dtype, {2, 2, 3}, affine(normalised(x, 3, 1e-5)))},
                    .note = "each channel alone"});
  }
  // The deviation gets 1e-9 more, which double shows.
  const double one = 1 / (1 + 1e-9);
  for (DType dtype : {f32, f64, bf16}) {
    rows.push_back({.op = "MeanVarianceNormalization",
                    .inputs = {typed(dtype, {2, 2}, {1, 3, 5, 3})},
                    .attributes = {{"axes", Axes{-1}}},
                    .outputs = {typed(dtype, {2, 2}, {-one, one, one, -one})},
                    .note = "one axis"});
    rows.push_back({.op = "MeanVarianceNormalization",
                    .inputs = {typed(dtype, {1, 3, 1, 2}, {1, 3, 4, 4, 5, 3})},
                    .outputs = {typed(dtype, {1, 3, 1, 2}, {-one, one, 0, 0, one, -one})},
                    .note = "all axes but the channels"});
  }
  rows.push_back(
      {.op = "GroupNormalization",
       .inputs = {floats({1, 3, 2}, Numbers(6)), floats({3}, Numbers(3)), floats({3}, Numbers(3))},
       .attributes = {{"num_groups", 2}},
       .note = "groups that do not divide",
       .refused = "num_groups"});
}

void add_lines_and_neighbours(Rows& rows) {
  for (DType dtype : {f32, f64, bf16}) {
    const HostTensor x = typed(dtype, {2, 2}, {3, -4, 0, 0});
    rows.push_back({.op = "LpNormalization",
                    .inputs = {x},
                    .outputs = {typed(dtype, {2, 2}, {0.6, -0.8, 0, 0})},
                    .note = "length 1; zeros stay"});
    rows.push_back({.op = "LpNormalization",
                    .inputs = {x},
                    .attributes = {{"p", 1}, {"axis", 0}},
                    .outputs = {typed(dtype, {2, 2}, {1, -1, 0, 0})},
                    .note = "sums of 1"});
    // Four channels {1, 2, 3, 4} have the squares 1, 4, 9, 16; a sum has one before and two after.
    const Numbers sums{14, 30, 29, 25};
    Numbers y{1, 2, 3, 4};
    for (std::size_t i = 0; i < 4; ++i) y[i] /= std::pow(2 + 0.5 / 4 * sums[i], 0.625);
    rows.push_back({.op = "LRN",
                    .inputs = {typed(dtype, {1, 4, 1, 1}, {1, 2, 3, 4})},
                    .attributes = {{"size", 4}, {"alpha", 0.5}, {"beta", 0.625}, {"bias", 2.0}},
                    .outputs = {typed(dtype, {1, 4, 1, 1}, y)},
                    .note = "even size"});
    for (std::size_t i = 0; i < 4; ++i) {
      const double own = static_cast<double>(i + 1);
      y[i] = own / std::pow(1 + 1e-4 * own * own, 0.75);
    }
    rows.push_back({.op = "LRN",
                    .inputs = {typed(dtype, {1, 4, 1, 1}, {1, 2, 3, 4})},
                    .attributes = {{"size", 1}},
                    .outputs = {typed(dtype, {1, 4, 1, 1}, y)},
                    .note = "each channel alone"});
  }
}

}  // namespace

void add_instance_normalization_rows(std::vector<VersionRow>& rows) {
  add_instances_and_groups(rows);
  add_lines_and_neighbours(rows);
}

}  // namespace tandem::testing
