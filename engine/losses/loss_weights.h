// Weights of losses: of classes, of labels that do not count, of samples; and the mean over them.
//
// A loss counts as often as its weights say: with class weight c and sample weight s, mean is
// sum(c s loss) / sum(c s) over all samples of the step. A weight of 2 is a sample that is there
// twice, a weight of 0 one that is not there.
#pragma once

#include "engine/graph/host_tensor.h"
#include "engine/losses/loss_builder.h"

namespace tandem {

/// How many samples one micro-batch and the whole optimizer step have; a mean is over the step.
struct StepSamples {
  std::int64_t micro_batch = 0;
  std::int64_t step = 0;
  bool whole() const { return micro_batch == step; }
};

/// A mean whose denominator depends on the data of the whole step and is fed: the sum of weight_sum
/// over the micro-batches of the step.
struct FedDenominator {
  std::string term;
  std::string input;  // float32 scalar of the training graph
};

/// The options of losses that take integer classes.
struct ClassOptions : KindOptions {
  std::optional<std::int64_t> ignore_index;
  std::vector<double> class_weights;  // empty: all 1
  void visit(KeyVisitor& v) override;
};
/// Those of a term; none are set where its kind takes no classes.
const ClassOptions& class_options(const LossTerm& term);

/// The option of losses of 0/1 labels.
struct PositiveOptions final : KindOptions {
  /// Weights of positive labels, one or one a class; empty: 1. They scale a part of the loss and do
  /// not count in the mean, as in PyTorch.
  std::vector<double> pos_weight;
  void visit(KeyVisitor& v) override;
};

/// Whether labels do not all count alike: ignore_index or class_weights is set.
bool weighs_labels(const LossTerm& term);
/// Whether a mean divides by a sum of weights.
inline bool has_weights(const LossTerm& term) {
  return weighs_labels(term) || !term.sample_weights.empty();
}

/// One weight a label, or an unset value where all are 1. Without `with_classes` class weights are
/// left out: ignored labels have 0, others 1. A wrong number of class weights is reported, and then
/// nothing returned.
std::optional<ValueId> label_weights(LossBuilder& b, const ClassLabels& labels,
                                     bool with_classes = true);
/// pos_weight as factors along the last axis of x; an unset value where it is not set.
std::optional<ValueId> pos_weight(LossBuilder& b, ValueId x);

/// The micro-batch's share of the term. `sample_weights` may be unset.
std::optional<ValueId> reduced(LossBuilder& b, Losses losses, ValueId sample_weights,
                               const StepSamples& samples, std::vector<FedDenominator>& fed);

/// The value of a fed denominator: the sum of these samples' weights. Null: the term reads none.
double weight_sum(const LossTerm& term, const HostTensor* labels, const HostTensor* sample_weights);

}  // namespace tandem
