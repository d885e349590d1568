// What Adam's family shares: the gradient with its decay, and the means of it and of its square. g
// = scale * grad + weight_decay * w; m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) *
// g^2. Decoupled decay leaves the gradient unchanged; w shrinks by lr * weight_decay * w instead.
#pragma once

#include "engine/optimizers/formula.h"

namespace tandem {

template <class S>
struct Moments {
  S scale, beta1, rest1, beta2, rest2;  // rest = 1 - beta
  S weight_decay;                       // added to the gradient; 0 where decoupled
  S shrink;                             // factor of the master; 1 where coupled

  /// Replaces m and v, which are the first two states; returns g.
  template <class T>
  TANDEM_FORMULA T accumulate(T w, T grad, T* states) const {
    const T g = grad * scale + w * weight_decay;
    states[0] = states[0] * beta1 + g * rest1;
    states[1] = states[1] * beta2 + g * rest2 * g;
    return g;
  }
};

/// The factors of a step with these settings.
template <class S, class Settings>
TANDEM_FORMULA Moments<S> moments_of(const Settings& s, double lr, double scale) {
  return {S(scale),
          S(s.beta1),
          S(1.0 - s.beta1),
          S(s.beta2),
          S(1.0 - s.beta2),
          S(s.decoupled ? 0.0 : s.weight_decay),
          S(s.decoupled ? 1.0 - lr * s.weight_decay : 1.0)};
}

}  // namespace tandem
