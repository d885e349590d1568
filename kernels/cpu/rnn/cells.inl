// The cells of recurrent layers for one instruction set. Included by cells_*.cpp under its pragma;
// TANDEM_NAMESPACE is its own.

namespace tandem {
namespace TANDEM_NAMESPACE {
namespace {

#include "kernels/cpu/pointwise/vector_math.h"

/// The lanes of one vector that are units: `left` or all of them.
struct Lanes {
  std::int64_t left;

  TANDEM_INLINE V get(const float* p) const { return left >= width ? load(p) : load_part(p, left); }
  TANDEM_INLINE V get_or_zero(const float* p, std::int64_t i) const {
    return p == nullptr ? V{} : get(p + i);
  }
  TANDEM_INLINE void put(float* p, V x) const {
    if (left >= width) {
      store(p, x);
    } else {
      store_part(p, x, left);
    }
  }
};

TANDEM_INLINE V slope_of_tanh(V y) { return 1.0f - y * y; }
TANDEM_INLINE V slope_of_sigmoid(V y) { return y * (1.0f - y); }
TANDEM_INLINE V relu_of(V x) { return x < 0.0f ? V{} : x; }  // NaN stays

/// The gradient that arrives at h: from later steps, through their products, and from y.
TANDEM_INLINE V arriving(const RnnRow& r, const Lanes& l, std::int64_t i) {
  return l.get(r.dh + i) + l.get_or_zero(r.product, i) + l.get_or_zero(r.dy, i);
}

template <bool by_tanh>
void plain_cell(const RnnRow& r) {
  for (std::int64_t i = 0; i < r.n; i += width) {
    const Lanes l{r.n - i};
    const V in = l.get(r.xw + i) + l.get(r.product + i);
    const V h = by_tanh ? tanh_of(in) : relu_of(in);
    if (r.gates != nullptr) l.put(r.gates + i, in);
    l.put(r.h + i, h);
    l.put(r.y + i, h);
  }
}

template <bool by_tanh>
void plain_cell_grad(const RnnRow& r) {
  for (std::int64_t i = 0; i < r.n; i += width) {
    const Lanes l{r.n - i};
    const V in = l.get(r.gates + i);
    const V dh = arriving(r, l, i);
    l.put(r.da + i, dh * (by_tanh ? slope_of_tanh(tanh_of(in)) : (in <= 0.0f ? V{} : all(1.0f))));
    l.put(r.dh + i, V{});
  }
}

void lstm_cell(const RnnRow& r) {
  const std::int64_t g = r.gate, p = r.part;
  for (std::int64_t i = 0; i < r.n; i += width) {
    const Lanes l{r.n - i};
    const V input = l.get(r.xw + i) + l.get(r.product + i);
    const V output = l.get(r.xw + i + g) + l.get(r.product + i + p);
    const V forget = l.get(r.xw + i + 2 * g) + l.get(r.product + i + 2 * p);
    const V candidate = l.get(r.xw + i + 3 * g) + l.get(r.product + i + 3 * p);
    if (r.gates != nullptr) {
      l.put(r.gates + i, input);
      l.put(r.gates + i + g, output);
      l.put(r.gates + i + 2 * g, forget);
      l.put(r.gates + i + 3 * g, candidate);
    }
    const V c = sigmoid_of(forget) * l.get(r.cell + i) + sigmoid_of(input) * tanh_of(candidate);
    const V h = sigmoid_of(output) * tanh_of(c);
    l.put(r.cell + i, c);
    l.put(r.h + i, h);
    l.put(r.y + i, h);
  }
}

void lstm_cell_grad(const RnnRow& r) {
  const std::int64_t g = r.gate;
  for (std::int64_t i = 0; i < r.n; i += width) {
    const Lanes l{r.n - i};
    const V input = sigmoid_of(l.get(r.gates + i)), output = sigmoid_of(l.get(r.gates + i + g));
    const V forget = sigmoid_of(l.get(r.gates + i + 2 * g));
    const V candidate = tanh_of(l.get(r.gates + i + 3 * g));
    const V before = l.get_or_zero(r.cell_before, i), out = tanh_of(l.get(r.cell_behind + i));
    const V dh = arriving(r, l, i);
    const V dc = l.get(r.dc + i) + dh * output * slope_of_tanh(out);
    l.put(r.da + i, dc * candidate * slope_of_sigmoid(input));
    l.put(r.da + i + g, dh * out * slope_of_sigmoid(output));
    l.put(r.da + i + 2 * g, dc * before * slope_of_sigmoid(forget));
    l.put(r.da + i + 3 * g, dc * input * slope_of_tanh(candidate));
    l.put(r.dc + i, dc * forget);
    l.put(r.dh + i, V{});
  }
}

void gru_cell(const RnnRow& r) {
  const std::int64_t g = r.gate, p = r.part;
  for (std::int64_t i = 0; i < r.n; i += width) {
    const Lanes l{r.n - i};
    const V z_in = l.get(r.xw + i) + l.get(r.product + i);
    const V r_in = l.get(r.xw + i + g) + l.get(r.product + i + p);
    const V linear = l.get(r.product + i + 2 * p) + l.get_or_zero(r.bias_h, i);
    const V candidate = l.get(r.xw + i + 2 * g) + sigmoid_of(r_in) * linear;
    if (r.gates != nullptr) {
      l.put(r.gates + i, z_in);
      l.put(r.gates + i + g, r_in);
      l.put(r.gates + i + 2 * g, candidate);
      l.put(r.gates + i + 3 * g, linear);
    }
    const V z = sigmoid_of(z_in);
    const V h = (1.0f - z) * tanh_of(candidate) + z * l.get(r.before + i);
    l.put(r.h + i, h);
    l.put(r.y + i, h);
  }
}

void gru_cell_grad(const RnnRow& r) {
  const std::int64_t g = r.gate;
  for (std::int64_t i = 0; i < r.n; i += width) {
    const Lanes l{r.n - i};
    const V z = sigmoid_of(l.get(r.gates + i)), reset = sigmoid_of(l.get(r.gates + i + g));
    const V candidate = tanh_of(l.get(r.gates + i + 2 * g)), linear = l.get(r.gates + i + 3 * g);
    const V dh = arriving(r, l, i);
    const V dn = dh * (1.0f - z) * slope_of_tanh(candidate);
    l.put(r.da + i, dh * (l.get(r.before + i) - candidate) * slope_of_sigmoid(z));
    l.put(r.da + i + g, dn * linear * slope_of_sigmoid(reset));
    l.put(r.da + i + 2 * g, dn);
    l.put(r.dlinear + i, dn * reset);
    l.put(r.dh + i, dh * z);
  }
}

void gru_gates(const RnnRow& r) {
  const std::int64_t g = r.gate, p = r.part;
  for (std::int64_t i = 0; i < r.n; i += width) {
    const Lanes l{r.n - i};
    const V z_in = l.get(r.xw + i) + l.get(r.product + i);
    const V r_in = l.get(r.xw + i + g) + l.get(r.product + i + p);
    if (r.gates != nullptr) {
      l.put(r.gates + i, z_in);
      l.put(r.gates + i + g, r_in);
    }
    l.put(r.kept + i, sigmoid_of(z_in));
    l.put(r.h + i, sigmoid_of(r_in) * l.get(r.before + i));
  }
}

void gru_candidate(const RnnRow& r) {
  for (std::int64_t i = 0; i < r.n; i += width) {
    const Lanes l{r.n - i};
    const V candidate = l.get(r.xw + i + 2 * r.gate) + l.get(r.product + i);
    if (r.gates != nullptr) l.put(r.gates + i + 2 * r.gate, candidate);
    const V z = l.get(r.kept + i);
    const V h = (1.0f - z) * tanh_of(candidate) + z * l.get(r.before + i);
    l.put(r.h + i, h);
    l.put(r.y + i, h);
  }
}

void gru_candidate_grad(const RnnRow& r) {
  const std::int64_t g = r.gate;
  for (std::int64_t i = 0; i < r.n; i += width) {
    const Lanes l{r.n - i};
    const V z = sigmoid_of(l.get(r.gates + i)), candidate = tanh_of(l.get(r.gates + i + 2 * g));
    const V dh = arriving(r, l, i);
    l.put(r.da + i, dh * (l.get(r.before + i) - candidate) * slope_of_sigmoid(z));
    l.put(r.da + i + 2 * g, dh * (1.0f - z) * slope_of_tanh(candidate));
    l.put(r.dh + i, dh * z);
  }
}

void gru_reset_grad(const RnnRow& r) {
  for (std::int64_t i = 0; i < r.n; i += width) {
    const Lanes l{r.n - i};
    const V reset = sigmoid_of(l.get(r.gates + i + r.gate)), dq = l.get(r.product + i);
    const V before = l.get(r.before + i);
    l.put(r.da + i + r.gate, dq * before * slope_of_sigmoid(reset));
    l.put(r.dh + i, l.get(r.dh + i) + dq * reset);
    l.put(r.reset + i, reset * before);
  }
}

constexpr RnnCells table{plain_cell<true>,
                         plain_cell<false>,
                         lstm_cell,
                         gru_cell,
                         gru_gates,
                         gru_candidate,
                         plain_cell_grad<true>,
                         plain_cell_grad<false>,
                         lstm_cell_grad,
                         gru_cell_grad,
                         gru_candidate_grad,
                         gru_reset_grad};

}  // namespace
}  // namespace TANDEM_NAMESPACE
}  // namespace tandem
