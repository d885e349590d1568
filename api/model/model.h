// From a configuration to a model that programs can be made of: imported, placed, with its devices
// open.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/model/engine.h"
#include "api/model/fine_tuning.h"
#include "api/model/passed_graphs.h"
#include "api/model/placing.h"
#include "api/table_rows.h"
#include "engine/data/data_source.h"
#include "engine/train/steps/micro_batch_programs.h"
#include "importer/model_notices.h"
#include "importer/training_info/training_info.h"
#include "placement/derive.h"
#include "placement/tables/table_caches.h"

namespace tandem::api {

struct ConfiguredModelOptions {
  /// The run directory whose vocabularies say how many rows tables have; "": the data says it,
  /// which is prepared for that if it is not prepared yet.
  std::string run_dir = {};
  VocabularyRows rows = {};  // gives the numbers of rows instead, where set
  /// Called with each message while data is prepared or opened, each text once.
  std::function<void(const std::string&)> on_message = {};
  std::function<bool()> stop_requested = {};  // polled meanwhile
  /// Import the model only as far as extents are known where data decides the others.
  bool in_stages = false;
};

/// The model file of a configuration. Throws Error{usage} where it is no model; where it is not
/// there, with the key that names it.
OnnxFile open_model_file(const RunConfig& config);

/// An ONNX file with the graphs that are imported from it for micro-batches of a configuration.
class ConfiguredModel {
 public:
  /// Throws Error{usage} where the file is not a model.
  ConfiguredModel(const Engine& engine, const RunConfig& config,
                  ConfiguredModelOptions options = {})
      : ConfiguredModel(engine, config, open_model_file(config), std::move(options)) {}
  ConfiguredModel(const Engine& engine, const RunConfig& config, OnnxFile file,
                  ConfiguredModelOptions options = {});
  ConfiguredModel(const ConfiguredModel&) = delete;
  ConfiguredModel& operator=(const ConfiguredModel&) = delete;

  const Engine& engine() const { return engine_; }
  const RunConfig& config() const { return config_; }
  const OnnxFile& file() const { return file_; }
  /// Imported once for each batch size, mode and length of sequences; the reference stays valid.
  /// `length`: the length of a bucket (data.buckets); 0: the longest, or there are no buckets.
  const ImportResult& imported(std::int64_t batch, bool training, std::int64_t length = 0);
  /// What the file itself says about its training, for that import; null: nothing.
  std::shared_ptr<const TrainingAlgorithm> algorithm(std::int64_t batch, bool training);
  /// What the first stage has to compute, where the model is imported only as far as extents are
  /// known. Empty: all extents are known before the run.
  const std::vector<StageRequest>& requests() { return micro_batch().stage.requests; }
  /// In inference form, given what earlier stages have computed of a batch. Not cached.
  ImportResult import_stage(std::int64_t batch, const StageValues& values);
  /// For the micro-batches of a training step.
  const ImportResult& micro_batch() { return imported(config_.micro_batch_size(), true); }
  /// Defects that the export of the file has caused, with their fixes; except for rows that the
  /// configuration fixes.
  std::vector<Diagnostic> export_warnings();
  /// What users have to know of the model in training, except for what the configuration already
  /// decides.
  std::vector<ModelNotice> notices();
  /// For a step that is cut into parts of the batch (`by`: "micro_batch" or "ranks"): warns of a
  /// node in which samples interact, so that the step differs from that of the whole batch. Throws
  /// Error{usage} where the model's own loss is no sum or mean over samples.
  std::vector<Diagnostic> warn_of_mixed_samples(const std::string& by);
  /// Options for opening data, as this model needs them.
  OpenOptions open_options();
  /// What parameters.load has to know about the model.
  LoadingParts loading_parts();
  /// Weights with adapters (parameters.lora).
  const std::vector<AdaptedWeight>& adapted() {
    micro_batch();
    return tuning_.adapted();
  }
  /// How weights that do not train are kept (parameters.storage).
  const StoredWeights& stored() {
    micro_batch();
    return tuning_.stored();
  }
  /// Shapes of last layers that differ from the file's (parameters.head).
  std::map<std::string, Shape> resized();
  /// Forward graphs of this model, kept for each policy that it was placed by.
  PassedGraphs& passed() { return passed_; }

 private:
  const Engine& engine_;
  RunConfig config_;
  OnnxFile file_;
  ConfiguredModelOptions options_;
  std::optional<std::vector<RowsRule>> rows_;  // rules of [parameters] shape
  const TrainingImport& import(std::int64_t batch, bool training, std::int64_t length = 0);
  ImportOptions import_options(std::int64_t batch, bool training, std::int64_t length = 0);
  void refuse_buckets_that_do_not_fit() const;
  void refuse_rules_without_operators(const ImportResult& imported) const;
  bool is_frozen(const State& state);
  void add_moving_statistics(std::vector<ModelNotice>& notices);

  FineTuning tuning_;
  std::map<std::tuple<std::int64_t, bool, std::int64_t>, TrainingImport> imported_;
  PassedGraphs passed_;
  bool needs_stages_ = false;
};

/// Rules of [model] on operators, and buffers that train, as an import takes them.
void add_model_rules(const RunConfig& config, ImportOptions& options);

/// The extents of the model's free dimensions: model.bind, and that of data.buckets, which is
/// `length`; 0: the longest.
std::vector<std::pair<std::string, std::int64_t>> bound_dimensions(const RunConfig& config,
                                                                   std::int64_t length = 0);

/// The seed of the held-out part; labels of classes as int32 where the files store that, else as
/// int64, or in the model's type where they are an input of it. `micro_batch`: the model imported
/// for a micro-batch of the configuration.
OpenOptions open_options(const RunConfig& config, const Graph& micro_batch);

/// Opens the data of a configuration: `open_data`, or what a program gives instead.
using DataOpener = std::function<DataSets(const DataConfig&, const OpenOptions&)>;

/// The data of a model's configuration, opened when it is first needed. Counts made in it are
/// cached.
class ModelData {
 public:
  explicit ModelData(std::shared_ptr<ConfiguredModel> model, DataOpener open = &open_data)
      : model_(std::move(model)), open_(std::move(open)) {}

  ModelData(std::shared_ptr<ConfiguredModel> model, DataSets sets)  // data that is open already
      : model_(std::move(model)), sets_(std::move(sets)) {}

  /// Throws what `open_data` throws, each time.
  const DataSets& sets();
  /// Adds what the data answers of the questions. Data that cannot be read answers nothing: the run
  /// itself reports why.
  void answer(const OpenQuestions& questions, PlacementFacts& facts);

 private:
  std::shared_ptr<const tandem::DataSource> counted();

  std::shared_ptr<ConfiguredModel> model_;
  DataOpener open_;
  std::optional<DataSets> sets_;
  std::exception_ptr error_;                                        // why opening failed
  std::optional<std::map<std::string, std::int64_t>> unique_rows_;  // by parameter
  TableCaches caches_;
};

/// A model under a resolved policy, with the devices of the policy.
class PlacedModel {
 public:
  /// Resolves the policy with everything that model, data and devices say: the only place where
  /// rules with need = "prefer" fall back. Throws Error{usage} with everything that is wrong in the
  /// policy. `data` null: questions to the data stay open. `keep`: values that become outputs of a
  /// graph that has them.
  PlacedModel(std::shared_ptr<ConfiguredModel> model, RunPolicy policy,
              const PlacingArguments& arguments, ModelData* data = nullptr,
              std::vector<std::string> keep = {});
  /// Uses the configuration's own policy and `arguments`.
  PlacedModel(const Engine& engine, const RunConfig& config, const PlacingArguments& arguments = {})
      : PlacedModel(std::make_shared<ConfiguredModel>(engine, config),
                    read_run_policy(config, arguments), arguments) {}

  PlacedModel(const PlacedModel&) = delete;
  PlacedModel& operator=(const PlacedModel&) = delete;

  ConfiguredModel& model() const { return *model_; }
  const RunPolicy& policy() const { return policy_; }
  const ResolvedPolicy& resolved() const { return resolved_; }
  const std::vector<Device*>& devices() const { return devices_.all; }
  /// The graph after the forward passes; values that the loss names are outputs. Made once; the
  /// reference stays valid. `length` as for ConfiguredModel::imported.
  const Graph& forward(std::int64_t batch, bool training, std::int64_t length = 0) {
    return *shared_forward(batch, training, length);
  }
  /// The forward graph as one object, shared by all policies that lead to it.
  const std::shared_ptr<const Graph>& shared_forward(std::int64_t batch, bool training,
                                                     std::int64_t length = 0);
  /// The placement of a graph that was derived from the imported one.
  Placement place(const Graph& graph) const { return derive_placement(graph, resolved_); }
  /// An imported graph after the forward passes, with the kept values as outputs.
  Graph with_passes(Graph imported) const;
  /// Options that every program of a run is compiled with; throws Error{usage} where a selector of
  /// `precision` matches nothing.
  LowerOptions lower_options();
  /// What a training needs of this object; must not outlive it.
  RunParts run_parts();

 private:
  std::shared_ptr<PassedGraph> after_passes(std::int64_t batch, bool training,
                                            std::int64_t length) const;
  Graph with_passes(Graph imported, const PassedGraphs::MayMerge& may_merge) const;
  Graph with_training(const Graph& forward) const;
  std::shared_ptr<const Graph> with_caches(const std::shared_ptr<PassedGraph>& passed) const;
  /// Adds why devices have no kernel for parts of the step.
  void add_refusals(PassedGraph& step, PlacementFacts& facts) const;

  std::shared_ptr<ConfiguredModel> model_;
  RunPolicy policy_;
  std::vector<std::string> keep_;
  ResolvedPolicy resolved_;
  OpenDevices devices_;
  std::map<std::tuple<std::int64_t, bool, std::int64_t>, std::shared_ptr<const Graph>> forward_;
};

}  // namespace tandem::api
