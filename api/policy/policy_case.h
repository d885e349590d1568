// A configuration with its model and policy, which every policy command opens.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/model/model.h"
#include "api/policy/known_graphs.h"
#include "engine/runtime/run_memory.h"
#include "engine/train/programs/run_programs.h"
#include "placement/auto/tried_model.h"
#include "placement/report/device_profile.h"
#include "placement/report/network.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// Parts of a case that a command leaves out.
struct CaseOptions {
  bool policy = true;              // else everything is on the cpu
  bool data = true;                // else the policy is resolved without reading the data
  const DataSets* sets = nullptr;  // the data where it is open already
};

class PolicyCase final : public TriedModel {
 public:
  /// Reads everything but the data. Throws Error{usage}.
  explicit PolicyCase(const PolicyOptions& options, CaseOptions reads = {})
      : PolicyCase(options, PlacingArguments{options.place, options.devices}, reads) {}
  /// A case of a configuration that is read already.
  PolicyCase(RunConfig config, const PolicyOptions& options, CaseOptions reads)
      : PolicyCase(std::move(config), options, PlacingArguments{options.place, options.devices},
                   reads) {}
  /// With the text of a policy, or with stand-ins for devices, in `placing`.
  PolicyCase(const PolicyOptions& options, PlacingArguments placing, CaseOptions reads = {});
  PolicyCase(RunConfig config, const PolicyOptions& options, PlacingArguments placing,
             CaseOptions reads);
  PolicyCase(const PolicyCase&) = delete;
  PolicyCase& operator=(const PolicyCase&) = delete;

  const RunConfig& config() const { return config_; }
  const Engine& engine() const { return *engine_; }
  const ImportResult& imported() { return model_->micro_batch(); }
  const Graph& graph() override { return imported().graph; }
  const RunPolicy& policy() const override { return policy_; }
  /// The model under the policy. Throws Error{usage} with everything that is wrong in it.
  PlacedModel& placed();
  const ResolvedPolicy& resolved() override { return placed().resolved(); }
  const std::vector<Device*>& devices() { return placed().devices(); }
  void replace_policy(RunPolicy policy) override;
  /// Reads it from the text of a file.
  void replace_policy(const std::string& text);
  void with_rule(const PolicyRule& rule, FunctionRef<void()> look) override;

  /// Opens the data for the types of its fields where the configuration has any.
  PlannedStep plan(PlannedPrograms programs) override;
  PlannedStep plan() { return plan(PlannedPrograms::run); }
  /// The micro-batch that holds the update.
  TrainingGraph training();
  /// Profiles of devices for the cost model, by name; other devices are assumed from their facts.
  void set_profiles(DeviceProfiles profiles) { profiles_ = std::move(profiles); }
  const DeviceProfiles& profiles() const { return profiles_; }
  /// The cost model's profile of a device of the policy, with measured kernels of the step where
  /// `measure`.
  StoredProfile profile(const std::string& device, bool measure);

 private:
  /// The programs of the whole run, on the first of its ranks.
  RunPrograms programs();
  std::shared_ptr<const TrainingGraph> training_graph(const MicroBatchShape& shape,
                                                      const std::vector<bool>& thawed,
                                                      const MissedStepCounts& missed = {});
  TrainingGraph built_training(const GraphSource& source);
  std::shared_ptr<const TrainingGraph> evaluation_graph(std::int64_t size,
                                                        const EvaluationPrograms& all);
  /// The training data cut to samples of this length; null without data.
  std::shared_ptr<const tandem::DataSource> source_of(std::int64_t length);
  CompiledProgram compiled(const Graph& graph, const ProgramOptions& options);
  /// Adds the programs of a run besides those of its first full step.
  void add_other_programs(const RunPrograms& run, ProgramOptions options, RunMemory& memory);
  const DataSets& data() { return config_.data ? data_->sets() : no_data_; }

  RunConfig config_;
  CaseOptions reads_;
  RankPlace place_;          // the first rank, which has the largest share of a batch
  bool from_model_ = false;  // no train.toml: a loss may be made up
  PlacingArguments placing_;
  DeviceProfiles profiles_;
  std::optional<Network> network_;  // overrides the network of the profiles
  DataSets no_data_;
  RunPolicy policy_;
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<ConfiguredModel> model_;
  std::optional<ModelData> data_;
  std::unique_ptr<PlacedModel> placed_;
  KnownGraphs graphs_;
};

/// The cost model's profile of a device: its stored profile or a guess, with the policy's link.
DeviceProfile profile_of(const Device& device, const ResolvedDevice& resolved,
                         const DeviceProfiles& stored = {});
/// The profiles of all devices of a run.
std::vector<DeviceProfile> device_profiles(const PlacedModel& placed);

/// Like profile_of, but for the cost of caches: a GPU without a stored profile takes no time,
/// because a guess from its kind would say nothing about it.
DeviceProfile cache_profile_of(const Device& device, const ResolvedDevice& resolved,
                               const DeviceProfiles& stored = {});

/// `policy check`, `policy explain` and `policy plan` of a case that is open. `step`: what it has
/// planned.
PolicyCheck policy_check(PolicyCase& of);
Explanation policy_explain(PolicyCase& of, const std::string& name,
                           std::optional<Phase> phase = std::nullopt);
Explanation policy_explain(PolicyCase& of, const PlannedStep& step, const std::string& name,
                           std::optional<Phase> phase = std::nullopt);
Plan policy_plan(PolicyCase& of, const PlannedStep& step);

}  // namespace tandem::api
