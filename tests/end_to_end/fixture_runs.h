// Runs of a fixture's network through the public interface, under policies that change between
// runs.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "api/model/engine.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tests/end_to_end/parity_support.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {

class FixtureRuns {
 public:
  /// Lines of train.toml: those of [optimizer], those of [data.train] after its files, and the
  /// table [data.fields] or nothing.
  FixtureRuns(const std::string& network, const std::string& optimizer,
              const std::string& train_data, const std::string& fields) {
    const Json fixture = read_fixture(network);
    const auto quoted = [](const std::string& text) { return Json(text).dump(); };
    const std::string model = fixture["files"]["logits"]["torchscript"],
                      batches = fixture["batches"];
    std::ofstream(folder_ / "train.toml")
        << "model = " << quoted(parity_folder() + model) << "\npolicy = \"policy.toml\"\n"
        << "batch_size = " << fixture["batch"] << "\n[loss]\n"
        << R"(terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits",)"
        << " labels = \"labels\" } ]\n[optimizer]\n"
        << optimizer << "\n[data]\nkind = \"npz\"\n[data.train]\nfiles = [ "
        << quoted(parity_folder() + batches) << " ]\n"
        << train_data << fields << "[log]\nevery = \"1 step\"\n";
  }

  void train(const std::string& run, int steps, const std::string& rules, bool resume = false,
             const std::vector<std::string>& more = {}) {
    std::ofstream(folder_ / "policy.toml") << "policy = 1\nrules = [\n" << rules << "]\n";
    api::TrainOptions options;
    options.devices = {"gpu=emulated:0"};
    options.overrides = {"steps=" + std::to_string(steps)};
    options.overrides.insert(options.overrides.end(), more.begin(), more.end());
    options.run_dir = folder_ / run;
    options.resume = resume;
    options.accept_changes = resume;  // the rules differ from those at the start
    api::Trainer(folder_ / "train.toml", options).run();
  }

  std::vector<double> losses(const std::string& run) const {
    std::ifstream file(folder_ / (run + "/metrics.jsonl"));
    std::vector<double> losses;
    for (std::string line; std::getline(file, line);) losses.push_back(Json::parse(line)["loss"]);
    return losses;
  }

  CheckpointContent newest(const std::string& run) const {
    std::vector<std::string> messages;
    auto content = newest_checkpoint(folder_ / (run + "/checkpoints"), messages);
    if (!content) throw std::runtime_error("no checkpoint of " + run);
    return std::move(*content);
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace tandem::testing
