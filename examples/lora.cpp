// Trains adapters of low rank in place of the weights, which the exported model has merged.
// lora MODEL.onnx TUNED.onnx
#include <tandem/session_config.h>
#include <tandem/tandem.h>

#include <cstdio>

#include "stripes.h"

namespace api = tandem::api;

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: lora MODEL.onnx TUNED.onnx\n"), 2;
  try {
    api::Session session(api::SessionConfig{
        .model = {.file = argv[1]},
        .batch_size = 20,
        .parameters = {.lora = {{.at = "{fc1,fc2}.**", .rank = 4, .alpha = 8.0}}},
        .loss = {.terms = {{.kind = api::SoftmaxCrossEntropyLoss{.logits = "logits",
                                                                 .labels = "labels"}}}},
        .optimizer = {.kind = api::AdamW{.lr = 1e-2}}});
    const api::Tensors before = session.parameters();
    double first = 0, last = 0;
    for (int step = 0; step < 60; ++step) {
      last = session.step(stripes(20 * step, 20));
      if (step == 0) first = last;
    }
    std::size_t changed = 0;
    for (const auto& [name, value] : session.parameters()) changed += value != before.at(name);
    session.save(argv[2]);
    std::printf("loss %.4f -> %.4f, %zu of %zu tensors trained\n", first, last, changed,
                before.size());
    return last < first && changed < before.size() ? 0 : 1;
  } catch (const tandem::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
