// The part of an import that training_info's algorithm adds: which initializers change, Gradient,
// and where the forward graph ends.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/train/algorithm/algorithm.h"
#include "importer/file/initializers.h"
#include "importer/session.h"

namespace tandem::importer {

/// Whether the node is one that lower_part has to see.
bool is_part_of_training(const onnx::NodeProto& node);

class AlgorithmImport {
 public:
  /// `file`: the file as it was read, with training_info.
  explicit AlgorithmImport(const OnnxFile::Content& file);

  /// What Gradient reads in addition to its inputs.
  std::vector<std::string> reads() const;
  /// How many outputs of the graph of the whole step are the model's; they come first.
  int main_outputs() const;
  bool is_own(const std::string& initializer) const { return own_.count(initializer) > 0; }
  /// Makes the initializers that bindings name states.
  void settle(std::unordered_map<std::string, Role>& roles) const;
  /// Starts anew, for another run over the nodes.
  void start() { gradients_.clear(), updates_.clear(); }
  /// Lowers a node for which is_part_of_training is true.
  void lower_part(Session& session, Scope& scope, const onnx::NodeProto& node);
  /// Splits off the forward graph from the graph of all nodes: it ends in the model's outputs and
  /// in what the algorithm reads; the rest is `algorithm`. Throws Error{usage} where a binding
  /// gives a state another type than it has.
  Graph split(Session& session, const Scope& scope, Graph all);

  std::shared_ptr<TrainingAlgorithm> algorithm;

 private:
  StateKind kind_of(const std::string& name) const;
  void lower_gradient(Session& session, Scope& scope, const onnx::NodeProto& node,
                      const std::string& path);
  void add_updates(Session& session, Scope& scope, const onnx::NodeProto& node,
                   const std::string& path);
  [[noreturn]] void fail(std::string where, std::string message, std::string expected = "",
                         std::string got = "", std::string fix = "") const;

  const OnnxFile::Content& file_;
  std::unordered_set<std::string_view> own_;  // initializers of the algorithm
  // In ids of the graph before it is split; dx are inputs of it.
  std::vector<AlgorithmGradient> gradients_;
  std::vector<AlgorithmUpdate> updates_;
};

}  // namespace tandem::importer
