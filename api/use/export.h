// Writes weights as ONNX (the user's own graph), safetensors or npz, by the file's ending.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/model/engine.h"
#include "engine/training/checkpoints/checkpoint.h"
#include "engine/training/config/run_config.h"
#include "importer/file/onnx_file.h"
#include "importer/import_graph.h"
#include "tandem/export.h"

namespace tandem::api {

/// What an .onnx file has besides weights.
struct ExportedModel {
  std::map<std::string, std::string> metadata;
  std::vector<WeightAdapters> adapters;  // that become nodes of their own
  std::map<std::string, Shape> resized;  // of last layers, see ImportOptions
  std::string run_dir = {};              // that the weights are of; "": of none
};

/// `content.model` is written, tied weights once; their other names go into the metadata of
/// safetensors; an .onnx becomes `form`, of the model `file`, which others need not have (null).
/// Returns lines for people: what was written. Throws Error{usage} for another ending.
std::string export_weights(const Engine& engine, const OnnxFile* file, const RunConfig& config,
                           const CheckpointContent& content, const std::string& to,
                           const ExportedModel& model = {}, const ExportForm& form = {});

/// The key of an export's metadata that says that it computes in float16.
inline constexpr std::string_view half_precision_key = "fp16";

/// What of an export's metadata says with which id_functions its model was trained.
std::map<std::string, std::string> functions_metadata(const CheckpointContent& content);
std::map<std::string, std::string> exported_functions(
    const std::map<std::string, std::string>& metadata);

}  // namespace tandem::api
