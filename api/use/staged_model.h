// A model in which data decides extents, batch by batch: each stage runs what the import of the
// next one has to know.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/model/model.h"
#include "engine/training/staged/programs.h"

namespace tandem::api {

/// Programs are kept where extents and known values come again.
class StagedModel final : public StagedForward {
 public:
  /// `start` gives the states of a graph their trained values. All of these outlive this.
  StagedModel(Model& model, PlacedModel& placed, const RunParts& parts, StateStore& states,
              std::shared_ptr<Arenas> arenas, std::function<void(Graph&)> start);
  ~StagedModel() override;

  StagedGraph graph_for(std::int64_t samples, const BatchTensors& batch) override;

 private:
  struct Stage;
  Stage& stage_for(std::int64_t samples, const StageValues& values);
  void compile(Stage& stage, const BatchTensors& batch, const BatchTensors& fed, Graph graph);
  BatchTensors run(Stage& stage, const BatchTensors& batch, const StageValues& values);
  /// Runs a stage; what it has computed is in `values` afterwards.
  void advance(Stage& stage, const BatchTensors& batch, StageValues& values);

  Model& model_;
  PlacedModel& placed_;
  const RunParts& parts_;
  StateStore& states_;
  std::shared_ptr<Arenas> arenas_;
  std::function<void(Graph&)> start_;
  std::vector<std::unique_ptr<Stage>> stages_;  // the last used one in front
};

}  // namespace tandem::api
