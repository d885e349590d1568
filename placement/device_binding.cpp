#include "placement/device_binding.h"

#include <algorithm>
#include <charconv>

#include "engine/graph/selector.h"
#include "placement/quantities.h"

namespace tandem {
namespace {

const std::vector<std::string> binding_keys = {"use", "memory", "threads", "bandwidth", "latency"};

std::optional<int> small_number(std::string_view text, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0 ||
      value > most) {
    return std::nullopt;
  }
  return value;
}

bool is_device_use(std::string_view use) {
  if (use == "cpu" || use == "cuda:local") return true;
  for (const std::string_view kind : {"cuda:", "emulated:"}) {
    if (use.starts_with(kind) && small_number(use.substr(kind.size()), 63)) return true;
  }
  return false;
}

// Sets one part of a binding; what is wrong with it, or "".
struct Fault {
  std::string message, expected, fix;
};
std::optional<Fault> set_part(DeviceBinding& to, std::string_view key, const std::string& text) {
  if (key == "use") {
    if (!is_device_use(text)) {
      const std::string near =
          nearest_name(text, std::vector<std::string>{"cpu", "cuda:local", "cuda:0", "emulated:0"});
      return Fault{"unknown device", "cpu, cuda:local, cuda:N or emulated:N",
                   near.empty() ? "" : "did you mean \"" + near + "\"?"};
    }
    to.use = text;
  } else if (key == "memory") {
    to.memory_bytes = parse_size(text);
    to.memory_fraction = parse_percent(text);
    if (text == "auto") return std::nullopt;
    if (!to.memory_bytes && !to.memory_fraction) {
      return Fault{"not a size", "\"2GiB\", \"90%\" or \"auto\"", ""};
    }
  } else if (key == "bandwidth") {
    to.bandwidth = parse_rate(text);
    if (!to.bandwidth) return Fault{"not a rate", "\"25GB/s\"", ""};
  } else if (key == "latency") {
    to.latency = parse_time(text);
    if (!to.latency) return Fault{"not a time", "\"10us\"", ""};
  } else {
    to.threads = text == "physical" ? 0 : small_number(text, 4096);
    if (!to.threads || (*to.threads == 0 && text != "physical")) {
      return Fault{"not a number of threads", "1 to 4096 or \"physical\"", ""};
    }
  }
  return std::nullopt;
}

}  // namespace

void DeviceBinding::overlay(const DeviceBinding& other) {
  if (!other.use.empty()) {
    use = other.use;
    use_where = other.use_where;
  }
  if (other.memory_bytes || other.memory_fraction) {
    memory_bytes = other.memory_bytes;
    memory_fraction = other.memory_fraction;
  }
  if (other.bandwidth) bandwidth = other.bandwidth;
  if (other.latency) latency = other.latency;
  if (other.threads) threads = other.threads;
  where = other.where;
}

DeviceBinding parse_device_argument(const std::string& text, int number,
                                    std::vector<Diagnostic>& errors) {
  DeviceBinding binding;
  const auto report = [&](std::size_t offset, const Fault& fault, const std::string& got) {
    Diagnostic d = at(Where{"--device", number, static_cast<int>(offset) + 1}, "", fault.message);
    d.expected = fault.expected;
    d.got = got;
    d.fix = fault.fix;
    errors.push_back(std::move(d));
  };
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    report(0, {"not a device", "NAME=USE,memory=SIZE", "like gpu=emulated:0,memory=2GiB"}, text);
    return binding;
  }
  binding.name = text.substr(0, equals);
  binding.where = binding.use_where = Where{"--device", number, 1};
  for (std::size_t start = equals + 1; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string part = text.substr(start, end - start);
    const std::size_t separator = part.find('=');
    const bool named = separator != std::string::npos;
    const std::string key = named ? part.substr(0, separator) : "use";
    const std::string value = named ? part.substr(separator + 1) : part;
    if (std::find(binding_keys.begin(), binding_keys.end(), key) == binding_keys.end()) {
      const std::string near = nearest_name(key, binding_keys);
      report(start,
             {"unknown key", "use, memory, threads, bandwidth or latency",
              near.empty() ? "" : "did you mean `" + near + "`?"},
             key);
    } else if (const auto fault = set_part(binding, key, value)) {
      report(named ? start + separator + 1 : start, *fault, "\"" + value + "\"");
    } else if (key == "use") {
      binding.use_where.column = static_cast<int>(start) + 1;
    }
    start = end + 1;
  }
  return binding;
}

std::vector<DeviceBinding> parse_device_arguments(const std::vector<std::string>& arguments) {
  std::vector<Diagnostic> errors;
  std::vector<DeviceBinding> bindings;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    bindings.push_back(parse_device_argument(arguments[i], static_cast<int>(i) + 1, errors));
  }
  if (!errors.empty()) throw Error(ErrorKind::usage, std::move(errors));
  return bindings;
}

std::vector<DeviceBinding> read_device_table(const TableReader& root) {
  std::vector<DeviceBinding> bindings;
  const ConfigValue* devices = root.valid("devices");
  if (!devices) return bindings;
  for (const ConfigValue::Member& member : devices->members) {
    if (member.value.kind != ConfigValue::Kind::table) continue;
    DeviceBinding& binding = bindings.emplace_back();
    binding.name = member.key;
    binding.where = binding.use_where = member.where;
    const TableReader table = root.table("devices").table(member.key);
    for (const std::string& key : binding_keys) {
      const ConfigValue* value = table.valid(key);
      if (!value) continue;
      const bool number = value->kind == ConfigValue::Kind::integer;
      const std::string text = number ? std::to_string(value->integer) : value->text;
      if (key == "use") binding.use_where = value->where;
      if (const auto fault = set_part(binding, key, text)) {
        table.report(value->where, key, fault->message, fault->expected, describe(*value),
                     fault->fix);
      }
    }
  }
  return bindings;
}

}  // namespace tandem
