// Chooses the next token by its logits: the greatest, or one that is drawn.
#pragma once

#include <cstdint>
#include <span>

namespace tandem::api {

struct TokenChoice {
  double temperature = 0;  // 0: the token with the greatest logit
  std::int64_t top_k = 0;  // tokens with the greatest logits that may be drawn; 0: all
  double top_p = 1;        // probability that the tokens have together from which is drawn
};

/// The chosen token; -1 where a logit is NaN or the greatest one is infinite. Equal logits: the
/// token with the lower id comes first. `chance`: a random number, 0 <= chance < 1.
///
/// As in transformers, `top_k` comes before `top_p`, and both act on logits / temperature. The
/// tokens of `top_p` include the one by which their sum reaches it.
std::int64_t choose_token(std::span<const float> logits, const TokenChoice& how, double chance);

}  // namespace tandem::api
