// A small network, its data and what a run over them needs, built in memory.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/loop/trainer.h"

namespace tandem::testing {

/// x float32 [batch, 6] -> fc1 (8) -> Relu -> fc2 (3) -> logits, with other or more `hidden` layers
/// if given. Parameters "fc1.weight" (path "fc1:weight"), ... have the same numbers for every
/// batch.
Graph small_network(const OperatorSet& operators, std::int64_t batch,
                    const std::vector<std::int64_t>& hidden = {8});

/// Fields x float32 [6] and labels int64 (0..2), which follow from x; every fifth label is -1 with
/// `holes`.
std::shared_ptr<const DataSource> small_data(std::int64_t samples, std::uint64_t seed,
                                             bool holes = false);

/// A model of a run, made of functions.
struct TestModel final : RunModel {
  std::function<Graph(const ForwardKey& key)> make_graph;
  std::function<Placement(const Graph&)> make_placement;
  std::map<std::string, std::string> aliases;

  Graph forward(const ForwardKey& key) override { return make_graph(key); }
  Placement place(const Graph& graph) override { return make_placement(graph); }
  LoadingParts loading_parts() override;
};

/// A copy of the model of SmallEngine::parts, for these parts only: to be changed.
TestModel& own_model(RunParts& parts);

/// Everything that a run needs besides its configuration and data.
struct SmallEngine {
  OperatorSet operators = all_operators();
  std::unique_ptr<Device> cpu;

  SmallEngine();
  RunParts parts();
};

/// A configuration of `small_network`: cross-entropy, sgd, batch 8, logged every step, runs below
/// `folder`; then these keys ("optimizer.lr=0.1").
RunConfig small_config(const std::string& folder, const std::vector<std::string>& keys = {});

/// After `step` steps of this batch size, in the first epoch.
TrainingPosition position_at(std::uint64_t step, std::int64_t batch_size = 1);

/// All lines of a text file.
std::vector<std::string> lines_of(const std::string& path);

/// The text of the Error that `action` throws, or "no error".
std::string error_text(const std::function<void()>& action);

/// Every state of a store by name, row-major.
std::vector<std::pair<std::string, HostTensor>> states_of(const StateStore& states);

/// "" where both hold the same names with the same bytes, else the first that differs.
std::string difference(const StateStore& a, const StateStore& b);

}  // namespace tandem::testing
