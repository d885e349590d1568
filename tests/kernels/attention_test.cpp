// Attention and its gradient against the reference: odd sizes, masks, causal, strided operands.
#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/pointwise_check.h"

namespace tandem::testing {
namespace {

struct Sizes {
  std::int64_t b, h, s, t, d, e;
};

// Heads side by side in each row, as a product of [B S, 3 H D] leaves them.
Layout in_rows(const Shape& shape, std::int64_t width) {
  return {0, {shape[2] * width, shape[3], width, 1}};
}

void check_attention(const Sizes& n, bool causal, std::optional<HostTensor> mask, bool strided) {
  const Shape q{n.b, n.h, n.s, n.d}, k{n.b, n.h, n.t, n.d}, v{n.b, n.h, n.t, n.e},
      y{n.b, n.h, n.s, n.e};
  const auto input = [&](const Shape& shape, unsigned seed) {
    NodeInput x{random_tensor(shape, seed)};
    if (strided) x.layout = in_rows(shape, n.h * shape[3] * 3);
    return x;
  };
  const auto layout = [&](const Shape& shape) -> std::optional<Layout> {
    if (!strided) return std::nullopt;
    return in_rows(shape, n.h * shape[3]);
  };
  const Attributes attributes{{"scale", 0.7}, {"causal", std::int64_t{causal}}};
  std::vector<NodeInput> inputs{input(q, 1), input(k, 2), input(v, 3)};
  if (mask) inputs.push_back({*mask});
  const std::vector<std::string> sets{"avx512", "avx2"};
  check({.op = "Attention",
         .inputs = inputs,
         .attributes = attributes,
         .output_layouts = {layout(y)},
         .features = sets});
  inputs.insert(inputs.begin(), input(y, 4));
  inputs.insert(inputs.begin() + 4, {input(y, 5), {random_tensor({n.b, n.h, n.s}, 6, 2, 4)}});
  check({.op = "AttentionGrad",
         .inputs = inputs,
         .attributes = attributes,
         .output_layouts = {layout(q), layout(k), layout(v)},
         .features = sets});
}

TEST(Attention, Sizes) {
  for (const Sizes& n : {Sizes{2, 3, 128, 128, 64, 64},
                         {1, 2, 33, 70, 16, 24},
                         {2, 1, 1, 5, 3, 7},
                         {1, 1, 100, 600, 8, 8},
                         {1, 2, 70, 33, 4, 4}}) {
    for (bool causal : {false, true}) {
      check_attention(n, causal, std::nullopt, false);
      check_attention(n, causal, std::nullopt, true);
    }
  }
}

TEST(Attention, Masks) {
  const Sizes n{2, 2, 37, 300, 8, 8};
  for (const Shape& shape :
       {Shape{2, 2, 37, 300}, Shape{37, 300}, Shape{2, 1, 1, 300}, Shape{2, 1, 37, 1}}) {
    HostTensor mask = random_tensor(shape, 8);
    auto numbers = mask.as<float>();
    for (std::size_t i = 0; i < numbers.size(); i += 3)
      numbers[i] = -std::numeric_limits<float>::infinity();
    for (bool causal : {false, true}) check_attention(n, causal, mask, true);
  }
}

}  // namespace
}  // namespace tandem::testing
