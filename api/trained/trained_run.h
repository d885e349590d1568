// Opens a trained model for use, from a run directory or from an exported ONNX file.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "api/model/model.h"
#include "api/train/run_fingerprint.h"
#include "api/trained/staged_model.h"
#include "engine/graph/structures/out_of_line.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// What is needed: predictions need no labels, and texts no data at all.
enum class TrainedUse : std::uint8_t { evaluate, predict, generate };

struct TrainedRun {
  COPIED_OUT_OF_LINE(TrainedRun);

  RunConfig config;
  std::string path;        // path of the checkpoint or of the exported model
  std::string which;       // "best", "latest", as asked for; "" for an exported model
  std::uint64_t step = 0;  // step of the checkpoint
  Weights weights = Weights::trained;
  std::vector<std::string> warnings;  // newer checkpoints that are broken
  CheckpointContent content;
  bool accept_changes = false;   // accept another model file than that of the training
  bool uses_held_out = false;    // evaluates the data that the configuration holds out
  PlacingArguments placing;      // as in training, with later additions
  std::vector<ShapeRule> shape;  // rules whose numbers of rows are those of vocabularies
  std::string vocabulary_stem;   // its files are STEM + "vocabulary.NAME.tsv"
  bool guessed = false;          // the configuration is guessed, and its held-out data is used

  bool exported() const { return which.empty(); }
  /// "checkpoint  runs/a/checkpoints/step-00000100 (best)".
  std::string text() const;
  /// What is compared with the model and the data; not for an exported model, which has no other
  /// record.
  UsedCheckpoint used() const;
  /// Adds the keys `checkpoint`, `which` and `step`, or `model`.
  void describe(nlohmann::ordered_json& json) const;
};

/// Without a choice the best checkpoint of a run, else the latest; "as named" for a checkpoint.
std::string which_checkpoint(const std::string& run, const std::string& asked_for);
/// The weights of this name, or those that the run evaluates. Throws Error{usage}.
Weights chosen_weights(const std::string& name, const RunConfig& config);
/// ", ema weights"; "" for the trained ones.
std::string weights_text(Weights weights);

/// `run`: a run directory, one of its checkpoints, or an exported .onnx file with `options.config`.
/// Without a choice the best checkpoint, else the latest. For an .onnx file without a
/// configuration, one is guessed from `options.data`, or made of what the file records of
/// conversations where it generates. Throws Error{usage}.
TrainedRun open_trained(const std::string& run, const TrainedOptions& options,
                        TrainedUse use = TrainedUse::evaluate);

/// Throws Error{runtime} where a stop was requested by `options.stop`.
void check_stop(const TrainedOptions& options);

/// The model with the states of a trained run, which `load` fills after its first program was made.
class TrainedModel {
 public:
  /// `values` of the graph become outputs as well. Compares the model with the checkpoint's,
  /// imports it and opens the devices.
  TrainedModel(TrainedRun run, const std::vector<std::string>& values);

  const RunConfig& config() const { return run_.config; }
  const TrainedRun& run() const { return run_; }
  /// Adds a warning for reports.
  void warn(std::string warning) { run_.warnings.push_back(std::move(warning)); }
  const RunParts& parts() const { return parts_; }
  StateStore& states() { return states_; }
  const std::shared_ptr<Arenas>& arenas() const { return arenas_; }
  const Engine& engine() const { return engine_; }
  const OnnxFile& file() const { return model_->file(); }
  PlacedModel& placed() { return placed_; }
  /// Whether data decides extents of the model, which then runs in stages: on the cpu, in one
  /// process.
  bool in_stages() const { return staged_ != nullptr; }
  /// "stages      NonZero at block.1.mlp ..."; "" where the model does not run in stages.
  std::string stages_text() const;
  /// The inputs and outputs as the file declares them.
  const ModelSummary& summary() { return model_->micro_batch().summary; }
  /// The graph in inference form, for whole micro-batches.
  const Graph& forward() { return placed_.forward(run_.config.micro_batch_size(), false); }
  /// The graph in training form, which data fields are checked against.
  const Graph& imported() { return model_->micro_batch().graph; }
  /// Gives the states of the programs their trained values, then frees the checkpoint.
  void load();
  /// Parameters and running statistics that contain NaN, or an infinity that training has produced,
  /// each with the place where it is read; call after `load`.
  std::vector<Diagnostic> not_finite() const;

 private:
  std::shared_ptr<ConfiguredModel> open_model();
  /// The policy; a model in stages runs without it.
  RunPolicy policy_in_use();
  void start_states(Graph& graph) const;

  TrainedRun run_;
  RunPolicy policy_;
  Engine engine_;
  std::shared_ptr<ConfiguredModel> model_;
  PlacedModel placed_;
  RunParts parts_;
  StateStore states_;
  std::set<std::string> infinite_;  // states that may hold infinities, such as masks
  std::shared_ptr<Arenas> arenas_ = make_arenas();
  std::unique_ptr<StagedModel> staged_;
};

}  // namespace tandem::api
