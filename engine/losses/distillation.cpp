// Distillation (Hinton, Vinyals, Dean 2015): T^2 sum_c p_c (log p_c - log q_c) with p = softmax of
// the teacher's logits / T and q = softmax of the model's logits / T. T^2 keeps the size of
// gradients whatever T is. PyTorch: T^2 kl_div(log q, log p, log_target=True) summed over the
// classes.
#include "engine/losses/distillation.h"

#include "engine/losses/loss_builder.h"

namespace tandem::losses {
namespace {

std::optional<Losses> build_distillation(LossBuilder& b) {
  if (!b.same_shapes(2)) return std::nullopt;
  GraphBuilder& g = b.g;
  const Shape& shape = g.shape(b.values[0]);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto& options = b.options<DistillationOptions>();
  std::int64_t axis = options.axis;
  if (axis < 0) axis += rank;
  if (axis < 1 || axis >= rank) {
    b.fail("axis is out of range", "the axis of the classes, 1 to " + std::to_string(rank - 1),
           std::to_string(options.axis));
    return std::nullopt;
  }
  const double temperature = options.temperature;
  const Attributes along{{"axis", axis}};
  const ValueId log_q = g.add_node("LogSoftmax", {b.times(b.values[0], 1 / temperature)}, along);
  const ValueId log_p = g.add_node(
      "LogSoftmax", {b.times(g.cast(b.values[1], g.dtype(b.values[0])), 1 / temperature)}, along);
  const ValueId terms = g.mul(b.op("Exp", log_p), g.sub(log_p, log_q));
  return Losses{b.times(g.reduce_sum(terms, {axis}, false), temperature * temperature), {}};
}

}  // namespace

LossKind distillation() {
  return {.name = "distillation",
          .source = "Hinton, Vinyals, Dean 2015: Distilling the Knowledge in a Neural Network",
          .help =
              "T^2 sum over classes of p (log p - log q), p = softmax(teacher_logits / T), q = "
              "softmax(logits / T), T = temperature",
          .values = {{"logits", "value of the graph; never the output of a Softmax or Sigmoid",
                      ValueForm::logits},
                     {"teacher_logits", "of the teacher: teacher.NAME (see [distillation])",
                      ValueForm::logits}},
          .options = DistillationOptions{},
          .build = build_distillation};
}

}  // namespace tandem::losses
