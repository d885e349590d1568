// The divergence of a diagonal Gaussian from the standard one, as in a variational autoencoder
// (Kingma and Welling 2013): sum(mu^2 + exp(log_var) - 1 - log_var) / 2 over all axes of a sample.
#include "engine/losses/loss_builder.h"

namespace tandem::losses {
namespace {

std::optional<Losses> build_gaussian_kl(LossBuilder& b) {
  GraphBuilder& g = b.g;
  if (!b.same_shapes(2)) return std::nullopt;
  const ValueId mu = b.values[0], log_var = b.values[1];
  const ValueId by_element = g.sub(g.add(g.mul(mu, mu), b.op("Exp", log_var)), b.plus(log_var, 1));
  Ints axes = all_axes(g.shape(mu).size());
  axes.erase(axes.begin());
  return Losses{b.times(g.reduce_sum(by_element, axes, false), 0.5), {}};
}

}  // namespace

LossKind gaussian_kl() {
  return {.name = "gaussian_kl",
          .source = "Kingma and Welling 2013, appendix B",
          .help = "sum(mu^2 + exp(log_var) - 1 - log_var) / 2 for each sample",
          .values = {{"mu", "value of the graph: means"},
                     {"log_var", "value of the graph: logarithms of variances"}},
          .build = build_gaussian_kl};
}

}  // namespace tandem::losses
