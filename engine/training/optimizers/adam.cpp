// PyTorch's Adam and AdamW (Kingma & Ba, arXiv:1412.6980; Loshchilov & Hutter, arXiv:1711.05101):
// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
// w -= lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps); adamw first: w -= lr *
// weight_decay * w. lazy_adam: the same for the rows with a gradient alone; t counts all steps.
#include "engine/training/optimizers/optimizer.h"

namespace tandem {

UpdateChoice choose_adam(const OptimizerOptions& o) {
  const std::string epsilon_form = o.epsilon_form == EpsilonForm::onnx ? "onnx" : "pytorch";
  return {.op = "AdamUpdate",
          .settings = {{"beta1", o.beta1},
                       {"beta2", o.beta2},
                       {"epsilon", o.eps},
                       {"weight_decay", o.weight_decay},
                       {"decoupled", std::int64_t{o.kind == OptimizerKind::adamw}},
                       {"bias_correction", std::int64_t{o.bias_correction}},
                       {"epsilon_form", epsilon_form}},
          .lazy = o.kind == OptimizerKind::lazy_adam};
}

}  // namespace tandem
