#include "placement/device_names.h"

#include <algorithm>

#include "engine/graph/selector.h"
#include "engine/graph/text.h"
#include "placement/device_use.h"
#include "placement/policy.h"

namespace tandem {

MissingDevice missing_from(std::vector<std::string> machine) {
  return [machine = std::move(machine)](const std::string& use) -> std::optional<Diagnostic> {
    if (std::find(machine.begin(), machine.end(), use) != machine.end()) return std::nullopt;
    return Diagnostic{.message = machine.empty()
                                     ? "this machine has no accelerator that Tandem can use"
                                     : "this machine has no " + use,
                      .expected = joined(machine)};
  };
}

std::string or_emulated(const std::string& fix, const std::string& device) {
  return fix + (fix.empty() ? "" : "; or ") + "try it with --device " + device + "=" +
         use_without_hardware(0);
}

DeviceNames::DeviceNames(const std::vector<DeviceBinding>& bindings, MissingDevice missing,
                         int local, std::vector<Diagnostic>& errors)
    : missing_(std::move(missing)), local_(local) {
  for (const DeviceBinding& binding : bindings) {
    if (binding.name.empty()) continue;  // reported where it was read
    if (binding.name == "cpu" && !binding.use.empty() && binding.use != "cpu") {
      Diagnostic d = at(binding.where_of("use"), "devices.cpu.use", "cpu is the host itself");
      d.got = "\"" + binding.use + "\"";
      d.fix = "bind " + default_accelerator() + ", or another name";
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
  Diagnostic d = at(where, std::string(key), "unknown device");
  d.got = "\"" + name + "\"";
  std::string near = builtin_name(name);
  if (const auto wrong = wrong_number(name, name_prefixes())) {
    d.expected = wrong->prefix + "0 to " + wrong->prefix + "63, without leading zeros";
    near = wrong->mended;
  } else {
    std::vector<std::string> known = known_names();
    d.expected = joined(known) + " or a name of the table devices";
    for (const DeviceBinding& b : bindings_) known.push_back(b.name);
    if (near.empty()) near = nearest_name(name, known);
  }
  d.fix = did_you_mean(near);
  return d;
}

void DeviceNames::join(const DeviceBinding& other, ResolvedDevice& device,
                       std::vector<Diagnostic>& errors) {
  if (other.name == device.name || !joined_.insert(other.name).second) return;
  for (const std::string& key : binding_keys()) {
    if (key == "use" || !other.sets(key)) continue;
    DeviceBinding& first = device.binding;
    if (!first.sets(key)) {
      first.take(key, other);
    } else if (!first.agrees(key, other)) {
      Diagnostic d = at(other.where_of(key), "devices." + other.name + "." + key,
                        device.name + " and " + other.name + " are one device, " + device.use +
                            ", and do not agree");
      d.expected =
          "\"" + first.text_of(key) + "\", as " + short_text(first.where_of(key)) + " says";
      d.got = "\"" + other.text_of(key) + "\"";
      d.fix = "set it once, or give one of the names another `use`";
      errors.push_back(std::move(d));
    }
  }
}

int DeviceNames::find(const std::string& name, const Where& where, std::string_view key,
                      std::vector<Diagnostic>& errors) {
  const DeviceBinding* declared = binding(name);
  const std::string use =
      numbered_use(declared && !declared->use.empty() ? declared->use : builtin_use(name), local_);
  const DeviceFamily* family = family_of_use(use);

  if (refused_.contains(name)) return -1;
  if (declared && declared->faulty && declared->use.empty() && name != "cpu") {
    refused_.insert(name);  // reported where it was read
    return -1;
  }
  const std::optional<Diagnostic> missing =
      family && family->is_hardware && missing_ ? missing_(use) : std::nullopt;
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
      d.fix = "add use = \"" + builtin_use(default_accelerator()) + "\" to devices." + name;
    }
    errors.push_back(std::move(d));
    return -1;
  }
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i].use != use) continue;
    if (declared) join(*declared, devices_[i], errors);
    return static_cast<int>(i);
  }
  DeviceBinding of = declared ? *declared : DeviceBinding{.name = name};
  of.use = use;
  devices_.push_back({name, use, std::move(of), where});
  return static_cast<int>(devices_.size()) - 1;
}

}  // namespace tandem
