// Products with a right operand that is packed once and multiplied many times: C = A B, panel by
// panel of B's columns, on the tiles of kernels/cpu/products/gemm.h.
#pragma once

#include <cstdint>

#include "kernels/cpu/products/gemm.h"

namespace tandem {

/// Columns of a panel.
constexpr std::int64_t panel_columns(Isa isa) { return isa == Isa::avx512 ? 32 : 16; }

/// Floats that n columns of k elements take when packed.
inline std::int64_t packed_floats(Isa isa, std::int64_t k, std::int64_t n) {
  const std::int64_t columns = panel_columns(isa);
  return (n + columns - 1) / columns * panel_distance(k, columns);
}

/// Panels of B[k, n], each panel_distance(k, panel_columns) after the one before.
struct PanelPacking {
  float* to;
  const float* b;
  std::int64_t b_k, b_n;  // strides
  std::int64_t k, n;
};

/// C[m, columns] = A[m, k] times one panel, or C += that.
struct PanelProduct {
  std::int64_t m, k, columns;
  const float* a;
  std::int64_t a_m;  // from row to row; elements of a row are neighbours
  const float* panel;
  float* c;
  std::int64_t c_m;
  bool accumulate = false;
};

// Isa must be avx2 or avx512.
void pack_panels_avx2(const PanelPacking& packing);
void pack_panels_avx512(const PanelPacking& packing);
void multiply_panel_avx2(const PanelProduct& product);
void multiply_panel_avx512(const PanelProduct& product);

inline void pack_panels(Isa isa, const PanelPacking& packing) {
  isa == Isa::avx512 ? pack_panels_avx512(packing) : pack_panels_avx2(packing);
}
inline void multiply_panel(Isa isa, const PanelProduct& product) {
  isa == Isa::avx512 ? multiply_panel_avx512(product) : multiply_panel_avx2(product);
}

}  // namespace tandem
