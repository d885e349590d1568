// What the command line adds to a run's placement, and the devices that a resolved policy uses.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/model/machine.h"
#include "engine/config/run_config.h"
#include "engine/device/device.h"
#include "engine/ranks/rank_group.h"
#include "kernels/emulated/order_checker.h"
#include "placement/run_policy.h"

namespace tandem::api {

using DeviceMaker = std::function<std::unique_ptr<Device>(
    const ResolvedDevice& device, const std::shared_ptr<OrderChecker>& monitor)>;

/// What the command line adds to a policy.
struct PlacingArguments {
  std::vector<std::string> place;        // rules: '{ at = "wide.**", on = "cpu" }'
  std::vector<std::string> devices;      // bindings: "gpu=emulated:0,memory=2GiB"
  std::optional<std::string> text = {};  // the policy's text, instead of its file
  /// Devices for names that policy and bindings leave open: a plan needs no hardware.
  std::vector<DeviceBinding> stand_ins = {};
  /// Makes an accelerator of the policy, whether or not this machine has it; empty: the binding's
  /// `use` decides.
  DeviceMaker make_device = {};
  Machine machine = Machine();
  /// The monitor checks every byte that is accessed, also where all accelerators are hardware,
  /// which then has to be waited for. Debug builds check without this flag.
  bool check_order = false;
  /// The ranks that train together, which all devices join.
  std::shared_ptr<RankGroup> ranks = std::make_shared<RankGroup>();
};

/// Whether the key `device` names an accelerator.
bool wants_accelerator(const RunConfig& config);

/// The policy of a configuration. Errors in its rules are reported by `resolve`; throws
/// Error{usage} where its file or an argument cannot be read.
RunPolicy read_run_policy(const RunConfig& config, const PlacingArguments& arguments);

/// The devices of a resolved policy, by its index; the first is the engine's. With several ranks,
/// the devices have joined the group.
struct OpenDevices {
  std::vector<std::unique_ptr<Device>> own;
  std::vector<Device*> all;
};
OpenDevices open_devices(const ResolvedPolicy& resolved, const PlacingArguments& arguments,
                         bool tf32, Device& cpu, const std::shared_ptr<OrderChecker>& monitor);

}  // namespace tandem::api
