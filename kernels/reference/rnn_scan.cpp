// RnnScan and its gradient: one sample after the other, step by step, in double.
#include "engine/operators/rnn_scan.h"

#include <algorithm>

#include "kernels/reference/network_support.h"
#include "kernels/reference/rnn_activations.h"

namespace tandem::reference {
namespace {

/// Sizes and settings of a layer, and the order of its steps.
struct Layer {
  RnnSettings settings;
  std::int64_t steps = 0, batch = 0, hidden = 0;
  std::int32_t node = -1;
  bool has_lengths = false;
  Reader lengths;

  Layer(const KernelRequest& r, const Shape& y, std::size_t lengths_input)
      : settings(r.attributes()),
        steps(y[0]),
        batch(y[2]),
        hidden(y[3]),
        node(r.node_index),
        has_lengths(r.is_present(lengths_input)) {
    if (has_lengths) lengths = Reader(r.inputs[lengths_input]);
  }

  std::int64_t rows() const { return settings.gates() * hidden; }
  /// Places in [D, B, H], in [T, D, B, H], and in [T, B, D, G H] and [T, D, B, S H] per row.
  std::int64_t state(std::int64_t d, std::int64_t b, std::int64_t j) const {
    return (d * batch + b) * hidden + j;
  }
  std::int64_t step(std::int64_t t, std::int64_t d, std::int64_t b, std::int64_t j) const {
    return state(t * settings.directions + d, b, j);
  }
  std::int64_t xw(std::int64_t t, std::int64_t d, std::int64_t b, std::int64_t row) const {
    return ((t * batch + b) * settings.directions + d) * rows() + row;
  }
  std::int64_t gate(std::int64_t t, std::int64_t d, std::int64_t b, std::int64_t row) const {
    return ((t * settings.directions + d) * batch + b) * settings.saved() * hidden + row;
  }
  /// The length of a sample; one outside of 0 to T is reported, and clamped.
  std::int64_t length(const KernelArguments& a, std::size_t input, std::int64_t b) const {
    if (!has_lengths) return steps;
    const std::int64_t length = lengths.integer(a.inputs[input], b);
    if (length < 0 || length > steps) report(a, ErrorWord::index_out_of_range, node, length);
    return std::clamp<std::int64_t>(length, 0, steps);
  }
  double clipped(double x) const {
    if (settings.clip == 0) return x;
    return scalar::clip(x, -settings.clip, settings.clip);
  }
  double value(const RnnFunction& f, double x) const { return scalar::rnn_value(f, clipped(x)); }
  /// The slope, including that of the clip.
  double slope(const RnnFunction& f, double x) const {
    const bool is_clipped = settings.clip > 0 && (x < -settings.clip || x > settings.clip);
    return is_clipped ? 0 : scalar::rnn_slope(f, clipped(x));
  }
};

// The operands of RnnScan.
struct Scan {
  Layer layer;
  Reader xw, r, bias_h, h0, c0, peepholes;
  Writer y, h, gates, c, c_last;

  explicit Scan(const KernelRequest& q)
      : layer(q, q.outputs[0].type.shape, 3),
        xw(q.inputs[0]),
        r(q.inputs[1]),
        y(q.outputs[0]),
        h(q.outputs[1]),
        gates(q.outputs[2]) {
    if (q.is_present(2)) bias_h = Reader(q.inputs[2]);
    if (q.is_present(4)) h0 = Reader(q.inputs[4]);
    if (q.is_present(5)) c0 = Reader(q.inputs[5]);
    if (q.is_present(6)) peepholes = Reader(q.inputs[6]);
    if (q.outputs.size() > 3) c = Writer(q.outputs[3]);
    if (q.outputs.size() > 4) c_last = Writer(q.outputs[4]);
  }

  std::size_t workspace() const {
    return static_cast<std::size_t>(layer.hidden * (3 + layer.settings.saved())) * sizeof(double);
  }

  /// The row of r[d] times x.
  double product(const KernelArguments& a, std::int64_t d, std::int64_t row,
                 const double* x) const {
    double sum = 0;
    for (std::int64_t k = 0; k < layer.hidden; ++k) {
      sum += r.number(a.inputs[1], (d * layer.rows() + row) * layer.hidden + k) * x[k];
    }
    return sum;
  }

  void run(const KernelArguments& a) const {
    for (std::int64_t d = 0; d < layer.settings.directions; ++d) {
      for (std::int64_t b = 0; b < layer.batch; ++b) run_sample(a, d, b);
    }
  }

  void run_sample(const KernelArguments& a, std::int64_t d, std::int64_t b) const {
    const std::int64_t n = layer.hidden, length = layer.length(a, 3, b);
    double* state = static_cast<double*>(a.workspace);  // h
    double* cell = state + n;
    double* next = cell + n;
    double* in = next + n;  // inputs of the activations
    for (std::int64_t j = 0; j < n; ++j) {
      state[j] = a.inputs[4] != nullptr ? h0.number(a.inputs[4], layer.state(d, b, j)) : 0;
      cell[j] = a.inputs[5] != nullptr ? c0.number(a.inputs[5], layer.state(d, b, j)) : 0;
    }
    for (std::int64_t s = 0; s < layer.steps; ++s) {
      const std::int64_t t = layer.settings.is_reverse(d) ? layer.steps - 1 - s : s;
      const bool is_active = t < length;
      std::fill(in, in + layer.settings.saved() * n, 0.0);
      if (is_active) {
        for (std::int64_t row = 0; row < layer.rows(); ++row) {
          in[row] = xw.number(a.inputs[0], layer.xw(t, d, b, row));
        }
        switch (layer.settings.kind) {
          case RnnKind::rnn:
            rnn(a, d, state, next, in);
            break;
          case RnnKind::gru:
            gru(a, d, state, next, in);
            break;
          case RnnKind::lstm:
            lstm(a, d, state, next, in, cell);
            break;
        }
        std::copy(next, next + n, state);
      }
      for (std::int64_t row = 0; row < layer.settings.saved() * n; ++row) {
        gates(a.outputs[2], layer.gate(t, d, b, row), in[row]);
      }
      for (std::int64_t j = 0; j < n; ++j) {
        y(a.outputs[0], layer.step(t, d, b, j), is_active ? state[j] : 0);
        if (layer.settings.kind == RnnKind::lstm) {
          c(a.outputs[3], layer.step(t, d, b, j), cell[j]);
        }
      }
    }
    for (std::int64_t j = 0; j < n; ++j) {
      h(a.outputs[1], layer.state(d, b, j), state[j]);
      if (layer.settings.kind == RnnKind::lstm) {
        c_last(a.outputs[4], layer.state(d, b, j), cell[j]);
      }
    }
  }

  const RnnFunctions& functions(std::int64_t d) const {
    return layer.settings.functions[static_cast<std::size_t>(d)];
  }

  void rnn(const KernelArguments& a, std::int64_t d, const double* state, double* next,
           double* in) const {
    for (std::int64_t j = 0; j < layer.hidden; ++j) {
      in[j] += product(a, d, j, state);
      next[j] = layer.value(functions(d)[0], in[j]);
    }
  }

  void gru(const KernelArguments& a, std::int64_t d, const double* state, double* next,
           double* in) const {
    const std::int64_t n = layer.hidden;
    const auto& [f, g, unused] = functions(d);
    double *z = in, *r_in = in + n, *candidate = in + 2 * n, *linear = in + 3 * n;
    for (std::int64_t j = 0; j < n; ++j) {
      z[j] += product(a, d, j, state);
      r_in[j] += product(a, d, n + j, state);
    }
    for (std::int64_t j = 0; j < n; ++j) {  // r h
      next[j] = layer.value(f, r_in[j]) * state[j];
    }
    for (std::int64_t j = 0; j < n; ++j) {
      if (layer.settings.linear_before_reset) {
        linear[j] = product(a, d, 2 * n + j, state);
        if (a.inputs[2] != nullptr) linear[j] += bias_h.number(a.inputs[2], d * n + j);
        candidate[j] += layer.value(f, r_in[j]) * linear[j];
      } else {
        candidate[j] += product(a, d, 2 * n + j, next);
      }
    }
    for (std::int64_t j = 0; j < n; ++j) {
      const double kept = layer.value(f, z[j]);
      next[j] = (1 - kept) * layer.value(g, candidate[j]) + kept * state[j];
    }
  }

  void lstm(const KernelArguments& a, std::int64_t d, const double* state, double* next, double* in,
            double* cell) const {
    const std::int64_t n = layer.hidden;
    const auto& [f, g, h_of] = functions(d);
    // Peepholes of gates i, o, f.
    const auto peephole = [&](std::int64_t gate, std::int64_t j, double x) {
      return a.inputs[6] == nullptr ? 0 : peepholes.number(a.inputs[6], (d * 3 + gate) * n + j) * x;
    };
    for (std::int64_t row = 0; row < 4 * n; ++row) in[row] += product(a, d, row, state);
    for (std::int64_t j = 0; j < n; ++j) {
      double &i_in = in[j], &o_in = in[n + j], &f_in = in[2 * n + j];
      i_in += peephole(0, j, cell[j]);
      f_in += peephole(2, j, cell[j]);
      const double i = layer.value(f, i_in);
      const double forget = layer.settings.input_forget ? 1 - i : layer.value(f, f_in);
      cell[j] = forget * cell[j] + i * layer.value(g, in[3 * n + j]);
      o_in += peephole(1, j, cell[j]);
      next[j] = layer.value(f, o_in) * scalar::rnn_value(h_of, cell[j]);
    }
  }
};

// The operands of RnnScanGrad, and of one direction in the workspace: dr [G H, H], dpeepholes
// [3 H], dbias_h [H]; of one sample dh [H], dc [H], and of one step what goes into the activations
// and its gradient, both [S H], h and c before the step, and dq [H].
struct ScanGrad {
  Layer layer;
  Reader dy, dh, dc_last, r, h0, c0, peepholes, y, gates, c;
  Writer dxw, dr, dh0, dbias_h, dc0, dpeepholes;

  explicit ScanGrad(const KernelRequest& q)
      : layer(q, q.inputs[8].type.shape, 4),
        r(q.inputs[3]),
        y(q.inputs[8]),
        gates(q.inputs[9]),
        dxw(q.outputs[0]),
        dr(q.outputs[1]),
        dh0(q.outputs[2]),
        dbias_h(q.outputs[3]) {
    const auto read = [&](std::size_t i) {
      return q.is_present(i) ? Reader(q.inputs[i]) : Reader();
    };
    dy = read(0);
    dh = read(1);
    dc_last = read(2);
    h0 = read(5);
    c0 = read(6);
    peepholes = read(7);
    c = read(10);
    if (q.outputs.size() > 4) dc0 = Writer(q.outputs[4]);
    if (q.outputs.size() > 5) dpeepholes = Writer(q.outputs[5]);
  }

  std::int64_t sums() const { return layer.hidden * (layer.rows() + 4); }
  std::size_t workspace() const {
    const std::int64_t numbers = sums() + layer.hidden * (5 + 2 * layer.settings.saved());
    return static_cast<std::size_t>(numbers) * sizeof(double);
  }

  /// What one step reads and writes.
  struct Step {
    std::int64_t d;
    double *dr, *dpeepholes, *dbias_h;
    double *dh, *dc, *in, *da, *before, *cell_before, *cell, *dq;
  };

  void run(const KernelArguments& a) const {
    const std::int64_t n = layer.hidden;
    double* work = static_cast<double*>(a.workspace);
    Step step{};
    step.dr = work;
    step.dpeepholes = step.dr + n * layer.rows();
    step.dbias_h = step.dpeepholes + 3 * n;
    step.dh = step.dbias_h + n;
    step.dc = step.dh + n;
    step.before = step.dc + n;
    step.cell_before = step.before + n;
    step.dq = step.cell_before + n;
    step.in = step.dq + n;
    step.da = step.in + layer.settings.saved() * n;
    for (std::int64_t d = 0; d < layer.settings.directions; ++d) {
      step.d = d;
      std::fill(work, work + sums(), 0.0);
      for (std::int64_t b = 0; b < layer.batch; ++b) run_sample(a, b, step);
      for (std::int64_t i = 0; i < n * layer.rows(); ++i) {
        dr(a.outputs[1], d * n * layer.rows() + i, step.dr[i]);
      }
      for (std::int64_t j = 0; j < n; ++j) dbias_h(a.outputs[3], d * n + j, step.dbias_h[j]);
      for (std::int64_t i = 0; layer.settings.kind == RnnKind::lstm && i < 3 * n; ++i) {
        dpeepholes(a.outputs[5], d * 3 * n + i, step.dpeepholes[i]);
      }
    }
  }

  void run_sample(const KernelArguments& a, std::int64_t b, const Step& step) const {
    const std::int64_t n = layer.hidden, d = step.d, length = layer.length(a, 4, b);
    const bool is_reverse = layer.settings.is_reverse(d);
    const bool is_lstm = layer.settings.kind == RnnKind::lstm;
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int64_t at = layer.state(d, b, j);
      step.dh[j] = a.inputs[1] != nullptr ? dh.number(a.inputs[1], at) : 0;
      step.dc[j] = a.inputs[2] != nullptr ? dc_last.number(a.inputs[2], at) : 0;
    }
    for (std::int64_t s = layer.steps; s-- > 0;) {
      const std::int64_t t = is_reverse ? layer.steps - 1 - s : s;
      std::fill(step.da, step.da + layer.settings.saved() * n, 0.0);
      if (t < length) {
        const bool is_first = is_reverse ? t == length - 1 : t == 0;
        const std::int64_t earlier = is_reverse ? t + 1 : t - 1;
        for (std::int64_t j = 0; j < n; ++j) {
          const std::int64_t at = layer.state(d, b, j);
          if (a.inputs[0] != nullptr) {
            step.dh[j] += dy.number(a.inputs[0], layer.step(t, d, b, j));
          }
          step.before[j] = !is_first ? y.number(a.inputs[8], layer.step(earlier, d, b, j))
                           : a.inputs[5] != nullptr ? h0.number(a.inputs[5], at)
                                                    : 0;
          step.cell_before[j] = !is_lstm    ? 0
                                : !is_first ? c.number(a.inputs[10], layer.step(earlier, d, b, j))
                                : a.inputs[6] != nullptr ? c0.number(a.inputs[6], at)
                                                         : 0;
        }
        for (std::int64_t row = 0; row < layer.settings.saved() * n; ++row) {
          step.in[row] = gates.number(a.inputs[9], layer.gate(t, d, b, row));
        }
        switch (layer.settings.kind) {
          case RnnKind::rnn:
            rnn(a, step);
            break;
          case RnnKind::gru:
            gru(a, step);
            break;
          case RnnKind::lstm:
            lstm(a, step, t, b);
            break;
        }
      }
      for (std::int64_t row = 0; row < layer.rows(); ++row) {
        dxw(a.outputs[0], layer.xw(t, d, b, row), step.da[row]);
      }
    }
    for (std::int64_t j = 0; j < n; ++j) {
      dh0(a.outputs[2], layer.state(d, b, j), step.dh[j]);
      if (is_lstm) dc0(a.outputs[4], layer.state(d, b, j), step.dc[j]);
    }
  }

  /// Rows first to last - 1 of a product r[d] x that had the gradient `da`: dr += da x, dx += da r.
  void product_grad(const KernelArguments& a, const Step& step, std::int64_t first,
                    std::int64_t last, const double* da, const double* x, double* dx) const {
    const std::int64_t n = layer.hidden;
    for (std::int64_t row = first; row < last; ++row) {
      for (std::int64_t k = 0; k < n; ++k) {
        const double weight = r.number(a.inputs[3], (step.d * layer.rows() + row) * n + k);
        step.dr[row * n + k] += da[row - first] * x[k];
        dx[k] += da[row - first] * weight;
      }
    }
  }

  const RnnFunctions& functions(const Step& step) const {
    return layer.settings.functions[static_cast<std::size_t>(step.d)];
  }

  void rnn(const KernelArguments& a, const Step& step) const {
    for (std::int64_t j = 0; j < layer.hidden; ++j) {
      step.da[j] = step.dh[j] * layer.slope(functions(step)[0], step.in[j]);
      step.dh[j] = 0;
    }
    product_grad(a, step, 0, layer.hidden, step.da, step.before, step.dh);
  }

  void gru(const KernelArguments& a, const Step& step) const {
    const std::int64_t n = layer.hidden;
    const auto& [f, g, unused] = functions(step);
    const double *z_in = step.in, *r_in = step.in + n, *candidate = step.in + 2 * n;
    double *dz = step.da, *dr_in = step.da + n, *dcandidate = step.da + 2 * n;
    for (std::int64_t j = 0; j < n; ++j) {
      const double z = layer.value(f, z_in[j]);
      const double difference = step.before[j] - layer.value(g, candidate[j]);
      dz[j] = step.dh[j] * difference * layer.slope(f, z_in[j]);
      dcandidate[j] = step.dh[j] * (1 - z) * layer.slope(g, candidate[j]);
      step.dh[j] *= z;
    }
    if (layer.settings.linear_before_reset) {
      const double* linear = step.in + 3 * n;
      double* dlinear = step.da + 3 * n;
      for (std::int64_t j = 0; j < n; ++j) {
        dr_in[j] = dcandidate[j] * linear[j] * layer.slope(f, r_in[j]);
        dlinear[j] = dcandidate[j] * layer.value(f, r_in[j]);
        step.dbias_h[j] += dlinear[j];
      }
      product_grad(a, step, 2 * n, 3 * n, dlinear, step.before, step.dh);
    } else {
      for (std::int64_t j = 0; j < n; ++j) {  // the product's operand was r h
        step.dq[j] = 0;
        step.cell_before[j] = layer.value(f, r_in[j]) * step.before[j];
      }
      product_grad(a, step, 2 * n, 3 * n, dcandidate, step.cell_before, step.dq);
      for (std::int64_t j = 0; j < n; ++j) {
        dr_in[j] = step.dq[j] * step.before[j] * layer.slope(f, r_in[j]);
        step.dh[j] += step.dq[j] * layer.value(f, r_in[j]);
      }
    }
    product_grad(a, step, 0, 2 * n, step.da, step.before, step.dh);
  }

  void lstm(const KernelArguments& a, const Step& step, std::int64_t t, std::int64_t b) const {
    const std::int64_t n = layer.hidden, d = step.d;
    const auto& [f, g, h_of] = functions(step);
    // Peepholes of gates i, o, f.
    const auto peephole = [&](std::int64_t gate, std::int64_t j, double x) {
      return a.inputs[7] == nullptr ? 0 : peepholes.number(a.inputs[7], (d * 3 + gate) * n + j) * x;
    };
    for (std::int64_t j = 0; j < n; ++j) {
      const double i_in = step.in[j], o_in = step.in[n + j], f_in = step.in[2 * n + j];
      const double cell = c.number(a.inputs[10], layer.step(t, d, b, j));
      const double before = step.cell_before[j], dh = step.dh[j];
      const double i = layer.value(f, i_in), candidate = layer.value(g, step.in[3 * n + j]);
      const double forget = layer.settings.input_forget ? 1 - i : layer.value(f, f_in);
      double &di = step.da[j], &d_o = step.da[n + j], &df = step.da[2 * n + j];
      d_o = dh * scalar::rnn_value(h_of, cell) * layer.slope(f, o_in);
      const double dc = step.dc[j] + dh * layer.value(f, o_in) * scalar::rnn_slope(h_of, cell) +
                        peephole(1, j, d_o);
      if (layer.settings.input_forget) {
        di = dc * (candidate - before) * layer.slope(f, i_in);
        df = 0;
      } else {
        di = dc * candidate * layer.slope(f, i_in);
        df = dc * before * layer.slope(f, f_in);
      }
      step.da[3 * n + j] = dc * i * layer.slope(g, step.in[3 * n + j]);
      step.dc[j] = dc * forget + peephole(0, j, di) + peephole(2, j, df);
      step.dpeepholes[j] += di * before;
      step.dpeepholes[n + j] += d_o * cell;
      step.dpeepholes[2 * n + j] += df * before;
      step.dh[j] = 0;
    }
    product_grad(a, step, 0, 4 * n, step.da, step.before, step.dh);
  }
};

template <class Body>
std::unique_ptr<PreparedKernel> prepare_rnn_scan(const KernelRequest& r) {
  const Body body(r);
  return prepared([body](const KernelArguments& a) { body.run(a); }, body.workspace());
}

}  // namespace

void add_rnn_scan(KernelList& list) {
  list.push_back(
      any_float_kernel("reference.rnn_scan", "RnnScan",
                       [](const KernelRequest& r, auto) { return prepare_rnn_scan<Scan>(r); }));
  list.push_back(any_float_kernel(
      "reference.rnn_scan_grad", "RnnScanGrad",
      [](const KernelRequest& r, auto) { return prepare_rnn_scan<ScanGrad>(r); }, 8));
}

}  // namespace tandem::reference
