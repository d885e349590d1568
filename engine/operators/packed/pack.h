// Packs a matrix of floats into weights of few bits.
#pragma once

#include <cstdint>

#include "engine/graph/host_tensor.h"
#include "engine/operators/packed/packing.h"

namespace tandem {

struct PackedTensor {
  PackedKind kind = PackedKind::int8;
  TensorType from;    // what it was made of
  HostTensor data;    // [rows..., row_bytes], or [rows..., columns] for kinds of 16 bits
  HostTensor scales;  // [rows, blocks of a row]; empty for kinds of 16 bits
  std::int64_t block = 0;
  /// sqrt(sum of (w - packed w)^2 / sum of w^2).
  double error = 0;

  std::size_t bytes() const { return data.bytes() + scales.bytes(); }
};

/// The numbers that share a scale where a rule does not say it: 64 for nf4, as in QLoRA, else 32.
std::int64_t usual_block(PackedKind kind);

/// Packs `w` of float32, float16 or bfloat16 along its last axis: int8, int4, nf4, float16 or
/// bfloat16. Each block of `block` neighbours in a row shares a scale, by which its largest number
/// is represented: int8 as 127, int4 as -8 (the scale has the other sign where it is positive), nf4
/// as 1. Scales are float16 where all of them are normal numbers of that type, else float32. Equal
/// bits on all processors. Throws Error{data} with `name` where w is not finite, or too large for
/// float16.
PackedTensor pack(const HostTensor& w, PackedKind kind, std::int64_t block,
                  const std::string& name);
/// The numbers that it stands for, in float32 and in the shape of w.
HostTensor unpack(const PackedTensor& packed);

}  // namespace tandem
