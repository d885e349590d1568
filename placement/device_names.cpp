#include "placement/device_names.h"

#include <algorithm>

#include "engine/graph/selector.h"

namespace tandem {
namespace {

bool all_digits(std::string_view text) {
  return !text.empty() && text.size() < 3 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

// What a name stands for that nobody declared; "" where it stands for nothing.
std::string builtin_use(std::string_view name) {
  if (name == "cpu") return "cpu";
  if (name == "gpu") return "cuda:local";
  if (name.starts_with("gpu") && all_digits(name.substr(3))) {
    return "cuda:" + std::string(name.substr(3));
  }
  if (name.starts_with("emulated:") && all_digits(name.substr(9))) return std::string(name);
  return "";
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

MissingDevice missing_from(std::vector<std::string> machine) {
  return [machine = std::move(machine)](const std::string& use) -> std::optional<Diagnostic> {
    if (std::find(machine.begin(), machine.end(), use) != machine.end()) return std::nullopt;
    Diagnostic d;
    d.message = machine.empty() ? "this machine has no accelerator that Tandem can use"
                                : "this machine has no " + use;
    d.expected = joined(machine);
    return d;
  };
}

std::string or_emulated(const std::string& fix, const std::string& device) {
  return fix + (fix.empty() ? "" : "; or ") + "try the policy with --device " + device +
         "=emulated:0";
}

DeviceNames::DeviceNames(const std::vector<DeviceBinding>& bindings, MissingDevice missing,
                         int local, std::vector<Diagnostic>& errors)
    : missing_(std::move(missing)), local_(local) {
  for (const DeviceBinding& binding : bindings) {
    if (binding.name.empty()) continue;  // reported where it was read
    if (binding.name == "cpu" && !binding.use.empty() && binding.use != "cpu") {
      Diagnostic d = at(binding.use_where, "devices.cpu.use", "cpu is the host itself");
      d.got = "\"" + binding.use + "\"";
      d.fix = "bind gpu, or another name";
      errors.push_back(std::move(d));
      continue;
    }
    const auto known = std::find_if(bindings_.begin(), bindings_.end(),
                                    [&](const auto& b) { return b.name == binding.name; });
    if (known == bindings_.end()) {
      bindings_.push_back(binding);
    } else {
      known->overlay(binding);
    }
  }
  DeviceBinding cpu{.name = "cpu"};
  if (const DeviceBinding* declared = binding("cpu")) cpu = *declared;
  cpu.use = "cpu";
  devices_.push_back({"cpu", "cpu", cpu, Where{}});
}

const DeviceBinding* DeviceNames::binding(std::string_view name) const {
  for (const DeviceBinding& binding : bindings_) {
    if (binding.name == name) return &binding;
  }
  return nullptr;
}

std::optional<Diagnostic> DeviceNames::unknown(const std::string& name, const Where& where,
                                               std::string_view key) const {
  if (binding(name) || !builtin_use(name).empty()) return std::nullopt;
  std::vector<std::string> known{"cpu", "gpu", "gpu0", "emulated:0"};
  for (const DeviceBinding& b : bindings_) known.push_back(b.name);
  const std::string near = nearest_name(name, known);
  Diagnostic d = at(where, std::string(key), "unknown device");
  d.expected = "cpu, gpu, gpu0, emulated:0 or a name of the table devices";
  d.got = "\"" + name + "\"";
  if (!near.empty()) d.fix = "did you mean \"" + near + "\"?";
  return d;
}

int DeviceNames::find(const std::string& name, const Where& where, std::string_view key,
                      std::vector<Diagnostic>& errors) {
  const DeviceBinding* declared = binding(name);
  std::string use = declared && !declared->use.empty() ? declared->use : builtin_use(name);
  if (use == "cuda:local") use = "cuda:" + std::to_string(local_);

  if (refused_.contains(name)) return -1;
  const std::optional<Diagnostic> missing =
      use.starts_with("cuda:") && missing_ ? missing_(use) : std::nullopt;
  if (use.empty() || missing) {
    refused_.insert(name);
    if (auto d = unknown(name, where, key)) {
      errors.push_back(std::move(*d));
      return -1;
    }
    Diagnostic d = at(where, std::string(key), "");
    d.got = "\"" + name + "\"";
    if (missing) {
      d.message = missing->message;
      d.expected = missing->expected;
      d.fix = or_emulated(missing->fix, name);
    } else {
      d.message = "the device does not say what it is";
      d.fix = "add use = \"cuda:local\" to devices." + name;
    }
    errors.push_back(std::move(d));
    return -1;
  }
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i].use == use) return static_cast<int>(i);
  }
  DeviceBinding of = declared ? *declared : DeviceBinding{.name = name};
  of.use = use;
  devices_.push_back({name, use, std::move(of), where});
  return static_cast<int>(devices_.size()) - 1;
}

}  // namespace tandem
