// Times steps of a Session on the digits model in a loop of C++, for bench/python_steps.py.
// Usage: bench_session_steps MODEL BATCH STEPS; prints microseconds of processor time a step.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <random>
#include <vector>

#include "tandem/tandem.h"

int main(int argc, char** argv) {
  using namespace tandem::api;
  if (argc != 4) return std::fputs("usage: bench_session_steps MODEL BATCH STEPS\n", stderr), 2;
  try {
    const std::int64_t batch = std::atoll(argv[2]), steps = std::atoll(argv[3]);
    const auto samples = static_cast<std::size_t>(batch);
    Session session(argv[1], batch,
                    {"loss.terms=[{ kind = \"softmax_cross_entropy\", logits = \"logits\", "
                     "labels = \"labels\" }]",
                     "optimizer.kind=sgd", "optimizer.lr=1e-3", "threads=1"});
    std::mt19937 random(1);
    std::normal_distribution<float> pixel;
    std::vector<float> image(samples * 64);
    std::vector<std::int64_t> labels(samples);
    for (float& x : image) x = pixel(random);
    for (std::int64_t& label : labels) label = static_cast<std::int64_t>(random() % 10);
    const Tensors feeds{{"image", Tensor::view({batch, 1, 8, 8}, image)},
                        {"labels", Tensor::view({batch}, labels)}};
    for (int i = 0; i < 100; ++i) session.step(feeds);
    const std::clock_t begun = std::clock();
    for (std::int64_t i = 0; i < steps; ++i) session.step(feeds);
    const double took = 1e6 * static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
    std::printf("%.3f\n", took / static_cast<double>(steps));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
