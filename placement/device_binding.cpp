#include "placement/device_binding.h"

#include <algorithm>
#include <charconv>

#include "engine/graph/selector.h"
#include "engine/graph/text.h"
#include "placement/device_use.h"
#include "placement/quantities.h"

namespace tandem {
namespace {

std::optional<int> small_number(std::string_view text, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0 ||
      value > most) {
    return std::nullopt;
  }
  return value;
}

struct Fault {
  std::string message, expected, fix;
};

// Names appear in tables and messages, so that they have to be readable.
std::optional<Fault> fault_of_name(std::string_view name) {
  const bool readable =
      !name.empty() &&
      std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (readable) return std::nullopt;
  return Fault{"not the name of a device", "readable characters, at least one", ""};
}

Fault unknown_use(const std::string& text) {
  if (const auto wrong = wrong_number(text, use_prefixes())) {
    return {"no device has this number",
            wrong->prefix + "0 to " + wrong->prefix + "63, without leading zeros",
            did_you_mean(wrong->mended)};
  }
  std::string near = builtin_use(text);
  if (near.empty()) near = nearest_name(text, known_uses());
  return {"unknown device", use_forms(), did_you_mean(near)};
}

// Sets one part of a binding; returns what is wrong with it, or nothing.
std::optional<Fault> set_part(DeviceBinding& to, std::string_view key, const std::string& text,
                              const Where& where) {
  to.said.push_back({std::string(key), text, where});
  if (key == "use") {
    if (!is_device_use(text)) return unknown_use(text);
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

/// f(members that hold this key)
template <class F>
auto with_parts(std::string_view key, F f) {
  using Binding = DeviceBinding;
  if (key == "use") return f(&Binding::use);
  if (key == "memory") return f(&Binding::memory_bytes, &Binding::memory_fraction);
  if (key == "bandwidth") return f(&Binding::bandwidth);
  return key == "latency" ? f(&Binding::latency) : f(&Binding::threads);
}

}  // namespace

bool DeviceBinding::sets(std::string_view key) const { return !agrees(key, DeviceBinding{}); }

bool DeviceBinding::agrees(std::string_view key, const DeviceBinding& other) const {
  return with_parts(key, [&](auto... parts) { return ((this->*parts == other.*parts) && ...); });
}

void DeviceBinding::take(std::string_view key, const DeviceBinding& other) {
  if (!other.sets(key)) return;
  with_parts(key, [&](auto... parts) { ((this->*parts = other.*parts), ...); });
  const std::string text = other.text_of(key);
  const Where place = other.where_of(key);
  std::erase_if(said, [&](const Said& each) { return each.key == key; });
  said.push_back({std::string(key), text, place});
}

void DeviceBinding::overlay(const DeviceBinding& other) {
  for (const std::string& key : binding_keys()) take(key, other);
  faulty = faulty || other.faulty;
  where = other.where;
}

const Where& DeviceBinding::where_of(std::string_view key) const {
  const auto found =
      std::find_if(said.begin(), said.end(), [&](const Said& each) { return each.key == key; });
  return found == said.end() ? where : found->where;
}

std::string DeviceBinding::text_of(std::string_view key) const {
  const auto found =
      std::find_if(said.begin(), said.end(), [&](const Said& each) { return each.key == key; });
  if (found != said.end()) return found->text;
  if (key == "use") return use;
  return key == "memory" && memory_bytes ? size_text(*memory_bytes) : "";
}

const std::vector<std::string>& binding_keys() {
  static const std::vector<std::string> keys{"use", "memory", "threads", "bandwidth", "latency"};
  return keys;
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
    report(0,
           {"not a device", "NAME=USE,memory=SIZE",
            "like " + default_accelerator() + "=" + use_without_hardware(0) + ",memory=2GiB"},
           text);
    return binding;
  }
  binding.name = text.substr(0, equals);
  const auto place = [&](std::size_t offset) {
    return Where{"--device", number, static_cast<int>(offset) + 1};
  };
  binding.where = place(0);
  if (const auto fault = fault_of_name(binding.name)) report(0, *fault, "");
  const std::vector<std::string>& keys = binding_keys();
  for (std::size_t start = equals + 1; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string part = text.substr(start, end - start);
    const std::size_t separator = part.find('=');
    const bool named = separator != std::string::npos;
    const std::string key = named ? part.substr(0, separator) : "use";
    const std::string value = named ? part.substr(separator + 1) : part;
    const std::size_t at_value = named ? start + separator + 1 : start;
    const bool again = std::any_of(binding.said.begin(), binding.said.end(),
                                   [&](const auto& each) { return each.key == key; });
    if (part.empty()) {
      report(start, {"nothing is between these commas", "KEY=VALUE", "remove the comma"},
             "\"" + text + "\"");
      break;  // often several in a row
    }
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      report(start,
             {"unknown key", "use, memory, threads, bandwidth or latency",
              did_you_mean(nearest_name(key, keys), "", "`")},
             key);
    } else if (again) {
      report(at_value, {"`" + key + "` is given twice", "each key once", ""}, "\"" + value + "\"");
    } else if (const auto fault = set_part(binding, key, value, place(at_value))) {
      report(at_value, *fault, "\"" + value + "\"");
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
    DeviceBinding& binding = bindings.emplace_back();
    binding.name = member.key;
    binding.where = member.where;
    if (const auto fault = fault_of_name(member.key))
      root.report(member.where, "devices", fault->message, fault->expected);
    binding.faulty = member.value.kind != ConfigValue::Kind::table;
    if (binding.faulty) continue;
    const std::vector<std::string>& keys = binding_keys();
    for (const ConfigValue::Member& part : member.value.members) {
      const bool known = std::find(keys.begin(), keys.end(), part.key) != keys.end();
      binding.faulty |= !known || part.value.kind == ConfigValue::Kind::invalid;
    }
    const TableReader table = root.table("devices").table(member.key);
    for (const std::string& key : keys) {
      const ConfigValue* value = table.valid(key);
      if (!value) continue;
      const bool number = value->kind == ConfigValue::Kind::integer;
      const std::string text = number ? std::to_string(value->integer) : value->text;
      if (const auto fault = set_part(binding, key, text, value->where)) {
        binding.faulty = true;
        table.report(value->where, key, fault->message, fault->expected, describe(*value),
                     fault->fix);
      }
    }
  }
  return bindings;
}

}  // namespace tandem
