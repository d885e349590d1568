// Two trainings of one process at a time, each in a thread of its own.
// two_sessions MODEL.onnx
#include <tandem/session_config.h>
#include <tandem/tandem.h>

#include <cstdio>
#include <thread>

#include "stripes.h"

namespace api = tandem::api;

/// The loss after some steps; a message where the training failed.
struct Outcome {
  double loss = 0;
  std::string error;
};

void train(const std::string& model, double rate, Outcome& outcome) try {
  api::Session session(api::SessionConfig{
      .model = {.file = model},
      .batch_size = 20,
      .threads = 1,
      .loss = {.terms = {{.kind = api::SoftmaxCrossEntropyLoss{.logits = "logits",
                                                               .labels = "labels"}}}},
      .optimizer = {.kind = api::AdamW{.lr = rate}}});
  for (int step = 0; step < 40; ++step) outcome.loss = session.step(stripes(20 * step, 20));
} catch (const tandem::Error& error) {
  outcome.error = error.what();
}

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: two_sessions MODEL.onnx\n"), 2;
  Outcome slow, fast;
  std::thread other([&] { train(argv[1], 1e-5, slow); });
  train(argv[1], 1e-2, fast);
  other.join();
  if (!slow.error.empty() || !fast.error.empty())
    return std::fprintf(stderr, "%s%s\n", slow.error.c_str(), fast.error.c_str()), 1;
  std::printf("loss %.4f with 1e-5, %.4f with 1e-2\n", slow.loss, fast.loss);
  return fast.loss < slow.loss ? 0 : 1;
}
