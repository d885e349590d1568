// One step of a recurrent layer for a run of units of one sample, compiled once for each
// instruction set. What is computed is in engine/operators/rnn_scan.cpp; activations are the
// defaults, and those of RNN also Relu.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"

namespace tandem {

/// Addresses of the first unit; gates lie `gate` (in xw, gates, da) and `part` (in product) apart.
struct RnnRow {
  std::int64_t n = 0;  // units
  std::int64_t gate = 0, part = 0;

  // Forward
  const float* xw = nullptr;
  const float* product = nullptr;  // R h; gradient: what the later step gives to h, may be null
  const float* bias_h = nullptr;   // may be null
  const float* before = nullptr;   // h before the step
  float* gates = nullptr;          // may be null
  float* cell = nullptr;           // c, before the step and then after it
  float* kept = nullptr;           // GRU in two phases: z, from the first to the second
  float* h = nullptr;              // h; from GRU's first phase: r h
  float* y = nullptr;              // h once more

  // Gradient: `gates` is read, `before` too
  const float* cell_before = nullptr;  // may be null: 0
  const float* cell_behind = nullptr;
  const float* dy = nullptr;  // may be null
  float* dh = nullptr;  // what arrives at h; afterwards what is passed on without the products
  float* dc = nullptr;  // as dh, for c
  float* da = nullptr;
  float* dlinear = nullptr;  // gradient of R h + bias_h
  float* reset = nullptr;    // r h
};
using RnnRowFunction = void (*)(const RnnRow&);

struct RnnCells {
  RnnRowFunction tanh, relu, lstm;
  RnnRowFunction gru;                       // linear_before_reset
  RnnRowFunction gru_gates, gru_candidate;  // its two phases otherwise: z, r h; then h
  RnnRowFunction tanh_grad, relu_grad, lstm_grad;
  RnnRowFunction gru_grad;
  RnnRowFunction gru_candidate_grad, gru_reset_grad;  // for z and n; then for r, by `product`
};

extern const RnnCells rnn_cells_avx2;
extern const RnnCells rnn_cells_avx512;

inline const RnnCells& rnn_cells(Isa isa) {
  return isa == Isa::avx512 ? rnn_cells_avx512 : rnn_cells_avx2;
}

}  // namespace tandem
