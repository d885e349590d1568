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
  optimizer.keys.push_back({"kind", "\"sgd\"",
                            "the usual optimizer of convolutional networks (ResNet, "
                            "arXiv:1512.03385)",
                            ""});
  if (is_normalised) {
    optimizer.keys.push_back(
        {"lr", rate(0.1 * static_cast<double>(length.batch) / 256),
         "0.1 for 256 samples a step, in proportion to batch_size (Goyal et al., "
         "arXiv:1706.02677)",
         ""});
  } else {
    optimizer.keys.push_back({"lr", "0.01",
                              "without normalisation a tenth of ResNet's rate, as AlexNet and VGG "
                              "(arXiv:1409.1556)",
                              ""});
  }
  optimizer.keys.push_back({"momentum", "0.9", "as ResNet, VGG and AlexNet", ""});
  optimizer.keys.push_back({"weight_decay", is_normalised ? "1e-4" : "5e-4",
                            is_normalised ? "as ResNet" : "as AlexNet and VGG", ""});
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
