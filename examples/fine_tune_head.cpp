// Gives a model another number of classes and trains only its new last layer.
// fine_tune_head MODEL.onnx TUNED.onnx
#include <tandem/session_config.h>
#include <tandem/tandem.h>

#include <cstdio>

#include "stripes.h"

namespace api = tandem::api;

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: fine_tune_head MODEL.onnx TUNED.onnx\n"), 2;
  try {
    api::Session session(api::SessionConfig{
        .model = {.file = argv[1]},
        .batch_size = 20,
        .parameters = {.freeze = {{.at = "{conv1,conv2,fc1}.**"}}, .head = {{.classes = 3}}},
        .loss = {.terms = {{.kind = api::SoftmaxCrossEntropyLoss{.logits = "logits",
                                                                 .labels = "labels"}}}},
        .optimizer = {.kind = api::Adam{.lr = 1e-2}}});
    const api::Tensors before = session.parameters();
    double first = 0, last = 0;
    for (int step = 0; step < 60; ++step) {
      api::Tensors fed = stripes(20 * step, 20);
      std::vector<std::int64_t> classes;
      for (const std::int64_t label : fed.at("labels").values<std::int64_t>())
        classes.push_back(label % 3);
      fed["labels"] = api::Tensor::copy_of({20}, classes);
      last = session.step(fed);
      if (step == 0) first = last;
    }
    const api::Tensors after = session.parameters();
    const bool is_frozen = after.at("fc1.weight") == before.at("fc1.weight");
    const bool is_trained = after.at("fc2.weight") != before.at("fc2.weight");
    session.save(argv[2]);
    std::printf("loss %.4f -> %.4f, head of %lld classes\n", first, last,
                static_cast<long long>(after.at("fc2.weight").shape()[0]));
    return is_frozen && is_trained && last < first ? 0 : 1;
  } catch (const tandem::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
