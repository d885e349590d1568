// Trains what a train.toml describes, for another number of epochs.
// train_file TRAIN.toml RUN_DIR
#include <tandem/tandem.h>
#include <tandem/train_config.h>

#include <cstdio>

namespace api = tandem::api;

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: train_file TRAIN.toml RUN_DIR\n"), 2;
  try {
    api::TrainConfig config = api::TrainConfig::load(argv[1]);
    config.epochs = 2;
    config.checkpoint.every = api::Duration::epochs(1);

    api::TrainOptions options;
    options.run_dir = argv[2];
    options.on_step = [](const api::Progress& at) {
      std::printf("step %llu: %s %.4f\n", static_cast<unsigned long long>(at.step),
                  at.values[0].first.c_str(), at.values[0].second);
    };
    options.on_evaluation = [](const api::Progress& at) {
      for (const auto& [name, value] : at.values)
        std::printf("  held out: %s %.4f\n", name.c_str(), value);
    };
    options.on_checkpoint = [](const std::string& path, std::uint64_t) {
      std::printf("  saved %s\n", path.c_str());
    };
    api::Trainer trainer(config, options);
    std::printf("%s\n", trainer.summary().c_str());
    const api::TrainResult result = trainer.run();
    return result.evaluation.at("accuracy") > 0.5 ? 0 : 1;
  } catch (const tandem::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
