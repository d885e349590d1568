#include "importer/training_info/artifacts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace tandem::importer {
namespace {

constexpr const char* forward_model =
    "give the forward model that the artifacts were generated from, and loss and optimizer in "
    "train.toml";

// Operators of com.microsoft that only its training writes; derivatives are called NAMEGrad.
bool is_of_training(const onnx::NodeProto& node) {
  constexpr std::array<std::string_view, 12> names{
      "AdamOptimizer",      "AdamWOptimizer",
      "ClipGradNorm",       "GradientAccumulator",
      "InPlaceAccumulator", "InPlaceAccumulatorV2",
      "LambOptimizer",      "SGDOptimizer",
      "SGDOptimizerV2",     "SoftmaxCrossEntropyLossInternal",
      "ZeroGradient",       "YieldOp"};
  if (node.domain() != "com.microsoft") return false;
  return node.op_type().ends_with("Grad") ||
         std::find(names.begin(), names.end(), node.op_type()) != names.end();
}

}  // namespace

void refuse_artifacts(const OnnxFile::Content& file) {
  const auto& nodes = file.model->graph().node();
  const auto found = std::find_if(nodes.begin(), nodes.end(), is_of_training);
  if (found == nodes.end()) return;
  refuse(
      file.path, found->name().empty() ? found->op_type() : found->name(),
      "the model is an artifact of onnxruntime-training: its derivatives or its optimizer are in "
      "the graph already",
      "a forward model", fmt::format("com.microsoft::{}", found->op_type()), forward_model);
}

void refuse_artifact_checkpoint(std::string_view bytes, const std::filesystem::path& path) {
  constexpr std::size_t identifier = 4;  // comes after the offset of a flat buffer's root
  if (bytes.size() < 2 * identifier || bytes.substr(identifier, identifier) != "ODTC") return;
  refuse(path, "", "the file is a checkpoint of onnxruntime-training", "an ONNX model", "",
         forward_model);
}

}  // namespace tandem::importer
