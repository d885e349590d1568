#include "importer/file/traced_mode.h"

#include <algorithm>
#include <string_view>

#include "importer/file/onnx_file.h"

namespace tandem::importer {
namespace {

bool says(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The first True or False among the arguments of a call as torch.fx writes it: "%y :
// [num_users=1] = call_function[target=torch.ops.aten.batch_norm.default](args = (%x, True, 0.1),
// kwargs = {})". Of every normalization that is the one for the statistics of the batch.
std::optional<bool> first_flag(std::string_view call) {
  std::size_t at = call.find("](args = (");
  if (at == std::string_view::npos || !says(call.substr(0, at), "_norm")) return std::nullopt;
  constexpr std::string_view separators = " ,()[]{}=:";
  while ((at = call.find_first_not_of(separators, at)) != std::string_view::npos) {
    const std::size_t end = std::min(call.find_first_of(separators, at), call.size());
    const std::string_view word = call.substr(at, end - at);
    if (word == "True" || word == "False") return word == "True";
    at = end;
  }
  return std::nullopt;
}

// By the names of those PyTorch operators that exist for one mode only.
std::optional<bool> mode_in_name(std::string_view text) {
  if (says(text, "batch_norm_legit_no_training") || says(text, "batch_norm_no_update"))
    return false;
  if (says(text, "batch_norm_legit_functional") || says(text, "batch_norm_with_update"))
    return true;
  return std::nullopt;
}

}  // namespace

std::optional<bool> traced_in_training(const onnx::NodeProto& node) {
  for (const onnx::StringStringEntryProto& entry : node.metadata_props()) {
    if (entry.key() != "pkg.torch.onnx.fx_node") continue;
    // Without running statistics the node's operands are those of the batch, which the file
    // computes: nothing moves, and inference is the same.
    if (says(entry.value(), "batch_norm_legit.no_stats]")) return false;
    if (const auto mode = first_flag(entry.value())) return mode;
    if (const auto mode = mode_in_name(entry.value())) return mode;
  }
  for (const onnx::StringStringEntryProto& entry : node.metadata_props()) {
    if (entry.key() != "pkg.torch.onnx.class_hierarchy") continue;
    if (says(entry.value(), "batch_norm_legit.no_stats'")) return false;
    if (const auto mode = mode_in_name(entry.value())) return mode;
  }
  return mode_in_name(node.name());
}

bool omits_training_mode(const onnx::ModelProto& model) {
  if (model.producer_name() != "pytorch") return false;
  // The other exporter always writes it. Functions of older files write it where it is 1; Tandem's
  // export takes it away.
  if (model.functions_size() > 0 || model.training_info_size() > 0) return false;
  return std::none_of(model.metadata_props().begin(), model.metadata_props().end(),
                      [](const auto& entry) { return entry.key().starts_with(own_metadata); });
}

}  // namespace tandem::importer
