#include "api/trained/loaded_weights.h"

#include "api/export/frozen_weights.h"
#include "api/run_files.h"
#include "api/trained/trained_run.h"
#include "engine/formats/weights/tensor_list.h"
#include "engine/train/averages/weights_in_use.h"
#include "importer/file/onnx_weights.h"

namespace tandem::api {
namespace {

std::unique_ptr<WeightsFile> weights_of_model(const std::string& path) {
  const OnnxWeights weights = onnx_weights(OnnxFile::open(path));
  return std::make_unique<TensorList>(weights.tensors, weights.aliases);
}

std::unique_ptr<WeightsFile> weights_of_run(const std::string& path) {
  const std::string which = which_checkpoint(path, "");
  FoundCheckpoint found = find_checkpoint(path, which);
  RunConfig config = read_run_config(found.run_dir + "/train.resolved.toml");
  forget_teacher(config.distillation, config.loss);
  const Weights chosen = chosen_weights("", config);
  use_weights(found.content, chosen, found.path);
  if (!config.parameters.lora.empty()) {  // merges adapters, as an export does
    const Engine engine(config.threads);
    ConfiguredModel model(engine, config, ConfiguredModelOptions{.run_dir = found.run_dir});
    add_frozen_weights(found.content, model, found.path);
    merge_adapters(found.content, model.adapted());
  }
  auto weights = std::make_unique<TensorList>(found.content.model, found.content.aliases);
  std::vector<std::string> notes{"checkpoint " + found.path + " (" + which + weights_text(chosen) +
                                 ")"};
  for (const std::string& warning : found.warnings) notes.push_back("warning: " + warning);
  weights->set_notes(std::move(notes));
  return weights;
}

}  // namespace

std::unique_ptr<WeightsFile> open_model_weights(const WeightsFormat& format,
                                                const std::string& path) {
  return format.endings.empty() ? weights_of_run(path) : weights_of_model(path);
}

LoadingParts loading_parts(const ImportResult& model) {
  LoadingParts parts;
  parts.names = ParameterNames(model.graph);
  parts.open = open_model_weights;
  parts.aliases = model.aliases;
  for (const ParameterSummary& parameter : model.summary.parameters)
    parts.other_names.insert(parameter.name);
  return parts;
}

}  // namespace tandem::api
