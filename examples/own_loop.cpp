// A training loop of one's own: steps, evaluations, a learning rate that is halved, exact resume.
// own_loop MODEL.onnx STATE.safetensors
#include <tandem/session_config.h>
#include <tandem/tandem.h>

#include <cstdio>

#include "stripes.h"

namespace api = tandem::api;

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: own_loop MODEL.onnx STATE.safetensors\n"), 2;
  try {
    const api::SessionConfig config{
        .model = {.file = argv[1]},
        .batch_size = 20,
        .loss = {.terms = {{.kind = api::SoftmaxCrossEntropyLoss{.logits = "logits",
                                                                 .labels = "labels"}}}},
        .optimizer = {.kind = api::AdamW{.lr = 1e-2}},
        .metrics = {{.kind = api::EvalMetricKind::accuracy}}};
    api::Session session(config);
    for (int step = 0; step < 40; ++step) {
      if (step == 30) session.set_learning_rate(session.learning_rate() / 2);
      const double loss = session.step(stripes(20 * step, 20));
      if (step % 10 == 0) std::printf("step %d: loss %.4f\n", step, loss);
    }
    const auto measured = session.evaluate(stripes(0, 100));
    std::printf("loss %.4f, accuracy %.2f\n", measured.at("loss"), measured.at("accuracy"));

    session.save_state(argv[2]);
    api::Session other(config);
    other.restore_state(argv[2]);
    const double here = session.step(stripes(0, 20)), there = other.step(stripes(0, 20));
    std::printf("step %llu: loss %.17g, and %.17g after a restart\n",
                static_cast<unsigned long long>(other.steps()), here, there);
    return here == there && measured.at("accuracy") > 0.9 ? 0 : 1;
  } catch (const tandem::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
