// Our own matrix product: C = epilogue(alpha A B [+ C]) for any strides, with packed panels where
// they pay, in AVX2 and AVX-512. Orientation, blocking and the cut between threads are fixed when
// planned.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/operators/activation.h"
#include "kernels/cpu/isa.h"

namespace tandem {

/// Extents and strides (in elements) of C[m, n] = A[m, k] B[k, n]. One stride of C must be 1.
struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_m = 0, a_k = 0;
  std::int64_t b_k = 0, b_n = 0;
  std::int64_t c_m = 0, c_n = 0;
  std::int64_t bias_m = 0, bias_n = 0;              // at most one is not 0
  std::int64_t multiplier_m = 0, multiplier_n = 0;  // unit stride where C has it
};

/// What changes from call to call.
struct GemmArguments {
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  const float* bias = nullptr;        // null: none
  const float* multiplier = nullptr;  // relu_grad only
  float alpha = 1;
  bool accumulate = false;  // add to what C holds
  Activation activation = Activation::none;
};

/// How one product is computed.
struct GemmPlan {
  GemmShape shape;       // after the orientation was chosen: C or its transpose
  bool swapped = false;  // the transpose was chosen: A and B change places
  Isa isa = Isa::avx2;
  int parts_m = 1, parts_n = 1;  // grid of threads
  bool pack_a = false, pack_b = false;
  std::int64_t k_block = 0, n_block = 0;  // in elements
  std::int64_t m_block = 1;               // in tiles: rows of A packed at a time
  std::size_t part_bytes = 0;             // workspace of one part, a multiple of 64

  int parts() const { return parts_m * parts_n; }
  std::size_t workspace_bytes() const { return part_bytes * static_cast<std::size_t>(parts()); }
};

/// Isa must be avx2 or avx512. `threads` = 1 plans a product that runs inline.
GemmPlan plan_gemm(const GemmShape& shape, int threads, Isa isa);

/// Runs all parts, in a region where there are several. `workspace` is 64-byte aligned.
void run_gemm(const GemmPlan& plan, const GemmArguments& arguments, void* workspace);

/// Elements from one packed panel to the next: a line more than whole, so that panels of a power of
/// two do not fall into the same sets of the cache.
inline std::int64_t panel_distance(std::int64_t k, std::int64_t step) {
  return (k * step + 15) / 16 * 16 + 16;
}

// One part of a plan, as the instruction sets implement it. Pointers are at the part's first
// element.
struct GemmPart {
  const GemmPlan* plan;
  GemmArguments arguments;
  std::int64_t m, n;
  float* workspace;
};
void gemm_part_avx2(const GemmPart& part);
void gemm_part_avx512(const GemmPart& part);

}  // namespace tandem
