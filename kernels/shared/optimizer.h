// What SgdUpdate and AdamUpdate do to one element: one source for the reference, the CPU's and the
// GPU's kernels. T is the master's type; settings are converted to it once, per-step factors are
// computed in double.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/graph/attributes.h"
#include "kernels/shared/host_device.h"

namespace tandem {

/// The attributes of SgdUpdate.
struct SgdSettings {
  double momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};

inline SgdSettings sgd_settings(const Attributes& attributes) {
  return {attributes.number("momentum"), attributes.number("dampening"),
          attributes.number("weight_decay"), attributes.flag("nesterov")};
}

/// All factors of one step of SgdUpdate.
template <class T>
struct SgdStep {
  T lr, scale, weight_decay, momentum;
  T decay, keep;  // buffer = decay * buffer + keep * g
  bool nesterov;
};

/// step counts from 1; scale multiplies the gradient.
template <class T>
TANDEM_HOST_DEVICE inline SgdStep<T> sgd_step(const SgdSettings& s, double lr, std::int64_t step,
                                              double scale) {
  const bool first = step <= 1;  // the buffer starts as g itself
  return {T(lr),
          T(scale),
          T(s.weight_decay),
          T(s.momentum),
          T(first ? 0.0 : s.momentum),
          T(first ? 1.0 : 1.0 - s.dampening),
          s.nesterov};
}

/// Without momentum: returns the new master.
template <class T>
TANDEM_HOST_DEVICE inline T sgd_element(const SgdStep<T>& s, T master, T grad) {
  const T g = s.scale * grad + s.weight_decay * master;
  return master - s.lr * g;
}

/// With momentum: also replaces the buffer's element.
template <class T>
TANDEM_HOST_DEVICE inline T sgd_element(const SgdStep<T>& s, T master, T grad, T& buffer) {
  const T g = s.scale * grad + s.weight_decay * master;
  buffer = s.decay * buffer + s.keep * g;
  return master - s.lr * (s.nesterov ? g + s.momentum * buffer : buffer);
}

/// The attributes of AdamUpdate.
struct AdamSettings {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  bool decoupled = false;  // AdamW
  bool bias_correction = true;
  bool onnx_epsilon = false;  // epsilon is added before the bias correction of sqrt(v)
};

inline AdamSettings adam_settings(const Attributes& attributes) {
  return {attributes.number("beta1"),
          attributes.number("beta2"),
          attributes.number("epsilon"),
          attributes.number("weight_decay"),
          attributes.flag("decoupled"),
          attributes.flag("bias_correction"),
          attributes.text("epsilon_form") == "onnx"};
}

/// All factors of one step of AdamUpdate.
template <class T>
struct AdamStep {
  T scale, beta1, rest1, beta2, rest2;  // rest = 1 - beta
  T weight_decay;                       // of the gradient; 0 where decoupled
  T shrink;                             // of the master; 1 where coupled
  T rate;         // lr / (1 - beta1^t), with the ONNX form times sqrt(1 - beta2^t)
  T root_factor;  // 1 / sqrt(1 - beta2^t); 1 with the ONNX form
  T epsilon;
};

/// step counts from 1; scale multiplies the gradient.
template <class T>
TANDEM_HOST_DEVICE inline AdamStep<T> adam_step(const AdamSettings& s, double lr, std::int64_t step,
                                                double scale) {
  const double t = static_cast<double>(step);
  const double correction1 = s.bias_correction ? 1.0 - std::pow(s.beta1, t) : 1.0;
  const double root2 = s.bias_correction ? std::sqrt(1.0 - std::pow(s.beta2, t)) : 1.0;
  AdamStep<T> a{};
  a.scale = T(scale);
  a.beta1 = T(s.beta1);
  a.rest1 = T(1.0 - s.beta1);
  a.beta2 = T(s.beta2);
  a.rest2 = T(1.0 - s.beta2);
  a.weight_decay = T(s.decoupled ? 0.0 : s.weight_decay);
  a.shrink = T(s.decoupled ? 1.0 - lr * s.weight_decay : 1.0);
  a.rate = T(s.onnx_epsilon ? lr * root2 / correction1 : lr / correction1);
  a.root_factor = T(s.onnx_epsilon ? 1.0 : 1.0 / root2);
  a.epsilon = T(s.epsilon);
  return a;
}

/// Returns the new master and replaces the moments' elements.
template <class T>
TANDEM_HOST_DEVICE inline T adam_element(const AdamStep<T>& a, T master, T grad, T& exp_avg,
                                         T& exp_avg_sq) {
  const T g = a.scale * grad + a.weight_decay * master;
  exp_avg = a.beta1 * exp_avg + a.rest1 * g;
  exp_avg_sq = a.beta2 * exp_avg_sq + a.rest2 * g * g;
  const T root = std::sqrt(exp_avg_sq) * a.root_factor + a.epsilon;
  return a.shrink * master - a.rate * exp_avg / root;
}

}  // namespace tandem
