// Dense layers, and every network that no other rule matches.
#include "api/init/networks/network.h"

namespace tandem::api::networks {
namespace {

bool is_perceptron(const ModelFacts&) { return true; }

void optimize_perceptron(const ModelFacts&, const RunLength&, GuessedSection& optimizer) {
  optimizer.keys = {
      {"kind", "\"adam\"",
       "needs the least tuning where nothing is known of a network (arXiv:1412.6980)", ""},
      {"lr", "1e-3", "the publication's and PyTorch's default", ""},
      {"schedule", "{ kind = \"cosine\" }",
       "down to 0 over the run (Loshchilov and Hutter, arXiv:1608.03983)", ""},
  };
}

}  // namespace

Network perceptron() {
  return {
      .name = "a network of dense layers", .is = is_perceptron, .optimize = optimize_perceptron};
}

}  // namespace tandem::api::networks
