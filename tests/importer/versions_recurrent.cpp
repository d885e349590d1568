// Rows of RNN, GRU and LSTM: a layer of one unit and one input in double arithmetic, step by step.
#include <cmath>

#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Rows = std::vector<VersionRow>;

const Numbers three_steps{0.5, -1, 2};
double sigmoid(double value) { return 1 / (1 + std::exp(-value)); }

// One unit from h = 0, c = 0 over the inputs; w, r and b have a number for each gate.
Numbers rnn(const Numbers& inputs, double w, double r, double b) {
  Numbers y;
  double h = 0;
  for (double value : inputs) y.push_back(h = std::tanh(w * value + r * h + b));
  return y;
}
Numbers gru(const Numbers& inputs, const Numbers& w, const Numbers& r) {
  Numbers y;
  double h = 0;
  for (double value : inputs) {
    const double z = sigmoid(w[0] * value + r[0] * h), reset = sigmoid(w[1] * value + r[1] * h);
    const double n = std::tanh(w[2] * value + r[2] * (reset * h));
    y.push_back(h = (1 - z) * n + z * h);
  }
  return y;
}
Numbers lstm(const Numbers& inputs, const Numbers& w, const Numbers& r, double& c) {
  Numbers y;
  double h = 0;
  c = 0;
  for (double value : inputs) {
    const auto gate = [&](std::size_t q) { return w[q] * value + r[q] * h; };
    const double i = sigmoid(gate(0)), o = sigmoid(gate(1)), f = sigmoid(gate(2));
    c = f * c + i * std::tanh(gate(3));
    y.push_back(h = o * std::tanh(c));
  }
  return y;
}

}  // namespace

void add_recurrent_rows(std::vector<VersionRow>& rows) {
  for (DType dtype : {f32, f64, bf16}) {
    const auto tensor = [&](const Shape& shape, const Numbers& values) {
      return typed(dtype, shape, values);
    };
    const HostTensor steps = tensor({3, 1, 1}, three_steps),
                     batches = tensor({1, 3, 1}, three_steps);
    const auto outputs = [&](const Numbers& y) {
      return std::vector<HostTensor>{tensor({3, 1, 1, 1}, y), tensor({1, 1, 1}, {y[2]})};
    };

    const Numbers of_rnn = rnn(three_steps, 0.75, -0.5, 0.25);
    const std::vector<HostTensor> operands{steps, tensor({1, 1, 1}, {0.75}),
                                           tensor({1, 1, 1}, {-0.5}), tensor({1, 2}, {0.5, -0.25})};
    rows.push_back({.op = "RNN",
                    .inputs = operands,
                    .attributes = {{"hidden_size", 1}},
                    .outputs = outputs(of_rnn)});
    rows.push_back({.op = "RNN",
                    .first = 14,
                    .inputs = {batches, operands[1], operands[2], operands[3]},
                    .attributes = {{"hidden_size", 1}, {"layout", 1}},
                    .outputs = {tensor({1, 3, 1, 1}, of_rnn), tensor({1, 1, 1}, {of_rnn[2]})},
                    .note = "batch first"});

    const Numbers w{0.5, -0.75, 1, 0.25}, r{-0.25, 0.5, 0.75, -0.5};
    const HostTensor w3 = tensor({1, 3, 1}, Numbers(w.begin(), w.end() - 1));
    const HostTensor r3 = tensor({1, 3, 1}, Numbers(r.begin(), r.end() - 1));
    const Numbers of_gru = gru(three_steps, w, r);
    rows.push_back({.op = "GRU", .inputs = {steps, w3, r3}, .outputs = outputs(of_gru)});
    rows.push_back({.op = "GRU",
                    .first = 14,
                    .inputs = {batches, w3, r3},
                    .attributes = {{"layout", 1}},
                    .outputs = {tensor({1, 3, 1, 1}, of_gru), tensor({1, 1, 1}, {of_gru[2]})},
                    .note = "batch first"});
    rows.push_back({.op = "GRU",
                    .inputs = {steps, w3, r3},
                    .attributes = {{"hidden_size", 2}},
                    .note = "another number of units",
                    .refused = "hidden_size"});

    double c = 0;
    const Numbers of_lstm = lstm(three_steps, w, r, c);
    const HostTensor w4 = tensor({1, 4, 1}, w), r4 = tensor({1, 4, 1}, r);
    std::vector<HostTensor> all = outputs(of_lstm);
    all.push_back(tensor({1, 1, 1}, {c}));
    rows.push_back({.op = "LSTM",
                    .inputs = {steps, w4, r4},
                    .attributes = {{"hidden_size", 1}},
                    .outputs = all});
    Numbers back(three_steps.rbegin(), three_steps.rend());
    Numbers of_end = lstm(back, w, r, c);
    rows.push_back({.op = "LSTM",
                    .first = 14,
                    .inputs = {batches, w4, r4},
                    .attributes = {{"layout", 1}, {"direction", std::string("reverse")}},
                    .outputs = {tensor({1, 3, 1, 1}, {of_end[2], of_end[1], of_end[0]}),
                                tensor({1, 1, 1}, {of_end[2]}), tensor({1, 1, 1}, {c})},
                    .note = "batch first, from the end"});
  }
}

}  // namespace tandem::testing
