// The rules of updates as kernels on the GPU take them: they travel with the launch, and the
// factors of a step are made from scalars in the GPU's memory.
#pragma once

#include <cstdint>

#include "engine/device/kernel.h"
#include "engine/graph/host_device.h"
#include "engine/optimizers/settings.h"
#include "kernels/shared/block/block.h"

namespace tandem::cuda {

/// Kernels of the rules are compiled in that many files: file `part` has rule number `part` and
/// every `rule_parts`-th after it.
inline constexpr int rule_parts = 4;
template <class R, int part>
inline constexpr bool is_of_part = rule_index<R> % rule_parts == part;

/// The inputs lr, step, scale, skip of an update, in the GPU's memory.
struct StepScalars {
  const float* lr = nullptr;
  const std::int64_t* step = nullptr;
  const float* scale = nullptr;
  const bool* skip = nullptr;

  StepScalars() = default;
  StepScalars(const KernelArguments& a, std::size_t first)
      : lr(static_cast<const float*>(a.inputs[first])),
        step(static_cast<const std::int64_t*>(a.inputs[first + 1])),
        scale(static_cast<const float*>(a.inputs[first + 2])),
        skip(static_cast<const bool*>(a.inputs[first + 3])) {}
};

/// The factors of a step; they hold nothing where the step is skipped.
template <class Rule>
struct StepFactors {
  typename Rule::Step step;
  bool skipped;
};

/// One thread computes the factors, in double, for its block; they are at the start of its shared
/// memory. Ends with a barrier.
template <class Rule, class Block>
TANDEM_HOST_DEVICE StepFactors<Rule> step_factors(const Block& block, const Rule& rule,
                                                  const StepScalars& scalars) {
  auto* const factors = block.template shared<StepFactors<Rule>>();
  block.one([&] {
    const auto lr = static_cast<double>(*scalars.lr);
    factors->skipped = *scalars.skip || Rule::Kind::is_no_step(lr);
    if (!factors->skipped) {
      factors->step = rule.step(lr, *scalars.step, static_cast<double>(*scalars.scale));
    }
  });
  block.sync();
  return *factors;
}

}  // namespace tandem::cuda
