// Trains a network for some steps on its own arrays and exports it:  consumer MODEL.onnx
// TRAINED.onnx
#include <tandem/tandem.h>

#include <cstdio>

namespace api = tandem::api;

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: consumer MODEL.onnx TRAINED.onnx\n"), 2;
  try {
    const std::int64_t batch = 20;
    api::Session session(
        argv[1], batch,
        {"optimizer.kind=adam", "optimizer.lr=0.01",
         R"(loss.terms=[{ kind = "softmax_cross_entropy", logits = "logits", labels = "labels" }])"});
    std::vector<float> images;  // ten patterns of stripes
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < batch; ++i) {
      labels.push_back(i % 10);
      for (std::int64_t pixel = 0; pixel < 64; ++pixel)
        images.push_back(pixel % 11 == i % 10 ? 1.0f : 0.0f);
    }
    double first = 0, last = 0;
    for (int step = 1; step <= 40; ++step) {
      last = session.step({{"image", api::Tensor::copy_of({batch, 1, 8, 8}, images)},
                           {"labels", api::Tensor::copy_of({batch}, labels)}});
      if (step == 1) first = last;
    }
    session.save(argv[2]);
    std::printf("Tandem %s: loss %.4f -> %.4f, written to %s\n", api::version().c_str(), first,
                last, argv[2]);
    return last < first / 2 ? 0 : 1;
  } catch (const tandem::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
