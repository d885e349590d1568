// From the device names of a policy to the devices of this machine.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/device_family.h"
#include "placement/device_binding.h"

namespace tandem {

/// A device that a policy uses.
struct ResolvedDevice {
  std::string name;       // as the policy says it: "gpu0"
  std::string use;        // "cpu", "cuda:0", "emulated:0"
  DeviceBinding binding;  // limits and link, from the `devices` table and `--device`
  Where where;            // what names it first

  /// Null for the cpu.
  const DeviceFamily* family() const { return family_of_use(use); }
};

/// Why this machine has no device of a use such as "cuda:0": message, expected, fix. Nothing where
/// it has one.
using MissingDevice = std::function<std::optional<Diagnostic>(const std::string& use)>;
/// For a machine with these accelerators: "cuda:0", "cuda:1".
MissingDevice missing_from(std::vector<std::string> machine);

/// `fix`, then "try it with --device gpu=emulated:0".
std::string or_emulated(const std::string& fix, const std::string& device);

class DeviceNames {
 public:
  /// `bindings`: lower precedence first. `missing` is asked about accelerators that need hardware,
  /// once a name. `local`: the index of this process's accelerator. Bad bindings go to `errors`.
  DeviceNames(const std::vector<DeviceBinding>& bindings, MissingDevice missing, int local,
              std::vector<Diagnostic>& errors);

  /// The index in `devices()`; names for one device have one index, and the bindings of all of them
  /// hold: they may not contradict each other. -1 where there is no such device: reported at
  /// `where`, once a name, in `errors`.
  int find(const std::string& name, const Where& where, std::string_view key,
           std::vector<Diagnostic>& errors);

  /// What is wrong with a name that neither this program nor the bindings know, with the nearest
  /// name; nothing where it is known, whether or not this machine has the device.
  std::optional<Diagnostic> unknown(const std::string& name, const Where& where,
                                    std::string_view key) const;

  /// Those asked for so far; the first is always "cpu".
  const std::vector<ResolvedDevice>& devices() const { return devices_; }

 private:
  const DeviceBinding* binding(std::string_view name) const;
  void join(const DeviceBinding& other, ResolvedDevice& device, std::vector<Diagnostic>& errors);

  std::vector<DeviceBinding> bindings_;  // one a name
  MissingDevice missing_;
  int local_;
  std::vector<ResolvedDevice> devices_;
  std::set<std::string> refused_, joined_;  // names
};

}  // namespace tandem
