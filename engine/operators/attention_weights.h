// Matrices whose products make the queries, keys and values of attention, or read what it makes.
#pragma once

#include <string>

#include "engine/operators/operator.h"

namespace tandem {

/// How a matrix is split by the heads of an attention next to it.
struct AttentionWeight {
  NodeId attention;      // none: `obstacle` says why
  std::size_t axis = 0;  // the matrix's axis along which each head is a block of neighbours
  std::int64_t heads = 0;
  std::string obstacle;
};

/// Follows what the products of the matrix make, or what they read, through operators that keep the
/// elements of a head together (element-wise ones, Reshape, Transpose), to an Attention of [batch,
/// heads, queries, size].
AttentionWeight attention_weight(const Graph& graph, ValueId matrix);

}  // namespace tandem
