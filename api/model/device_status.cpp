#include "api/model/device_status.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/model/engine.h"
#include "engine/graph/text.h"
#include "placement/device_use.h"
#include "placement/quantities.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

const char* const absent = "not in this build";

std::string use_of(const DeviceFamily& family, const FoundDevice& device) {
  return fmt::format("{}:{}", family.kind, device.ordinal);
}

std::string name_of(const DeviceFamily& family, const FoundDevice& device) {
  return device.name.empty() ? noun_with_article(family) : device.name;
}

std::string version_of(const FoundDevice& device) {
  return fmt::format("{}.{}", device.major, device.minor);
}

// "compute_capability" of "compute capability".
std::string json_key(std::string_view words) {
  std::string key(words);
  std::replace(key.begin(), key.end(), ' ', '_');
  return key;
}

std::string line(std::string_view name, const std::string& text) {
  return fmt::format("{:<9} {}\n", name, text);
}

std::string found_text(const DeviceFamily& family, const FoundDevice& device) {
  std::string of = name_of(family, device);
  if (device.memory_bytes > 0) {
    if (!family.version.empty()) of += fmt::format(", {} {}", family.version, version_of(device));
    of += ", " + bytes_text(device.memory_bytes);
  }
  if (!device.problem.empty()) return of + "; cannot be used: " + device.problem;
  return of + ", " + bytes_text(device.free_bytes) + " free";
}

std::string library_text(const FoundLibrary& library) {
  std::string of = library.version;
  if (!library.path.empty()) of += (of.empty() ? "" : " ") + ("in " + library.path);
  if (library.problem.empty()) return of;
  return of + (of.empty() ? "" : "; ") + "cannot be used: " + library.problem;
}

}  // namespace

std::string device_text(const DeviceFamily& family, const DeviceReport& report) {
  const auto with_fix = [](const std::string& fix) {
    return fix.empty() ? "" : line("", "fix: " + fix);
  };
  if (report.toolkit.empty()) return line(family.kind, absent) + with_fix(report.fix);
  std::string built = "built with " + report.toolkit;
  if (!report.driver.empty()) built += ", the driver is for " + report.driver;
  if (!report.problem.empty())
    built += fmt::format("; no {} can be used: {}", family.noun, report.problem);
  std::string text = line(family.kind, built) + with_fix(report.fix);
  for (const FoundDevice& device : report.devices)
    text += line(use_of(family, device), found_text(family, device));
  for (const FoundLibrary& library : report.libraries) {
    text += line(library.name, library_text(library)) + with_fix(library.fix);
    for (const std::string& file : library.passed_over) text += line("", "skipped: " + file);
  }
  return text;
}

Json device_json(const DeviceFamily& family, const DeviceReport& report) {
  if (report.toolkit.empty()) return absent;
  Json devices = Json::array(), libraries = Json::array();
  for (const FoundDevice& device : report.devices) {
    Json& item = devices.emplace_back();
    item["name"] = use_of(family, device);
    item["card"] = device.name;
    if (!family.version.empty()) item[json_key(family.version)] = version_of(device);
    item["memory_bytes"] = device.memory_bytes;
    item["free_bytes"] = device.free_bytes;
    item["problem"] = device.problem;
  }
  for (const FoundLibrary& library : report.libraries) {
    libraries.push_back({{"name", library.name},
                         {"needed", library.needed},
                         {"version", library.version},
                         {"path", library.path},
                         {"problem", library.problem},
                         {"fix", library.fix},
                         {"passed_over", library.passed_over}});
  }
  return {{"toolkit", report.toolkit}, {"driver", report.driver}, {"problem", report.problem},
          {"fix", report.fix},         {"cards", devices},        {"libraries", libraries}};
}

std::optional<Diagnostic> missing_device(const DeviceReport& report, const std::string& use) {
  const DeviceFamily& family = *family_of_use(use);
  const auto own_use = [&](const FoundDevice& device) { return use_of(family, device); };
  Diagnostic d{.fix = report.fix};
  if (report.devices.empty()) {
    d.message = report.problem;
    return d;
  }
  const auto device =
      std::find_if(report.devices.begin(), report.devices.end(),
                   [&](const FoundDevice& device) { return own_use(device) == use; });
  if (device == report.devices.end()) {
    d.message = "this machine has no " + use;
    d.expected = joined(report.devices, ", ", own_use);
    return d;
  }
  if (device->problem.empty()) return std::nullopt;
  d.message =
      fmt::format("{} ({}) cannot be used: {}", use, name_of(family, *device), device->problem);
  return d;
}

}  // namespace tandem::api
