// Networks with convolutions.
#include <fmt/format.h>

#include "api/init/networks/network.h"

namespace tandem::api::networks {
namespace {

bool is_convolutional(const ModelFacts& model) { return model.count("Conv") > 0; }

void optimize_convolutional(const ModelFacts& model, const RunLength& length,
                            GuessedSection& optimizer) {
  const bool is_normalised = model.count("BatchNormalization") + model.count("GroupNormalization") +
                                 model.count("InstanceNormalization") >
                             0;
  if (is_normalised) {
    optimizer.keys = {
        {"kind", "\"sgd\"",
         "the usual optimizer of convolutional networks (ResNet, arXiv:1512.03385)", ""},
        {"lr", rate(0.1 * static_cast<double>(length.batch) / 256),
         "0.1 for 256 samples a step, in proportion to batch_size (Goyal et al., "
         "arXiv:1706.02677)",
         ""},
        {"momentum", "0.9", "as ResNet", ""},
        {"weight_decay", "1e-4", "as ResNet", ""},
    };
  } else {
    optimizer.keys = {
        {"kind", "\"adam\"",
         "the network has no normalisation, or its export has folded it into the weights: Adam "
         "adapts to gradients of very different size, where SGD would need a tuned rate (Kingma "
         "and Ba, arXiv:1412.6980)",
         ""},
        {"lr", "1e-3", "the publication's and PyTorch's default", ""},
    };
  }
  optimizer.keys.push_back({"schedule", "{ kind = \"cosine\" }",
                            "down to 0 over the run (Loshchilov and Hutter, arXiv:1608.03983)",
                            ""});
}

}  // namespace

Network convolutional() {
  return {.name = "a convolutional network",
          .is = is_convolutional,
          .optimize = optimize_convolutional};
}

}  // namespace tandem::api::networks
