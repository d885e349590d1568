// Rows of what transformers have besides attention, with its meaning in double arithmetic.
#include <cmath>

#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<VersionRow>;

// Two rows of two numbers, over the last axis and over both.
void add_rms_normalization(Rows& rows) {
  const Numbers x{1, 2, -3, 0.5};
  for (DType dtype : {f32, f64, f16, bf16}) {
    Numbers last, both;
    for (std::size_t i = 0; i < 4; ++i) {
      const double a = x[i / 2 * 2], b = x[i / 2 * 2 + 1], scale = i % 2 == 0 ? 2 : -0.5;
      last.push_back(scale * x[i] / std::sqrt((a * a + b * b) / 2 + 1e-5));
      both.push_back(scale * x[i] / std::sqrt((1 + 4 + 9 + 0.25) / 4 + 0.25));
    }
    const std::vector<HostTensor> inputs{typed(dtype, {2, 2}, x), typed(dtype, {2}, {2, -0.5})};
    rows.push_back(
        {.op = "RMSNormalization", .inputs = inputs, .outputs = {typed(dtype, {2, 2}, last)}});
    rows.push_back({.op = "RMSNormalization",
                    .inputs = inputs,
                    .attributes = {{"axis", 0}, {"epsilon", 0.25}},
                    .outputs = {typed(dtype, {2, 2}, both)},
                    .note = "all axes"});
  }
  rows.push_back({.op = "RMSNormalization",
                  .inputs = {typed(f16, {1, 2}, {300, 400}), floats({2}, {1, 2})},
                  .outputs = {floats({1, 2}, {0.848528137, 2.26274170})},
                  .note = "squares beyond float16, a scale of another type"});
  rows.push_back({.op = "RMSNormalization",
                  .inputs = {floats({2, 2}, x), floats({3}, {1, 1, 1})},
                  .note = "scale that does not fit",
                  .refused = "a shape that broadcasts"});
}

// One head of four numbers at two places.
void add_rotary_embedding(Rows& rows) {
  const Numbers x{1, 2, 3, 4, -1, 0.5, 2, -2};
  const Numbers cos{1, 0.5, -0.5, 0.25}, sin{0, 2, 0.75, -1};  // [place, pair]
  for (DType dtype : {f32, f16, bf16}) {
    for (const bool interleaved : {false, true}) {
      Numbers y(8);
      for (std::size_t place = 0; place < 2; ++place) {
        for (std::size_t pair = 0; pair < 2; ++pair) {
          const std::size_t first = 4 * place + (interleaved ? 2 * pair : pair);
          const std::size_t second = first + (interleaved ? 1 : 2);
          const double c = cos[2 * place + pair], s = sin[2 * place + pair];
          y[first] = c * x[first] - s * x[second];
          y[second] = s * x[first] + c * x[second];
        }
      }
      const std::string note = interleaved ? "neighbours" : "halves";
      rows.push_back({.op = "RotaryEmbedding",
                      .inputs = {typed(dtype, {1, 1, 2, 4}, x), typed(dtype, {1, 2, 2}, cos),
                                 typed(dtype, {1, 2, 2}, sin)},
                      .attributes = {{"interleaved", std::int64_t{interleaved}}},
                      .outputs = {typed(dtype, {1, 1, 2, 4}, y)},
                      .note = note});
      const Numbers turned_cos{cos[2], cos[3], cos[0], cos[1]};
      const Numbers turned_sin{sin[2], sin[3], sin[0], sin[1]};
      rows.push_back({.op = "RotaryEmbedding",
                      .inputs = {typed(dtype, {1, 2, 4}, x), typed(dtype, {2, 2}, turned_cos),
                                 typed(dtype, {2, 2}, turned_sin), integers({1, 2}, {1, 0})},
                      .attributes = {{"interleaved", std::int64_t{interleaved}}, {"num_heads", 1}},
                      .outputs = {typed(dtype, {1, 2, 4}, y)},
                      .note = note + ", positions"});
    }
  }
  rows.push_back({.op = "RotaryEmbedding",
                  .inputs = {floats({1, 1, 1, 4}, {1, 2, 3, 4}), floats({1, 1, 1}, {0.5}),
                             floats({1, 1, 1}, {2})},
                  .attributes = {{"rotary_embedding_dim", 2}},
                  .outputs = {floats({1, 1, 1, 4}, {-3.5, 3, 3, 4})},
                  .note = "a part of each head"});
  rows.push_back({.op = "RotaryEmbedding",
                  .inputs = {floats({1, 1, 1, 4}, {1, 2, 3, 4}), floats({1, 1, 1}, {0.5}),
                             floats({1, 1, 1}, {2})},
                  .note = "too few angles",
                  .refused = "half of the 4 rotated numbers"});
}

void add_swiglu(Rows& rows) {
  for (DType dtype : {f32, f64, f16, bf16}) {
    const HostTensor a = typed(dtype, {2, 2}, {-2, 0, 0.5, 3}),
                     b = typed(dtype, {2, 2}, {1, 2, -4, 0.25});
    for (const double alpha : {1.0, 0.5}) {
      const HostTensor y = map(a, b, dtype, [&](double x, double factor) {
        return factor * x / (1 + std::exp(-alpha * x));
      });
      rows.push_back({.op = "SwiGLU",
                      .inputs = {a, b},
                      .attributes = {{"alpha", alpha}},
                      .outputs = {y},
                      .note = alpha == 1 ? "" : "alpha"});
    }
  }
}

// One channel with a kernel of three.
void add_causal_conv(Rows& rows) {
  for (DType dtype : {f32, f16, bf16}) {
    const HostTensor x = typed(dtype, {1, 1, 3}, {1, 2, 3}),
                     w = typed(dtype, {1, 1, 3}, {0.5, -1, 2}), absent;
    rows.push_back(
        {.op = "CausalConvWithState",
         .inputs = {x, w},
         .outputs = {typed(dtype, {1, 1, 3}, {2, 3, 4.5}), typed(dtype, {1, 1, 2}, {2, 3})}});
    rows.push_back(
        {.op = "CausalConvWithState",
         .inputs = {x, w, typed(dtype, {1}, {1}), typed(dtype, {1, 1, 2}, {4, -2})},
         .outputs = {typed(dtype, {1, 1, 3}, {7, 3, 5.5}), typed(dtype, {1, 1, 2}, {2, 3})},
         .note = "state and bias"});
  }
  rows.push_back({.op = "CausalConvWithState",
                  .inputs = {floats({1, 1, 1}, {2}), floats({1, 1, 2}, {-4, 1.5})},
                  .attributes = {{"activation", std::string("swish")}},
                  .outputs = {floats({1, 1, 1}, {3 / (1 + std::exp(-3))}), floats({1, 1, 1}, {2})},
                  .note = "swish"});
}

// Two steps of one head: keys of two numbers, values of one.
void add_linear_attention(Rows& rows) {
  for (DType dtype : {f32, f16, bf16}) {
    const HostTensor q = typed(dtype, {1, 2, 2}, {1, 2, -1, 0.5}),
                     k = typed(dtype, {1, 2, 2}, {0.5, 1, 2, -1}),
                     v = typed(dtype, {1, 2, 1}, {2, 3}), absent;
    const auto add = [&](const char* rule, const std::vector<HostTensor>& more, const Numbers& y,
                         const Numbers& state) {
      std::vector<HostTensor> inputs{q, k, v};
      inputs.insert(inputs.end(), more.begin(), more.end());
      rows.push_back({.op = "LinearAttention",
                      .inputs = inputs,
                      .attributes = {{"q_num_heads", 1},
                                     {"kv_num_heads", 1},
                                     {"scale", 1.0},
                                     {"update_rule", std::string(rule)}},
                      .outputs = {typed(dtype, {1, 2, 1}, y), typed(dtype, {1, 1, 2, 1}, state)},
                      .note = rule});
    };
    // (1, 2), then (1, 2) + 3 (2, -1)
    add("linear", {}, {5, -7.5}, {7, -1});
    const double half = std::log(0.5);
    const HostTensor past = typed(dtype, {1, 1, 2, 1}, {4, 0}),
                     decay = typed(dtype, {1, 2, 1}, {half, half}),
                     rate = typed(dtype, {1, 2, 1}, {1, 0.5});
    // (4, 0) / 2 + (1, 2), then half of that + (6, -3)
    add("gated", {past, decay}, {7, -8.5}, {7.5, -2});
    // rates 1 and 0.5; the state (1, 2) predicts 0 for the second key
    add("delta", {absent, absent, rate}, {5, -3.75}, {4, 0.5});
    if (dtype == bf16) continue;  // its log(0.5) is 0.2 % off, twice
    // (2, 0) predicts 1 for the first key: (2, 0) + (0.5, 1); (1.25, 0.5) predicts 2 for the second
    add("gated_delta", {past, decay, typed(dtype, {1, 2, 1}, {1, 1})}, {4.5, -3.5}, {3.25, -0.5});
  }
}

// A cache of three places for each of two samples.
void add_tensor_scatter(Rows& rows) {
  for (DType dtype : {f32, f64, f16, bf16, DType::int32, DType::int64}) {
    const HostTensor cache = typed(dtype, {2, 3, 1}, {1, 2, 3, 4, 5, 6}),
                     update = typed(dtype, {2, 2, 1}, {7, 8, 9, 10});
    rows.push_back({.op = "TensorScatter",
                    .inputs = {cache, update},
                    .outputs = {typed(dtype, {2, 3, 1}, {7, 8, 3, 9, 10, 6})}});
    rows.push_back({.op = "TensorScatter",
                    .inputs = {cache, update, integers({2}, {1, 0})},
                    .outputs = {typed(dtype, {2, 3, 1}, {1, 7, 8, 9, 10, 6})},
                    .note = "places"});
    rows.push_back({.op = "TensorScatter",
                    .inputs = {cache, update, integers({2}, {2, 1})},
                    .attributes = {{"mode", std::string("circular")}},
                    .outputs = {typed(dtype, {2, 3, 1}, {8, 2, 7, 4, 9, 10})},
                    .note = "circular"});
    rows.push_back({.op = "TensorScatter",
                    .inputs = {typed(dtype, {1, 2, 3}, {1, 2, 3, 4, 5, 6}),
                               typed(dtype, {1, 2, 1}, {7, 8}), integers({1}, {2})},
                    .attributes = {{"axis", 2}},
                    .outputs = {typed(dtype, {1, 2, 3}, {1, 2, 7, 4, 5, 8})},
                    .note = "last axis"});
  }
  rows.push_back({.op = "TensorScatter",
                  .inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({2, 1}, {7, 8})},
                  .attributes = {{"axis", 0}},
                  .note = "axis of the samples",
                  .refused = "one axis after the first"});
}

}  // namespace

void add_transformers_rows(std::vector<VersionRow>& rows) {
  add_rms_normalization(rows);
  add_rotary_embedding(rows);
  add_swiglu(rows);
  add_causal_conv(rows);
  add_linear_attention(rows);
  add_tensor_scatter(rows);
}

}  // namespace tandem::testing
