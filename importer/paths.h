// The user's names for operators and parameters, equal for both of PyTorch's exporters.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "importer/parameter_path.h"
#include "onnx/onnx_pb.h"

namespace tandem::importer {

/// The scopes of one model.
class ModulePaths {
 public:
  explicit ModulePaths(const onnx::ModelProto& model);

  /// The module scope that PyTorch's exporter recorded ("encoder.layers.0"), "" for the outermost
  /// module; nothing where the file records none for this node.
  std::optional<std::string> module_scope(const onnx::NodeProto& node) const;

  /// "SCOPE.OpType", else the node's own name with `/` as `.`, else "". Operators that exporters
  /// use for the same thing have one OpType: Flatten, Squeeze and Unsqueeze are Reshape.
  std::string operator_path(const onnx::NodeProto& node) const;

 private:
  std::string without_repeats(const std::string& scope) const;

  std::unordered_set<std::string> scopes_;   // as TorchScript names them
  std::unordered_set<std::string> modules_;  // scopes of initializers
};

/// True for names that consist only of digits.
bool is_number(const std::string& initializer);

/// Makes paths unique: x, x#1, x#2; nodes without a name: OpType#0, OpType#1.
class PathCounter {
 public:
  /// The path that the next node of this name gets; it is used up by `commit`.
  std::string next(const std::string& path, const std::string& op_type) const;
  void commit(const std::string& path, const std::string& op_type);

 private:
  std::unordered_map<std::string, int> used_;
};

}  // namespace tandem::importer
