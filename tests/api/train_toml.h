// The train.toml of tests of the library: a model with `logits`, trained on an npz file with
// `labels`.
#pragma once

#include <string>

namespace tandem::testing {

struct TrainToml {
  std::string optimizer = "adam";
  int batch = 16;
};

inline std::string train_toml(const TrainToml& of = {}) {
  return "model = \"model.onnx\"\npolicy = \"policy.toml\"\nbatch_size = " +
         std::to_string(of.batch) + "\nsteps = 3\n" + R"([loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = ")" +
         of.optimizer +
         R"("
[data]
kind = "npz"
[data.train]
files = [ "train.npz" ]
)";
}

}  // namespace tandem::testing
