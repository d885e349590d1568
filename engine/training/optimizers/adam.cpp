// PyTorch's Adam and AdamW (Kingma & Ba, arXiv:1412.6980; Loshchilov & Hutter, arXiv:1711.05101):
// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
// w -= lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps); adamw first: w -= lr *
// weight_decay * w.
#include "engine/training/optimizers/optimizer.h"

namespace tandem {

void add_adam_update(GraphBuilder& g, const UpdateRequest& request, const UpdateScalars& scalars) {
  const OptimizerOptions& o = request.options;
  const ValueId master = request.parameter.initial;
  const ValueId exp_avg = add_moment(g, request.parameter, "exp_avg");
  const ValueId exp_avg_sq = add_moment(g, request.parameter, "exp_avg_sq");
  const std::string epsilon_form = o.epsilon_form == EpsilonForm::onnx ? "onnx" : "pytorch";
  const std::vector<ValueId> made =
      g.node("AdamUpdate",
             {master, request.gradient, exp_avg, exp_avg_sq, request.lr, scalars.step,
              scalars.scale, scalars.skip},
             {{"beta1", o.beta1},
              {"beta2", o.beta2},
              {"epsilon", o.eps},
              {"weight_decay", o.weight_decay},
              {"decoupled", std::int64_t{o.kind == OptimizerKind::adamw}},
              {"bias_correction", std::int64_t{o.bias_correction}},
              {"epsilon_form", epsilon_form}});
  g.write_state(master, made[0]);
  g.write_state(exp_avg, made[1]);
  g.write_state(exp_avg_sq, made[2]);
}

}  // namespace tandem
