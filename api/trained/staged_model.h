// Runs a model in which data decides extents, batch by batch: each stage computes the values that
// the import of the next one needs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/model/model.h"
#include "engine/train/staged/programs.h"

namespace tandem::api {

/// Programs are kept and used again for the same extents and known values.
class StagedModel final : public StagedForward {
 public:
  /// `start` gives the states of a graph their trained values. All arguments must outlive this
  /// object.
  StagedModel(ConfiguredModel& model, PlacedModel& placed, const RunParts& parts,
              StateStore& states, std::shared_ptr<Arenas> arenas,
              std::function<void(Graph&)> start);
  ~StagedModel() override;

  StagedGraph graph_for(std::int64_t samples, const BatchTensors& batch) override;

 private:
  struct Stage;
  Stage& stage_for(std::int64_t samples, const StageValues& values);
  void compile(Stage& stage, const BatchTensors& batch, const BatchTensors& fed, Graph graph);
  BatchTensors run(Stage& stage, const BatchTensors& batch, const StageValues& values);
  /// Runs a stage and adds what it has computed to `values`.
  void advance(Stage& stage, const BatchTensors& batch, StageValues& values);

  ConfiguredModel& model_;
  PlacedModel& placed_;
  const RunParts& parts_;
  StateStore& states_;
  std::shared_ptr<Arenas> arenas_;
  std::function<void(Graph&)> start_;
  std::vector<std::unique_ptr<Stage>> stages_;  // the last used one first
};

}  // namespace tandem::api
