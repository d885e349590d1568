// The loss scale of float16 (precision.loss_scale): its states in training graphs, and what a run
// says of it. As PyTorch's GradScaler, but on the device: no step waits for the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/runtime/program.h"
#include "engine/training/config/run_config.h"
#include "engine/training/optimizers/optimizer.h"

namespace tandem {

/// Scalar states of every training graph with a loss scale; in checkpoints beside the moments.
inline constexpr const char* loss_scale_state = "optimizer.loss_scale";        // float32
inline constexpr const char* good_steps_state = "optimizer.good_steps";        // int64
inline constexpr const char* skipped_steps_state = "optimizer.skipped_steps";  // int64
bool is_loss_scale_state(const std::string& name);

/// Outputs of graphs that update: the scale of the next step (float32), steps skipped so far
/// (int64).
inline constexpr const char* loss_scale_output = "loss_scale";
inline constexpr const char* skipped_steps_output = "skipped_steps";

/// Adds the state whose value every gradient starts with, in place of 1.
ValueId add_loss_scale(GraphBuilder& g, const PrecisionConfig& precision);

/// Adds the counters and the LossScale node over all gradients' sums of squares, with its outputs;
/// "gradient_norm" where clipped. Gives what updates take: a skipped step changes nothing, and
/// their step counts those that were taken. `scale` is add_loss_scale's.
UpdateScalars add_scaled_step(GraphBuilder& g, ValueId scale, const RunConfig& config, ValueId step,
                              const std::vector<ValueId>& squares);

/// A fixed scale is the configuration's, whatever a checkpoint held.
void keep_fixed_loss_scale(StateStore& states, const PrecisionConfig& precision);

/// Ends runs whose gradients are not finite whatever the scale.
class LossScaleWatch {
 public:
  /// After each step. Throws Error{diverged} where 40 steps in a row were skipped, or the scale
  /// fell below 1e-6.
  void check(const RunConfig& config, std::uint64_t step, double scale, std::int64_t skipped);

 private:
  std::int64_t known_ = -1;  // skipped steps before
  int in_a_row_ = 0;
};

}  // namespace tandem
