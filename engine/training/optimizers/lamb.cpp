// LAMB (You et al., arXiv:1904.00962, algorithm 2): Adam's moments m and v, u = m^ / (sqrt(v^) +
// eps) + weight_decay * w, w -= lr * (|w| / |u|) * u with the norms of the whole parameter; the
// factor is 1 where either norm is 0, and at most trust_clip where that is not 0. Without
// always_adapt it is 1 also where weight_decay is 0, as in NVIDIA's FusedLAMB and timm's Lamb by
// default: that is Adam.
#include "engine/training/optimizers/optimizer.h"

namespace tandem {

UpdateChoice choose_lamb(const OptimizerOptions& o) {
  if (!o.always_adapt && o.weight_decay == 0) {
    OptimizerOptions adam = o;
    adam.kind = OptimizerKind::adam;
    return choose_adam(adam);
  }
  return {.op = "LambUpdate",
          .settings = {{"beta1", o.beta1},
                       {"beta2", o.beta2},
                       {"epsilon", o.eps},
                       {"weight_decay", o.weight_decay},
                       {"bias_correction", std::int64_t{o.bias_correction}},
                       {"trust_clip", o.trust_clip}},
          .takes_rows = false};
}

}  // namespace tandem
