// Applies [parameters] head, storage and lora, and [distillation], to an imported model: a last
// layer of another width, packed weights, adapters, a teacher next to it. All later steps see one
// graph.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/model/engine.h"
#include "api/model/stored_weights.h"
#include "engine/config/run_config.h"
#include "engine/passes/head.h"
#include "engine/passes/lora.h"
#include "importer/import_graph.h"

namespace tandem::api {

class FineTuning {
 public:
  FineTuning(const Engine& engine, const RunConfig& config)
      : engine_(engine), config_(config), stored_(engine.operators, config) {}

  /// Gives the import the new shapes of last layers, and lets it keep matrices in 16 bits; looks at
  /// the file once where last layers have new shapes. Throws what resized_layers throws.
  void resize(const OnnxFile& file, ImportOptions& options);
  /// Changes what was imported with these options. Throws Error{usage} where adapters or the
  /// teacher do not fit the model.
  void apply(const ImportOptions& options, ImportResult& model);

  /// Weights with adapters, once a model was changed.
  const std::vector<AdaptedWeight>& adapted() const { return adapted_; }
  /// How weights that do not train are kept, once a model was changed.
  const StoredWeights& stored() const { return stored_; }
  /// States that files of weights need not have, or have in another shape.
  const std::set<std::string>& added() const { return added_; }

 private:
  void start_heads(Graph& graph);
  void store(Graph& graph);
  void adapt(const ImportOptions& options, Graph& graph);
  void join_teacher(const ImportOptions& options, Graph& graph);
  const OnnxFile& teacher();

  const Engine& engine_;
  const RunConfig& config_;
  bool has_heads_ = false;  // `heads_` is known
  std::vector<ResizedState> heads_;
  std::vector<AdaptedWeight> adapted_;
  StoredWeights stored_;
  std::set<std::string> added_;
  std::unique_ptr<OnnxFile> teacher_;
  std::map<std::string, HostTensor> teacher_weights_;  // distillation.weights, by state name
  bool has_teacher_weights_ = false;
};

}  // namespace tandem::api
