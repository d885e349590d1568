// What LossScale does once it has the sum of all squares: one source for the reference, the CPU's
// and the GPU's kernels.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/graph/attributes.h"
#include "engine/graph/host_device.h"

namespace tandem {

/// The attributes of LossScale.
struct LossScaleSettings {
  double max_norm = 0, growth_factor = 2, backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
};

inline LossScaleSettings loss_scale_settings(const Attributes& attributes) {
  return {attributes.number("max_norm"), attributes.number("growth_factor"),
          attributes.number("backoff_factor"), attributes.integer("growth_interval")};
}

/// Inputs and outputs of a LossScale node, scalars of T but for the counts; an output that is not
/// read is null.
template <class T>
struct LossScaleOperands {
  const T* scale;
  const std::int64_t *good_steps, *skipped_steps, *step;
  T* new_scale;
  std::int64_t *new_good_steps, *new_skipped_steps;
  T* factor;
  bool* skip;
  std::int64_t* taken_step;
  T* norm;

  LossScaleOperands() = default;
  LossScaleOperands(const void* const* inputs, void* const* outputs)
      : scale(static_cast<const T*>(inputs[0])),
        good_steps(static_cast<const std::int64_t*>(inputs[1])),
        skipped_steps(static_cast<const std::int64_t*>(inputs[2])),
        step(static_cast<const std::int64_t*>(inputs[3])),
        new_scale(static_cast<T*>(outputs[0])),
        new_good_steps(static_cast<std::int64_t*>(outputs[1])),
        new_skipped_steps(static_cast<std::int64_t*>(outputs[2])),
        factor(static_cast<T*>(outputs[3])),
        skip(static_cast<bool*>(outputs[4])),
        taken_step(static_cast<std::int64_t*>(outputs[5])),
        norm(static_cast<T*>(outputs[6])) {}
};

template <class T, class Value>
TANDEM_HOST_DEVICE inline void put_scalar(T* to, Value value) {
  if (to != nullptr) *to = static_cast<T>(value);
}

/// `squares`: the sum over all gradients, of scale * loss. New values may lie where the old ones
/// do.
template <class T>
TANDEM_HOST_DEVICE inline void loss_scale_step(const LossScaleSettings& s,
                                               const LossScaleOperands<T>& at, double squares) {
  const double scale = static_cast<double>(*at.scale);
  const std::int64_t good = *at.good_steps, skipped = *at.skipped_steps, step = *at.step;
  const bool skip = !(squares - squares == 0);  // infinite or not a number
  const double norm = std::sqrt(squares) / scale, ratio = s.max_norm / (norm + 1e-6);
  const double clip = s.max_norm > 0 && ratio < 1 ? ratio : 1;
  const bool is_fixed = s.growth_interval == 0;
  const bool grows = !is_fixed && !skip && good + 1 >= s.growth_interval;
  T next = static_cast<T>(scale);
  if (skip && !is_fixed) next = static_cast<T>(scale * s.backoff_factor);
  if (grows) {
    const T more = static_cast<T>(scale * s.growth_factor);
    if (more - more == 0) next = more;
  }
  put_scalar(at.new_scale, next);
  put_scalar(at.new_good_steps, skip || grows ? 0 : good + 1);
  put_scalar(at.new_skipped_steps, skipped + (skip ? 1 : 0));
  put_scalar(at.factor, skip ? 0 : clip / scale);
  put_scalar(at.skip, skip);
  put_scalar(at.taken_step, step - skipped);
  put_scalar(at.norm, norm);
}

}  // namespace tandem
