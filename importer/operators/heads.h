// Heads of attention: an axis of their own, and attention over them in all of
// its forms.
#pragma once

#include <optional>

#include "importer/node_context.h"

namespace tandem::importer::operators {

/// [B, S, H D] → [B, H, S, D]; four axes stay.
Term split_heads(NodeContext& node, const Term& x, std::int64_t heads);
/// [B, H, S, D] → [B, S, H D].
Term join_heads(NodeContext& node, const Term& x);
/// [B, H, T, D] → [B, heads, T, D]: each head as often as queries share it,
/// side by side.
Term repeat_heads(NodeContext& node, const Term& x, std::int64_t heads);

/// softmax(cap(scale q kᵀ) + mask) v. A query that sees no key gets zeros.
struct AttentionForm {
  Term q, k,
      v;                     // [B, H, S, D], [B, G, T, D], [B, G, T, E]; H is a multiple of G
  std::optional<Term> mask;  // added, or bool: what is seen; broadcasts to [B, H, S, T]
  bool causal = false;       // query i sees only keys j ≤ i + T - S
  double scale = 1;
  double softcap = 0;                 // cap(x) = softcap tanh(x / softcap); 0: x
  std::optional<DType> softmax_type;  // where it is not q's type
};

/// The inputs split into heads: `heads` of q, `shared` ones of k and v.
AttentionForm with_heads(NodeContext& node, const Term& q, const Term& k, const Term& v,
                         std::int64_t heads, std::int64_t shared);

struct AttentionResult {
  Term y;  // [B, H, S, E]
  Term scores,
      capped;            // [B, H, S, T]: scale q kᵀ, with the cap; where they are wanted
  Term biased, weights;  // with the mask, and their softmax
};

/// The engine's Attention where one node can express it and `steps` is not
/// set, else its parts.
AttentionResult attend(NodeContext& node, AttentionForm form, bool steps = false);

/// Which keys each query sees by its place, as bool [S, T] or [B, 1, S, T]; none: all of them.
/// Query i stands at i + offset, and sees `left` keys before and `right` keys after it (-1: all).
std::optional<Term> visible_keys(NodeContext& node, std::int64_t queries, std::int64_t keys,
                                 std::int64_t offset, std::int64_t left, std::int64_t right);

/// Combines both masks: of two bools both are true, a float one is -infinity where the bool one is
/// false.
std::optional<Term> both_masks(NodeContext& node, const std::optional<Term>& a,
                               const std::optional<Term>& visible);

}  // namespace tandem::importer::operators
