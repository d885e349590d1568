// From the device names of a policy to the devices of this machine.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "placement/device_binding.h"

namespace tandem {

/// A device that a policy uses.
struct ResolvedDevice {
  std::string name;       // as the policy says it: "gpu"
  std::string use;        // "cpu", "cuda:0", "emulated:0"
  DeviceBinding binding;  // limits and link, from the `devices` table and `--device`
};

class DeviceNames {
 public:
  /// `bindings`: lower precedence first. `machine`: the accelerators here, "cuda:0", "cuda:1".
  /// `local`: the index of this process's own. Bad bindings are appended to `errors`.
  DeviceNames(const std::vector<DeviceBinding>& bindings, std::vector<std::string> machine,
              int local, std::vector<Diagnostic>& errors);

  /// The index in `devices()`; names for one device have one index. -1 where there is none: said at
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

  std::vector<DeviceBinding> bindings_;  // one a name
  std::vector<std::string> machine_;
  int local_;
  std::vector<ResolvedDevice> devices_;
  std::set<std::string> refused_;
};

}  // namespace tandem
