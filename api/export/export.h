// Writes weights as ONNX (the user's own graph), safetensors or npz, by the file's ending.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/model/engine.h"
#include "engine/config/run_config.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "importer/file/onnx_file.h"
#include "importer/import_graph.h"
#include "tandem/trained.h"

namespace tandem::api {

/// Contents of an .onnx file besides weights.
struct ExportedModel {
  std::map<std::string, std::string> metadata;
  std::vector<WeightAdapters> adapters;  // adapters with nodes of their own
  std::map<std::string, Shape> resized;  // shapes of last layers, see ImportOptions
  std::string run_dir = {};              // the run that the weights come from; "": none
};

/// Writes `content.model`, tied weights only once; their other names go into the metadata of
/// safetensors. An .onnx gets the form `form` of the model `file`, which other formats do not need
/// (null). Returns lines for people: what was written. Throws Error{usage} for another ending.
std::string export_weights(const Engine& engine, const OnnxFile* file, const RunConfig& config,
                           const CheckpointContent& content, const std::string& to,
                           const ExportedModel& model = {}, const ExportForm& form = {});

/// Metadata of an export on the id_functions that its model was trained with.
std::map<std::string, std::string> functions_metadata(const CheckpointContent& content);
std::map<std::string, std::string> exported_functions(
    const std::map<std::string, std::string>& metadata);

}  // namespace tandem::api
