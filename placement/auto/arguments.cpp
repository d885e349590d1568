#include "placement/auto/arguments.h"

#include <algorithm>
#include <optional>

#include "engine/config/keys/config_value.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"
#include "placement/device_use.h"
#include "placement/policy.h"
#include "placement/quantities.h"

namespace tandem {

Budgets read_budgets(const std::vector<std::string>& texts) {
  Budgets budgets;
  std::map<std::string, std::string> written;  // by name
  std::vector<Diagnostic> errors;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const auto bytes = equals == std::string::npos || equals == 0
                           ? std::nullopt
                           : parse_size(text.substr(equals + 1));
    Diagnostic d{.file = "--budget", .got = "\"" + text + "\""};
    if (!bytes) {
      d.message = "not a budget";
      d.expected = "NAME=SIZE, like " + default_accelerator() + "=20GiB";
    } else if (const auto [first, fresh] = written.try_emplace(text.substr(0, equals), text);
               !fresh) {
      d.message = "this device has a budget already";
      d.expected = "one budget a device";
      d.got = "\"" + first->second + "\" and \"" + text + "\"";
    } else {
      budgets[text.substr(0, equals)] = *bytes;
      continue;
    }
    errors.push_back(std::move(d));
  }
  if (!errors.empty()) throw Error(ErrorKind::usage, std::move(errors));
  return budgets;
}

void check_budget_names(const Budgets& budgets, const std::vector<std::string>& known) {
  std::vector<Diagnostic> errors;
  for (const auto& [name, bytes] : budgets) {
    if (!builtin_use(name).empty() || std::find(known.begin(), known.end(), name) != known.end())
      continue;
    Diagnostic d{.message = "unknown device", .file = "--budget", .got = name};
    d.fix = did_you_mean(nearest_name(name, known),
                         "declare it in `devices` or with --device NAME=" + use_without_hardware(0),
                         "");
    errors.push_back(std::move(d));
  }
  if (!errors.empty()) throw Error(ErrorKind::usage, std::move(errors));
}

namespace {

// "gpu=emulated:0,memory=2GiB" as an item of the table `devices`; texts stay as written.
std::string device_item(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  std::string item = toml_key(argument.substr(0, equals)) + " = { ";
  const std::size_t start = item.size();
  for (std::size_t at = equals + 1; at < argument.size();) {
    const std::size_t end = std::min(argument.find(',', at), argument.size());
    const std::string part = argument.substr(at, end - at);
    const std::size_t separator = part.find('=');
    const bool named = separator != std::string::npos;
    if (item.size() > start) item += ", ";
    item += (named ? part.substr(0, separator) : "use") + " = " +
            toml_string(named ? part.substr(separator + 1) : part);
    at = end + 1;
  }
  return item + " }";
}

}  // namespace

std::string new_policy(const std::vector<std::string>& devices) {
  const std::string text = "policy = 1\n";
  if (devices.empty()) return text;
  return text + "devices = { " + joined(devices, ", ", device_item) + " }\n";
}

std::vector<std::string> device_names(const std::vector<std::string>& devices,
                                      const std::string& text, const Budgets& budgets,
                                      const DeviceProfiles& profiles, int ranks) {
  std::vector<std::string> names{"cpu"};
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  std::vector<Diagnostic> ignored;  // reported when the policy is resolved
  for (const DeviceBinding& binding : parse_policy(text, "", {}, &ignored).devices)
    add(binding.name);
  for (const DeviceBinding& binding : parse_device_arguments(devices)) add(binding.name);
  for (const auto& [name, bytes] : budgets) add(name);
  for (const auto& [name, profile] : profiles) add(name);
  if (names.size() > 1 || ranks > 1) return names;
  const std::string name = default_accelerator();
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "policy auto: between which devices?",
                         .expected = "a device besides cpu",
                         .fix = "add --budget " + name + "=20GiB, or --device " + name + "=" +
                                use_without_hardware(0) + ",memory=2GiB to try without hardware"});
}

}  // namespace tandem
