// LSTM, GRU, plain recurrent networks, and cells in loops.
#include "api/init/networks/network.h"

namespace tandem::api::networks {
namespace {

bool is_recurrent(const ModelFacts& model) {
  return model.count("LSTM") + model.count("GRU") + model.count("RNN") + model.count("Scan") +
             model.count("Loop") >
         0;
}

void optimize_recurrent(const ModelFacts&, const RunLength&, GuessedSection& optimizer) {
  optimizer.keys = {
      {"kind", "\"adam\"", "adapts to gradients of very different size (arXiv:1412.6980)", ""},
      {"lr", "1e-3", "the publication's and PyTorch's default", ""},
      {"schedule", "{ kind = \"cosine\" }",
       "down to 0 over the run (Loshchilov and Hutter, arXiv:1608.03983)", ""},
      {"clip_norm", "1.0",
       "gradients through many steps of time explode (Pascanu et al., arXiv:1211.5063)", ""},
  };
}

}  // namespace

Network recurrent() {
  return {.name = "a recurrent network", .is = is_recurrent, .optimize = optimize_recurrent};
}

}  // namespace tandem::api::networks
