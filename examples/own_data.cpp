// Samples of one's own under the Trainer, which shuffles, evaluates, saves and resumes.
// own_data MODEL.onnx RUN_DIR
#include <tandem/data_source.h>
#include <tandem/tandem.h>
#include <tandem/train_config.h>

#include <cstdio>

#include "stripes.h"

namespace api = tandem::api;

class Stripes final : public api::DataSource {
 public:
  std::vector<api::DataField> fields() const override {
    return {{"image", api::DType::float32, {1, 8, 8}}, {"labels", api::DType::int64, {}}};
  }
  std::int64_t samples() const override { return 400; }
  void fill(std::size_t field, std::span<const std::int64_t> indices, void* to) const override {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (field == 1) static_cast<std::int64_t*>(to)[i] = indices[i] % 10;
      for (std::size_t pixel = 0; field == 0 && pixel < 64; ++pixel)
        static_cast<float*>(to)[64 * i + pixel] =
            stripe(indices[i], static_cast<std::int64_t>(pixel));
    }
  }
  std::string identity() const override { return "ten stripes, version 1"; }
};

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: own_data MODEL.onnx RUN_DIR\n"), 2;
  try {
    const api::TrainConfig config{
        .model = {.file = argv[1]},
        .batch_size = 20,
        .epochs = 3,
        .loss = {.terms = {{.kind = api::SoftmaxCrossEntropyLoss{.logits = "logits",
                                                                 .labels = "labels"}}}},
        .optimizer = {.kind = api::AdamW{.lr = 1e-2}},
        .data = {.kind = api::DataKind::program, .eval = {.fraction = 0.1}},
        .eval = {.metrics = {{.kind = api::EvalMetricKind::accuracy}}}};
    api::TrainOptions options;
    options.run_dir = argv[2];
    options.train = std::make_shared<Stripes>();
    const api::TrainResult result = api::Trainer(config, options).run();
    std::printf("accuracy %.2f\n", result.evaluation.at("accuracy"));
    return result.evaluation.at("accuracy") > 0.9 ? 0 : 1;
  } catch (const tandem::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
