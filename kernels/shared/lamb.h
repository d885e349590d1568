// What LambUpdate does to one element, and the ratio of norms between its two walks over a tensor:
// one source for the reference, the CPU's and the GPU's kernels. The first walk changes the moments
// and adds up the squares of masters and directions; the second makes the direction again and takes
// the step along it. T is the master's type.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/graph/attributes.h"
#include "kernels/shared/host_device.h"

namespace tandem {

/// The attributes of LambUpdate.
struct LambSettings {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6, weight_decay = 0;
  double trust_clip = 0;  // bound of the ratio; 0: none
  bool bias_correction = true;
};

inline LambSettings lamb_settings(const Attributes& attributes) {
  return {attributes.number("beta1"),      attributes.number("beta2"),
          attributes.number("epsilon"),    attributes.number("weight_decay"),
          attributes.number("trust_clip"), attributes.flag("bias_correction")};
}

/// All factors of one step but the rate, which is a tensor's own.
template <class T>
struct LambStep {
  T scale, beta1, rest1, beta2, rest2;  // rest = 1 - beta
  T weight_decay;
  T factor;       // 1 / (1 - beta1^t)
  T root_factor;  // 1 / sqrt(1 - beta2^t)
  T epsilon;
};

/// step counts from 1; scale multiplies the gradient.
template <class T>
TANDEM_HOST_DEVICE inline LambStep<T> lamb_step(const LambSettings& s, std::int64_t step,
                                                double scale) {
  const double t = static_cast<double>(step);
  LambStep<T> a{};
  a.scale = T(scale);
  a.beta1 = T(s.beta1);
  a.rest1 = T(1.0 - s.beta1);
  a.beta2 = T(s.beta2);
  a.rest2 = T(1.0 - s.beta2);
  a.weight_decay = T(s.weight_decay);
  a.factor = T(s.bias_correction ? 1.0 / (1.0 - std::pow(s.beta1, t)) : 1.0);
  a.root_factor = T(s.bias_correction ? 1.0 / std::sqrt(1.0 - std::pow(s.beta2, t)) : 1.0);
  a.epsilon = T(s.epsilon);
  return a;
}

/// Replaces the moments' elements.
template <class T>
TANDEM_HOST_DEVICE inline void lamb_moments(const LambStep<T>& a, T grad, T& exp_avg,
                                            T& exp_avg_sq) {
  const T g = a.scale * grad;
  exp_avg = a.beta1 * exp_avg + a.rest1 * g;
  exp_avg_sq = a.beta2 * exp_avg_sq + a.rest2 * g * g;
}

/// An element of the direction u, from the new moments.
template <class T>
TANDEM_HOST_DEVICE inline T lamb_direction(const LambStep<T>& a, T master, T exp_avg,
                                           T exp_avg_sq) {
  const T root = std::sqrt(exp_avg_sq) * a.root_factor + a.epsilon;
  return a.factor * exp_avg / root + a.weight_decay * master;
}

/// What multiplies the direction: lr times the ratio of the norms, from the sums of squares of a
/// whole tensor. A norm that is not a number stays one.
TANDEM_HOST_DEVICE inline double lamb_rate(const LambSettings& s, double lr, double master_squares,
                                           double direction_squares) {
  if (master_squares == 0 || direction_squares == 0) return lr;
  const double ratio = std::sqrt(master_squares) / std::sqrt(direction_squares);
  return lr * (s.trust_clip > 0 && ratio > s.trust_clip ? s.trust_clip : ratio);
}

}  // namespace tandem
