// A training step compiled under a policy without any memory: what every policy command looks at.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/crossings.h"
#include "api/model/engine.h"
#include "api/policy/device_profile.h"
#include "api/policy/run_memory.h"
#include "engine/runtime/compile.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// A pass of the step: whole, or first, middle and last where gradients are accumulated.
struct PlannedPass {
  PassShape shape;
  std::int64_t times = 1;  // in a step
  CompiledProgram program;
  Simulation simulation;
};

struct PlannedStep {
  std::vector<PlannedPass> passes;  // the last one holds the update
  std::vector<Crossing> crossings;  // of all passes
  /// Per device: parts of the pass with the highest peak; the peak of all programs together.
  std::vector<MemoryUse> memory;
  std::vector<std::size_t> limits;  // bytes, per device: what the machine or the policy gives it
  std::vector<bool> limited;        // per device; the host swaps where the policy sets no limit
  std::vector<IdleView> views;
  std::vector<Diagnostic> misfits;  // devices that it does not fit into, with what to change
  double seconds = 0;
  double computing = 0;  // seconds of the busiest computing queue
  double exposed = 0;    // seconds that computing queues wait for copies

  bool fits() const { return misfits.empty(); }
};

/// Which programs a plan counts the memory of: those of a full step; or also those of shorter last
/// batches and of evaluations, where the data needs them.
enum class PlannedPrograms : std::uint8_t { step, run };

/// A configuration with its model and policy.
class PolicyCase {
 public:
  /// Reads all but the data. Throws Error{usage}. `without_policy`: everything on the cpu.
  explicit PolicyCase(const PolicyOptions& options, bool without_policy = false)
      : PolicyCase(options, PlacingArguments{options.place, options.devices}, without_policy) {}
  /// With a policy's text, with stand-ins for devices.
  PolicyCase(const PolicyOptions& options, PlacingArguments placing, bool without_policy = false);
  PolicyCase(const PolicyCase&) = delete;
  PolicyCase& operator=(const PolicyCase&) = delete;

  const RunConfig& config() const { return config_; }
  const ImportResult& imported() { return model_->imported(config_.pass_size(), true); }
  /// Throws Error{usage} with everything that is wrong in the policy.
  const ResolvedPolicy& resolved();
  const Placing& placing() const { return model_->placing(); }
  const std::string& device_name(int device) { return resolved().devices[device].name; }
  /// Opens the data for the types of its fields where the configuration has any.
  PlannedStep plan(PlannedPrograms programs = PlannedPrograms::run);
  /// The policy is resolved without a look at the data; before anything else.
  void leave_data() { model_->leave_data(); }
  /// Another policy for the same model. Plans of the one before must be gone.
  void replace_policy(const std::string& text);
  /// The pass that holds the update, and what it would run on and report to.
  TrainingGraph training();
  const std::vector<Device*>& open_devices();
  const Engine& engine() const { return *engine_; }
  /// Where every node and state of it is, one a line.
  std::string placement_text();
  /// What the cost model takes for devices, by name; others are assumed from their facts.
  void set_profiles(DeviceProfiles profiles) { profiles_ = std::move(profiles); }
  const DeviceProfiles& profiles() const { return profiles_; }
  /// Of a device of the policy: what the cost model takes for it, with measured kernels of the step
  /// where `measure`.
  StoredProfile profile(const std::string& device, bool measure);

 private:
  TrainingGraph training_graph(const PassShape& shape, const DataSource* source);
  /// Adds the programs of a run besides those of `step`.
  void add_other_programs(const PlannedStep& step, const ProgramOptions& options,
                          const std::vector<Device*>& devices, RunMemory& memory);
  const DataSets& data();

  RunConfig config_;
  bool from_model_ = false;  // no train.toml: a loss may be made up
  PlacingArguments placing_;
  DeviceProfiles profiles_;
  DataSets no_data_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<OpenModel> model_;
};

/// What the cost model takes a device for: its stored profile or a guess, and the policy's link.
DeviceProfile profile_of(const Device& device, const ResolvedDevice& resolved,
                         const DeviceProfiles& stored = {});

/// `policy check` and `policy explain` of a case that is open.
Report policy_check(PolicyCase& of);
Report policy_explain(PolicyCase& of, const std::string& name, const std::string& phase);

/// "policy.toml:4" of a rule; "" where it is -1.
std::string rule_text(const Policy& policy, int rule);

}  // namespace tandem::api
