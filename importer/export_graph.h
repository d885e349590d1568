// Trained weights back into the user's own ONNX model: its graph, names and operator set stay.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "importer/import_graph.h"

namespace tandem {

struct ExportOptions {
  /// BatchNormalization by its running statistics and no Dropout, as a user of the model wants it.
  /// A model with training_info stays as it is, for its training reads the same graph.
  bool inference = true;
  /// A first dimension that the file fixes becomes free, where that is provable; not in such a
  /// model.
  bool free_batch = true;
  /// Values to end in instead of the file's outputs, with their types (axis 0 is the batch where
  /// `batch_outputs` is true); what they do not need goes.
  std::vector<std::pair<std::string, TensorType>> outputs;
  bool batch_outputs = true;
  /// What is done to the graph then, each as importer/export/ says, in this order. Nothing of it to
  /// a model with training_info, which is Error{usage}.
  std::vector<std::string> keep;  // the only outputs, by name; empty: as they are
  bool fold_batch_norm = false;
  bool fp16 = false;
  int opset = 0;  // version of ai.onnx; 0: the model's own
  /// What OnnxFile::metadata gives of the written model; what an earlier export had put there goes.
  std::map<std::string, std::string> metadata;
  /// Refuses values that lack a parameter or a running statistic of the model.
  bool all_states = false;
  /// Adapters that get nodes, next to the products with the weights they belong to.
  std::vector<WeightAdapters> adapters;
  /// How the model was imported (bindings, evaluator): freeing the batch imports it again.
  ImportOptions import;
  /// Tensors from this size on go into NAME.data next to the model, where the original had external
  /// data or the whole exceeds `inline_bytes`.
  std::uint64_t external_from = std::uint64_t{1} << 20;
  std::uint64_t inline_bytes = (std::uint64_t{1} << 31) - (std::uint64_t{64} << 20);
};

struct ExportResult {
  std::vector<std::filesystem::path> files;
  bool batch_is_free = false;
  std::string note;  // for people: why the batch stays fixed, what was done to the graph; or empty
};

/// Writes the model with new values for initializers (by name; converted to the file's element
/// type), checks it with ONNX's checker, and renames it into place: `to` is the old file or the
/// whole new one. Throws Error{usage} for names or shapes that the model does not have, and where
/// NAME.data is there and no part of the old file; Error{runtime} where writing fails.
ExportResult export_graph(const OnnxFile& file, const OperatorSet& operators,
                          const std::vector<std::pair<std::string, HostTensor>>& values,
                          const std::filesystem::path& to, const ExportOptions& options = {});

}  // namespace tandem
