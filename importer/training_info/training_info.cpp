#include "importer/training_info/training_info.h"

#include <fmt/format.h>

#include "importer/import_content.h"
#include "importer/training_info/algorithm_import.h"
#include "importer/training_info/contents.h"

namespace tandem {
namespace {

/// The graph whose outputs are what states start from, by the names of these.
Graph import_initialization(const OnnxFile::Content& file, const OperatorSet& operators,
                            const ImportOptions& given, const ImportResult& model,
                            const Graph& algorithm) {
  const onnx::TrainingInfoProto& info = file.model->training_info(0);
  if (info.initialization_binding().empty()) return {};
  ImportOptions options;
  options.evaluate = given.evaluate;
  const OnnxFile::Content content = importer::initialization_content(file);
  Graph graph = importer::import_content(content, operators, options).graph;
  std::vector<NamedValue> outputs;
  for (const onnx::StringStringEntryProto& entry : info.initialization_binding()) {
    const State* state = model.graph.find_state(entry.key());
    if (state == nullptr) state = algorithm.find_state(entry.key());
    if (state == nullptr) continue;  // nothing reads it
    const NamedValue* output = graph.find_output(entry.value());
    const bool fits = output != nullptr && graph.type(output->value) == state->start.type();
    if (!fits) {
      importer::refuse(file.path, "training_info.initialization_binding",
                       fmt::format("'{}' has another type than '{}', which takes it", entry.value(),
                                   entry.key()),
                       to_string(state->start.type()),
                       output == nullptr ? "no tensor" : to_string(graph.type(output->value)));
    }
    outputs.push_back({entry.key(), output->value});
  }
  graph.outputs = std::move(outputs);
  return graph;
}

}  // namespace

bool has_training_info(const OnnxFile& file) {
  return file.content().model->training_info_size() > 0;
}

TrainingImport import_training(const OnnxFile& file, const OperatorSet& operators,
                               const ImportOptions& options) {
  if (!has_training_info(file)) return {import_graph(file, operators, options), nullptr};
  ImportOptions own = options;
  own.batch_norm = "file";
  own.batch_norm_rules.clear();
  const OnnxFile::Content content = importer::step_content(file.content());
  importer::AlgorithmImport algorithm(file.content());
  TrainingImport result;
  result.model = importer::import_content(content, operators, own, &algorithm);
  if (algorithm.algorithm == nullptr) return result;
  algorithm.algorithm->initialization = import_initialization(
      file.content(), operators, options, result.model, algorithm.algorithm->graph);
  result.algorithm = std::move(algorithm.algorithm);
  return result;
}

}  // namespace tandem
