// Limits on gradients between their sum over ranks and the update: by value, adaptive, by norm.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/graph/builder.h"
#include "engine/train/graph/rank_sums.h"
#include "engine/train/updates/add_update.h"

namespace tandem {

/// Clips the gradients of one training graph. First each element is clipped to clip_value, as
/// PyTorch's clip_grad_value_; then clip_adaptive scales each output unit's gradient G of a weight
/// W down to clip_adaptive max(|W|, clip_adaptive_eps) (Brock et al. 2021, "High-Performance
/// Large-Scale Image Recognition Without Normalization"; a vector is one unit); then clip_norm
/// scales all gradients together, and that of a group those of its parameters, as clip_grad_norm_.
class GradientClipping {
 public:
  GradientClipping(GraphBuilder& g, const OptimizerConfig& config) : g_(g), config_(config) {}

  /// Whether the gradients of a group (-1: of none) are changed one by one: they have to be dense.
  bool changes_elements(int group) const;
  /// Whether the limit depends on the weights themselves.
  bool reads_weights(int group) const { return adaptive(group) > 0; }
  /// Whether gradients are scaled to a norm.
  bool has_norms() const;
  /// Whether the only clipping is clip_norm over all parameters together.
  bool is_plain() const;

  /// Changes the gradient. `scale`: that of the loss; without a value there is none. Throws
  /// Error{usage} where the update covers only a part of its parameter.
  void clip_elements(UpdateRequest& update, ValueId scale);

  /// A scale of gradients for each update, to multiply with the one that undoes the scale of the
  /// loss; without a value: none. `squares`: sums of squares of the gradients, one an update. Gives
  /// the output "gradient_norm" where clip_norm is set.
  std::vector<ValueId> norm_scales(const std::vector<UpdateRequest>& updates,
                                   const std::vector<ValueId>& squares, ValueId scale);

 private:
  double value(int group) const;     // 0: none
  double adaptive(int group) const;  // 0: none
  const std::optional<double>& own_norm(int group) const;
  ValueId times(ValueId scale, double factor, DType dtype);
  ValueId adapted(const UpdateRequest& update, ValueId gradient, double ratio, ValueId scale,
                  const Ints& axes);

  GraphBuilder& g_;
  const OptimizerConfig& config_;
};

/// The axes of a parameter over which the weights of one output unit lie, by what reads it in the
/// forward graph: the inputs of a product, channels in and window of a convolution, the columns of
/// a table. All axes of a vector.
Ints axes_of_units(const Graph& graph, const State& parameter);

}  // namespace tandem
