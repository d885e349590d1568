// The loss scale of float16 (precision.loss_scale): its states in training graphs, and the messages
// of a run about it. Like PyTorch's GradScaler, but on the device: no step waits for the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/graph/builder.h"
#include "engine/runtime/program.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/updates/add_update.h"

namespace tandem {

/// Scalar states of every training graph with a loss scale; checkpoints hold them next to the
/// moments.
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
/// "gradient_norm" where `max_norm` clips it. Gives what updates take: a skipped step changes
/// nothing, and their step counts those that were taken. `scale` is add_loss_scale's.
UpdateScalars add_scaled_step(GraphBuilder& g, ValueId scale, const std::optional<double>& max_norm,
                              const PrecisionConfig& precision, ValueId step,
                              const std::vector<ValueId>& squares);

/// The number of steps, without those that a loss scale skipped; updates count these.
std::int64_t taken_steps(const StateStore& states, std::int64_t steps);
/// As above, for the steps of a checkpoint.
std::int64_t taken_steps(const CheckpointContent& content);

/// Writes the loss scale of a checkpoint into `states`, but for a fixed scale, which is the
/// configuration's. Returns the states that this run does not have, which its own checkpoints keep.
/// Throws Error{data} naming `checkpoint` and the state where a value cannot be.
std::vector<NamedTensor> restore_loss_scale(StateStore& states, const PrecisionConfig& precision,
                                            const CheckpointContent& content,
                                            const std::string& checkpoint);

/// Leaves a fixed scale out of what a checkpoint is written from: a dynamic one that follows starts
/// anew.
void leave_out_fixed_loss_scale(CheckpointSources& sources, const PrecisionConfig& precision);

/// Ends runs whose gradients are not finite whatever the scale.
class LossScaleWatch {
 public:
  /// For a resumed run: the steps skipped so far, and how many of them were the last ones.
  void start(std::int64_t skipped, std::int64_t in_a_row);
  /// After a step that ends the run anyway.
  void note(std::int64_t skipped);
  /// After each other step. Throws Error{diverged} where a fixed scale skipped 40 steps in a row,
  /// or a dynamic one fell below 1e-6.
  void check(const RunConfig& config, std::uint64_t step, double scale, std::int64_t skipped);
  /// How many steps up to the last one were skipped.
  std::int64_t in_a_row() const { return in_a_row_; }

 private:
  std::int64_t known_ = 0;  // skipped steps before
  std::int64_t in_a_row_ = 0;
};

}  // namespace tandem
