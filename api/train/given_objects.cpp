#include "api/train/given_objects.h"

#include <utility>
#include <variant>
#include <vector>

#include "engine/graph/error.h"

namespace tandem::api {
namespace {

ModelBatchNorm mode_of(const std::string& word) {
  return word == "inference" ? ModelBatchNorm::inference
         : word == "file"    ? ModelBatchNorm::file
                             : ModelBatchNorm::train;
}

class GivenModel {
 public:
  GivenModel(const Model& model, std::string source)
      : model_(model), options_(model.options()), source_(std::move(source)) {}

  void put_into(ModelSettings& settings, std::vector<ShapeSettings>& shapes) {
    if (settings.file) refuse("model.file", "the Model that is given", *settings.file);
    settings.file = model_.path();
    for (const auto& [name, extent] : options_.bind) {
      const auto [at, is_new] = settings.bind.emplace(name, extent);
      if (!is_new && at->second != extent)
        refuse("model.bind." + name, std::to_string(extent), std::to_string(at->second));
    }
    if (options_.batch_norm != ModelOptions().batch_norm) {
      if (settings.batch_norm) refuse("model.batch_norm", "none, or none of the Model", "both");
      settings.batch_norm = mode_of(options_.batch_norm);
    }
    std::vector<ShapeSettings> all;
    for (const auto& [at, rows] : options_.rows) all.push_back({.at = at, .rows = rows});
    shapes.insert(shapes.begin(), all.begin(), all.end());
    if (!options_.without.empty())
      refuse("ModelOptions::without", "no passes: a training has all of them", options_.without[0]);
    if (!problems_.empty()) throw Error(ErrorKind::usage, std::move(problems_));
  }

 private:
  void refuse(const std::string& path, const std::string& expected, const std::string& got) {
    problems_.push_back({.message = "the configuration and the Model do not go together",
                         .file = source_,
                         .path = path,
                         .expected = expected,
                         .got = got});
  }

  const Model& model_;
  const ModelOptions& options_;
  std::string source_;
  std::vector<Diagnostic> problems_;
};

template <class Config>
Config put(Config config, const Model& model, const std::string& source) {
  GivenModel(model, source).put_into(config.model, config.parameters.shape);
  return config;
}

}  // namespace

void refuse_unused(const TrainOptions& options) {
  std::vector<Diagnostic> problems;
  const auto refuse = [&](const char* option, const char* fix) {
    problems.push_back({.message = std::string(option) + " has no effect here", .fix = fix});
  };
  if (options.eval && !options.train) refuse("TrainOptions::eval", "give TrainOptions::train, too");
  if (options.trace_path.empty() && (options.trace_first > 0 || options.trace_last > 0))
    refuse("TrainOptions::trace_first, trace_last", "give TrainOptions::trace_path");
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

std::optional<std::string> text_of(const std::optional<Policy>& policy) {
  return policy ? std::optional(policy->text()) : std::nullopt;
}

std::optional<Policy> policy_of(const SessionConfig& config) {
  const auto* made = config.policy ? std::get_if<Policy>(&*config.policy) : nullptr;
  return made != nullptr ? std::optional(*made) : std::nullopt;
}

TrainConfig with_model(TrainConfig config, const Model& model, const std::string& source) {
  return put(std::move(config), model, source);
}
SessionConfig with_model(SessionConfig config, const Model& model, const std::string& source) {
  return put(std::move(config), model, source);
}

}  // namespace tandem::api
