// Rows of normalisation, Softmax, losses and attention; what they mean in double arithmetic.
#include <algorithm>
#include <cmath>

#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<VersionRow>;

struct MeanAndVariance {
  double mean = 0, variance = 0;  // over all elements, divided by their number
};
MeanAndVariance moments_of(const Numbers& x) {
  MeanAndVariance m;
  for (double v : x) m.mean += v / static_cast<double>(x.size());
  for (double v : x) m.variance += (v - m.mean) * (v - m.mean) / static_cast<double>(x.size());
  return m;
}

// Two channels of four numbers. The training form: four or more outputs to version 9, from 14 the
// attribute training_mode.
void add_batch_normalization(Rows& rows) {
  const Numbers x{1, 2, 4, 5, -1, 0, 3, 6};  // [2, 2, 2]: channel of element i is i / 2 % 2
  const Numbers scale{2, 0.5}, bias{1, -1}, mean{0.5, 1}, variance{4, 0.25};
  const double epsilon = 1.0 / 128, momentum = 0.75;
  const auto normalised = [&](const Numbers& means, const Numbers& variances) {
    Numbers y = x;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t c = i / 2 % 2;
      y[i] = scale[c] * (x[i] - means[c]) / std::sqrt(variances[c] + epsilon) + bias[c];
    }
    return y;
  };
  const auto operands = [&](DType dtype, DType statistics) {
    return std::vector<HostTensor>{typed(dtype, {2, 2, 2}, x), typed(dtype, {2}, scale),
                                   typed(dtype, {2}, bias), typed(statistics, {2}, mean),
                                   typed(statistics, {2}, variance)};
  };
  for (DType dtype : {f32, f64, bf16}) {
    for (bool training : {false, true}) {
      rows.push_back({.op = "BatchNormalization",
                      .inputs = operands(dtype, dtype),
                      .attributes = {{"epsilon", epsilon}},
                      .outputs = {typed(dtype, {2, 2, 2}, normalised(mean, variance))},
                      .note = "running statistics",
                      .training = training});
    }
  }
  rows.push_back({.op = "BatchNormalization",
                  .first = 14,
                  .inputs = operands(bf16, f32),
                  .attributes = {{"epsilon", epsilon}},
                  .outputs = {typed(bf16, {2, 2, 2}, normalised(mean, variance))},
                  .note = "statistics of another type"});
  const MeanAndVariance first = moments_of({x[0], x[1], x[4], x[5]});
  const MeanAndVariance second = moments_of({x[2], x[3], x[6], x[7]});
  const auto mixed = [&](const Numbers& old, double a, double b) {
    return floats({2},
                  {momentum * old[0] + (1 - momentum) * a, momentum * old[1] + (1 - momentum) * b});
  };
  const std::vector<HostTensor> results{
      floats({2, 2, 2}, normalised({first.mean, second.mean}, {first.variance, second.variance})),
      mixed(mean, first.mean, second.mean), mixed(variance, first.variance, second.variance)};
  NodeAttributes attributes{{"epsilon", epsilon}, {"momentum", momentum}};
  std::vector<HostTensor> with_saved = results;
  with_saved.push_back(floats({2}, {first.mean, second.mean}));
  with_saved.push_back(floats({2}, {first.variance, second.variance}));
  rows.push_back({.op = "BatchNormalization",
                  .last = 9,
                  .inputs = operands(f32, f32),
                  .attributes = attributes,
                  .outputs = with_saved,
                  .note = "training by its outputs",
                  .training = true});
  attributes.emplace_back("training_mode", 1);
  rows.push_back({.op = "BatchNormalization",
                  .first = 14,
                  .inputs = operands(f32, f32),
                  .attributes = attributes,
                  .outputs = results,
                  .note = "training_mode",
                  .training = true});
  rows.push_back({.op = "BatchNormalization",
                  .last = 7,
                  .inputs = operands(f32, f32),
                  .attributes = {{"spatial", 0}},
                  .note = "statistics of single pixels",
                  .refused = "spatial"});
}

void add_layer_normalization(Rows& rows) {
  const double epsilon = 1e-5;
  const Numbers row{1, 2, 4, 5}, scale{1, 2, 0.5, -1}, bias{0, 1, 2, 3};
  const MeanAndVariance m = moments_of(row);
  const double inverse = 1 / std::sqrt(m.variance + epsilon);
  Numbers y = row;
  for (std::size_t i = 0; i < 4; ++i) y[i] = (row[i] - m.mean) * inverse * scale[i] + bias[i];
  rows.push_back(
      {.op = "LayerNormalization",
       .inputs = {floats({1, 4}, row), floats({4}, scale), floats({4}, bias)},
       .outputs = {floats({1, 4}, y), floats({1, 1}, {m.mean}), floats({1, 1}, {inverse})},
       .note = "mean and inverse deviation"});
  for (std::size_t i = 0; i < 4; ++i) y[i] -= bias[i];
  for (DType dtype : {f32, f64, bf16}) {
    rows.push_back({.op = "LayerNormalization",
                    .inputs = {typed(dtype, {1, 2, 2}, row), typed(dtype, {2, 2}, scale)},
                    .attributes = {{"axis", 1}, {"epsilon", epsilon}},
                    .outputs = {typed(dtype, {1, 2, 2}, y)},
                    .note = "two axes, no bias"});
  }
}

// The mask has x's type before version 10. From 12 on input 2 says whether anything is dropped.
void add_dropout(Rows& rows) {
  const auto add = [&](int first, int last, std::vector<HostTensor> inputs, DType mask,
                       bool training, const char* note) {
    const HostTensor y = inputs[0];
    rows.push_back({"Dropout",
                    first,
                    last,
                    std::move(inputs),
                    {},
                    {y, typed(mask, y.shape(), Numbers(numbers_of(y).size(), 1))},
                    note,
                    false,
                    training});
  };
  for (DType dtype : {f32, f64, bf16}) {
    const HostTensor x = typed(dtype, {2, 2}, {1, -2, 3, 4});
    add(7, 7, {x}, dtype, false, "a mask of x's type");
    add(10, newest, {x}, DType::boolean, false, "a mask of bool");
    add(12, newest, {x, floats({}, {0.5}), booleans({}, {0})}, DType::boolean, true, "no training");
    add(12, newest, {x, floats({}, {0.5})}, DType::boolean, true, "no training by default");
    add(12, newest, {x, floats({}, {0}), booleans({}, {1})}, DType::boolean, true, "ratio 0");
  }
  rows.push_back({.op = "Dropout",
                  .first = 12,
                  .inputs = {floats({2}, {1, 2})},
                  .attributes = {{"ratio", 0.5}},
                  .note = "ratio as attribute",
                  .refused = "ratio"});
}

// Softmax over each `run` neighbouring elements.
Numbers softmax(const Numbers& x, std::size_t run, bool logarithm = false) {
  Numbers y = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double total = 0;
    for (std::size_t j = i / run * run; j < i / run * run + run; ++j) total += std::exp(x[j]);
    y[i] = logarithm ? x[i] - std::log(total) : std::exp(x[i]) / total;
  }
  return y;
}

// Before version 13 all axes from `axis` on (1 where it is absent) are one; then one axis, the last
// where it is absent.
void add_softmax(Rows& rows) {
  const Numbers v{0.5, -1, 2, 1, 0, 3, -2, 0.25};
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    const bool logarithm = std::string(op) == "LogSoftmax";
    for (DType dtype : {f32, f64, bf16}) {
      const HostTensor x = typed(dtype, {2, 2, 2}, v);
      const auto add = [&](int first, int last, NodeAttributes attributes, std::size_t run,
                           const char* note) {
        rows.push_back({op,
                        first,
                        last,
                        {x},
                        std::move(attributes),
                        {typed(dtype, {2, 2, 2}, softmax(v, run, logarithm))},
                        note});
      };
      add(1, 11, {}, 4, "axes 1 and 2");
      add(13, newest, {}, 2, "the last axis");
      add(1, 11, {{"axis", 0}}, 8, "all axes");
      add(1, newest, {{"axis", 2}}, 2, "axis 2");
      add(11, 11, {{"axis", -2}}, 4, "axes 1 and 2 from the end");
      add(11, newest, {{"axis", -1}}, 2, "the last axis from the end");
    }
    const Numbers columns = softmax({0.5, 2, -1, 1}, 2, logarithm);
    rows.push_back(
        {.op = op,
         .first = 13,
         .inputs = {floats({1, 2, 2}, {0.5, -1, 2, 1})},
         .attributes = {{"axis", 1}},
         .outputs = {floats({1, 2, 2}, {columns[0], columns[2], columns[1], columns[3]})},
         .note = "axis 1 alone"});
  }
}

// Losses -w[label] log p[label] of three rows of three classes; their mean is over the weights.
void add_losses(Rows& rows) {
  const Numbers scores{1, 2, 0.5, 0, -1, 3, 2, 2, 1}, labels{2, 0, 1}, weights{1, 0.5, 2};
  const Numbers logarithms = softmax(scores, 3, true);
  for (const char* op : {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}) {
    const bool whole = std::string(op) == "SoftmaxCrossEntropyLoss";
    const Numbers& given = whole ? scores : logarithms;
    for (DType dtype : {f32, f64, bf16}) {
      const HostTensor x = typed(dtype, {3, 3}, given), wanted = integers(labels);
      const Numbers read = numbers_of(x);  // rounded to the type
      const Numbers p = whole ? softmax(read, 3, true) : read;
      for (bool weighted : {false, true}) {
        for (std::int64_t ignored : {-1, 0}) {
          Numbers losses(3);
          double total = 0, weight = 0;
          for (std::size_t i = 0; i < 3; ++i) {
            const auto label = static_cast<std::size_t>(labels[i]);
            const bool counts = labels[i] != static_cast<double>(ignored);
            const double w = counts ? (weighted ? weights[label] : 1) : 0;
            losses[i] = -w * p[3 * i + label];
            total += losses[i];
            weight += w;
          }
          std::vector<HostTensor> inputs{x, wanted};
          if (weighted) inputs.push_back(typed(dtype, {3}, weights));
          const auto add = [&](const char* reduction, const HostTensor& y) {
            NodeAttributes attributes{{"reduction", reduction}};
            if (ignored >= 0) attributes.emplace_back("ignore_index", ignored);
            rows.push_back({.op = op,
                            .inputs = inputs,
                            .attributes = std::move(attributes),
                            .outputs = {y},
                            .note = reduction});
          };
          add("none", typed(dtype, {3}, losses));
          add("sum", typed(dtype, {}, {total}));
          add("mean", typed(dtype, {}, {total / weight}));
        }
      }
    }
    // A label for each place: [1, 2 classes, 2 places].
    const Numbers place = softmax({1, 2, 0, -1}, 2, true);
    const HostTensor x = floats(
        {1, 2, 2}, whole ? Numbers{1, 0, 2, -1} : Numbers{place[0], place[2], place[1], place[3]});
    std::vector<HostTensor> outputs{floats({1, 2}, {-place[1], -place[2]})};
    if (whole) outputs.push_back(floats({1, 2, 2}, {place[0], place[2], place[1], place[3]}));
    rows.push_back({.op = op,
                    .inputs = {x, typed(DType::int32, {1, 2}, {1, 0})},
                    .attributes = {{"reduction", "none"}},
                    .outputs = outputs,
                    .note = "places, logarithms of the probabilities"});
  }
}

// One batch, one head: q [queries, 2], k and v [keys, 2]; `bias` [queries, keys] onto the scores.
struct Heads {
  Numbers q, k, v;
  std::size_t queries() const { return q.size() / 2; }
  std::size_t keys() const { return k.size() / 2; }
  Numbers run(const Numbers& bias, double scale = 1 / std::sqrt(2.0), double cap = 0) const {
    Numbers scores, y;
    for (std::size_t i = 0; i < queries(); ++i) {
      for (std::size_t j = 0; j < keys(); ++j) {
        const double s = scale * (q[2 * i] * k[2 * j] + q[2 * i + 1] * k[2 * j + 1]);
        scores.push_back((cap > 0 ? cap * std::tanh(s / cap) : s) + bias[i * keys() + j]);
      }
    }
    const Numbers p = softmax(scores, keys());
    for (std::size_t i = 0; i < queries(); ++i) {
      for (std::size_t d = 0; d < 2; ++d) {
        double total = 0;
        for (std::size_t j = 0; j < keys(); ++j) total += p[i * keys() + j] * v[2 * j + d];
        y.push_back(total);
      }
    }
    return y;
  }
};

void add_attention(Rows& rows) {
  const double out = -std::numeric_limits<double>::infinity();
  const Heads h{{1, 0, 0.5, -1, 0, 2}, {1, 1, 0, 2, -1, 0.5}, {1, 2, 3, 4, -5, 6}};
  const Numbers none(9, 0.0), causal{0, out, out, 0, 0, out, 0, 0, 0};
  for (DType dtype : {f32, f64, bf16}) {
    const Shape shape{1, 1, 3, 2};
    const auto add = [&](int first, const std::vector<HostTensor>& more, NodeAttributes attributes,
                         const Numbers& y, const char* note) {
      std::vector<HostTensor> inputs{typed(dtype, shape, h.q), typed(dtype, shape, h.k),
                                     typed(dtype, shape, h.v)};
      inputs.insert(inputs.end(), more.begin(), more.end());
      rows.push_back({"Attention",
                      first,
                      newest,
                      inputs,
                      std::move(attributes),
                      {typed(dtype, shape, y)},
                      note});
    };
    add(23, {}, {}, h.run(none), "plain");
    add(23, {}, {{"scale", 0.25}}, h.run(none, 0.25), "scale");
    add(23, {}, {{"is_causal", 1}}, h.run(causal), "is_causal");
    add(23, {booleans({3, 3}, {1, 0, 0, 1, 1, 0, 1, 1, 1})}, {}, h.run(causal), "mask of bool");
    const Numbers bias{0.5, 0, -1, 0, 2, 0, 1, 1, 0};
    add(23, {typed(dtype, {3, 3}, bias)}, {}, h.run(bias), "mask of numbers");
    if (dtype != f32) continue;
    add(23, {}, {{"softcap", 0.5}}, h.run(none, 1 / std::sqrt(2.0), 0.5), "softcap");
    const HostTensor absent;
    add(24, {absent, absent, absent, integers({2})}, {}, h.run({0, 0, out, 0, 0, out, 0, 0, out}),
        "the first keys alone");
    add(25, {}, {{"left_window_size", 1}, {"right_window_size", 0}},
        h.run({0, out, out, 0, 0, out, out, 0, 0}), "a window of keys");
  }
  rows.push_back(
      {.op = "Attention",
       .inputs = {floats({1, 3, 2}, h.q), floats({1, 3, 2}, h.k), floats({1, 3, 2}, h.v)},
       .attributes = {{"q_num_heads", 1}, {"kv_num_heads", 1}},
       .outputs = {floats({1, 3, 2}, h.run(none))},
       .note = "heads in the last axis"});
}

}  // namespace

void add_normalization_rows(std::vector<VersionRow>& rows) {
  add_batch_normalization(rows);
  add_layer_normalization(rows);
  add_dropout(rows);
  add_softmax(rows);
  add_losses(rows);
  add_attention(rows);
}

}  // namespace tandem::testing
