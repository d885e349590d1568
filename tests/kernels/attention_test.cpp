// Attention and its gradient against the reference: odd sizes, masks, causal, strided operands.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/pointwise_check.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

struct Sizes {
  std::int64_t b, h, s, t, d, e;
};

// Heads next to each other in each row, as a product of [B S, 3 H D] leaves them.
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
  std::vector<HostTensor> tensors;
  std::vector<std::pair<std::string, HostTensor>> feeds;
  for (const NodeInput& x : inputs) {
    feeds.emplace_back("x" + std::to_string(tensors.size()), x.tensor);
    tensors.push_back(x.tensor);
  }
  const Graph forward = single_node("Attention", tensors, attributes);
  const auto results = evaluate(forward, feeds, forward.nodes[0].outputs);
  inputs.insert(inputs.begin(), input(y, 4));
  NodeInput saved{results[0]};
  if (strided) saved.layout = in_rows(y, n.h * n.e * 3);
  inputs.insert(inputs.begin() + 4, {saved, {results[1]}});
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

/// The formula as PyTorch has it in float32: the mask is added to scores before anything is
/// subtracted from them, so that with -1e30 all keys are alike. This one is in double, for one
/// query, except for the sum of score and mask; `low` hides every key.
struct Formula {
  std::vector<double> y, dq, dk, dv;

  Formula(const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& v,
          const std::vector<double>& dy, float low) {
    const std::size_t d = q.size(), e = dy.size(), keys = k.size() / d;
    std::vector<double> p(keys), dp(keys);
    double largest = -INFINITY, sum = 0, mean = 0;
    for (std::size_t j = 0; j < keys; ++j) {
      double score = 0;
      for (std::size_t c = 0; c < d; ++c) score += q[c] * k[j * d + c];
      p[j] = static_cast<double>(static_cast<float>(score) + low);
      largest = std::max(largest, p[j]);
    }
    for (double& x : p) sum += x = std::exp(x - largest);
    y.assign(e, 0), dq.assign(d, 0), dk.assign(keys * d, 0), dv.assign(keys * e, 0);
    for (std::size_t j = 0; j < keys; ++j) {
      p[j] /= sum;
      for (std::size_t c = 0; c < e; ++c) {
        y[c] += p[j] * v[j * e + c];
        dv[j * e + c] = p[j] * dy[c];
        dp[j] += dy[c] * v[j * e + c];
      }
      mean += p[j] * dp[j];
    }
    for (std::size_t j = 0; j < keys; ++j) {
      const double ds = p[j] * (dp[j] - mean);
      for (std::size_t c = 0; c < d; ++c) {
        dq[c] += ds * k[j * d + c];
        dk[j * d + c] = ds * q[c];
      }
    }
  }
};

// Scores are multiples of 1/64, which stay exact in float32 when -65504 is added.
TEST(Attention, RowsThatAFiniteMaskHides) {
  const std::int64_t d = 4, e = 3;
  const auto multiples = [](std::int64_t count, int seed) {
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < count; ++i)
      numbers.push_back(static_cast<double>((37 * i + 11 * seed) % 17 - 8) / 8);
    return numbers;
  };
  for (const std::int64_t keys : {1, 5, 300, 700}) {
    const std::vector<double> q = multiples(d, 1), k = multiples(keys * d, 2),
                              v = multiples(keys * e, 3), dy = multiples(e, 4);
    for (const float low : {-1e4f, -65504.0f, -1e30f, std::numeric_limits<float>::lowest()}) {
      SCOPED_TRACE(std::to_string(keys) + " keys, " + std::to_string(low));
      const Formula expected(q, k, v, dy, low);
      const auto floats = [](Shape shape, const std::vector<double>& numbers) {
        return HostTensor::from<double>(std::move(shape), numbers).converted(DType::float32);
      };
      const HostTensor qs = floats({1, 1, 1, d}, q), ks = floats({1, 1, keys, d}, k);
      const HostTensor vs = floats({1, 1, keys, e}, v), dys = floats({1, 1, 1, e}, dy);
      const HostTensor mask =
          floats({keys}, std::vector<double>(static_cast<std::size_t>(keys), low));
      const Attributes attributes{{"scale", 1.0}};
      const Graph forward = single_node("Attention", {qs, ks, vs, mask}, attributes);
      each_kernel(forward, [&](const Kernel& kernel) {
        const auto y = run_node(kernel, forward, forward.nodes[0], {qs, ks, vs, mask});
        EXPECT_EQ(compare(y[0], HostTensor::from<double>({1, 1, 1, e}, expected.y), 1e-5), "");
        const std::vector<HostTensor> inputs{dys, qs, ks, vs, y[0], y[1], mask};
        const Graph backward = single_node("AttentionGrad", inputs, attributes);
        each_kernel(backward, [&](const Kernel& gradient) {
          const auto dx = run_node(gradient, backward, backward.nodes[0], inputs);
          const auto expect = [&](std::size_t i, const std::vector<double>& numbers) {
            EXPECT_EQ(compare(dx[i], HostTensor::from<double>(dx[i].shape(), numbers), 1e-5), "");
          };
          expect(0, expected.dq);
          expect(1, expected.dk);
          expect(2, expected.dv);
        });
      });
    }
  }
}

// Masked rows among rows that show some keys, in blocks of queries and of keys.
TEST(Attention, FiniteMasks) {
  const Sizes n{1, 2, 150, 300, 8, 8};
  HostTensor mask = random_tensor({150, 300}, 8);
  auto numbers = mask.as<float>();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i / 300 % 7 == 3 || i % 5 == 0) numbers[i] = i / 300 % 2 == 0 ? -1e30f : -1e38f;
  }
  for (bool causal : {false, true}) check_attention(n, causal, mask, causal);
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
