#include "api/device_profile.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* version_key = "tandem_device_profile";
constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;

struct Rate {
  const char* name;
  double DeviceProfile::*value;
  bool may_be_zero;
};
constexpr Rate rates[] = {
    {"flops_per_second", &DeviceProfile::flops, false},
    {"bytes_per_second", &DeviceProfile::bandwidth, false},
    {"kernel_overhead_seconds", &DeviceProfile::overhead, true},
    {"link_bytes_per_second", &DeviceProfile::link_bandwidth, false},
    {"link_latency_seconds", &DeviceProfile::link_latency, true},
};
constexpr const char* memory_key = "memory_bytes";
constexpr const char* kernels_key = "kernel_seconds";

class ProfileReader {
 public:
  explicit ProfileReader(const std::string& file) : file_(file) {}

  DeviceProfiles read() {
    DeviceProfiles profiles;
    Json json;
    const std::string text = read_file(file_, most_bytes);
    try {
      json = Json::parse(text);
    } catch (const Json::exception& error) {
      const auto* parse = dynamic_cast<const Json::parse_error*>(&error);
      const std::size_t at = parse != nullptr ? std::min(parse->byte, text.size()) : 0;
      problem("", "not JSON", "", error.what());
      problems_.back().line =
          1 + static_cast<int>(
                  std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
      throw Error(ErrorKind::usage, std::move(problems_));
    }
    if (json.is_object()) {
      for (const auto& [key, value] : json.items()) {
        if (key != version_key && key != "devices") problem(key, "unknown key", "", "");
      }
    }
    if (!json.is_object() || !json.contains(version_key)) {
      problem("", "not a device profile", std::string("a JSON object with ") + version_key, "");
    } else if (json[version_key] != 1) {
      problem(version_key, "this program reads version 1", "1", json[version_key].dump());
    } else if (!json.contains("devices") || !json["devices"].is_object()) {
      problem("devices", "no devices", "an object, one member a device", "");
    } else {
      for (const auto& [name, device] : json["devices"].items()) {
        profiles[name] = read_device("devices." + name, device);
      }
    }
    if (!problems_.empty()) throw Error(ErrorKind::usage, std::move(problems_));
    return profiles;
  }

 private:
  void problem(const std::string& path, const std::string& message, const std::string& expected,
               const std::string& got, const std::string& fix = "") {
    Diagnostic d;
    d.file = file_;
    d.path = path;
    d.message = message;
    d.expected = expected;
    d.got = got;
    d.fix = fix;
    problems_.push_back(std::move(d));
  }

  double read_number(const std::string& path, const Json& value, bool may_be_zero) {
    // Seconds from 0 to 1,000; rates and sizes from 1 to 1e21.
    const double number = value.is_number() ? value.get<double>() : -1;
    const double low = may_be_zero ? 0 : 1, high = may_be_zero ? 1e3 : 1e21;
    if (number >= low && number <= high) return number;
    problem(path, "out of range", may_be_zero ? "0 to 1000" : "1 to 1e21", value.dump());
    return 1;
  }

  StoredProfile read_device(const std::string& path, const Json& device) {
    StoredProfile stored;
    if (!device.is_object()) {
      problem(path, "not a device", "an object", device.dump());
      return stored;
    }
    for (const auto& [key, value] : device.items()) {
      const std::string at = path + "." + key;
      const Rate* rate = nullptr;
      for (const Rate& known : rates) {
        if (key == known.name) rate = &known;
      }
      if (rate != nullptr) {
        stored.profile.*(rate->value) = read_number(at, value, rate->may_be_zero);
      } else if (key == memory_key) {
        const double bytes = read_number(at, value, false);
        if (bytes < 1e18) stored.memory_bytes = static_cast<std::uint64_t>(bytes);
      } else if (key == kernels_key && value.is_object()) {
        for (const auto& [request, seconds] : value.items()) {
          stored.profile.measured[request] = read_number(at + "." + request, seconds, true);
        }
      } else {
        std::vector<std::string> names{memory_key, kernels_key};
        for (const Rate& known : rates) names.emplace_back(known.name);
        const std::string near = nearest_name(key, names);
        problem(at, key == kernels_key ? "not an object" : "unknown key", "", "",
                near.empty() || near == key ? "" : "did you mean " + near + "?");
      }
    }
    return stored;
  }

  const std::string file_;
  std::vector<Diagnostic> problems_;
};

}  // namespace

DeviceProfiles read_device_profiles(const std::string& path) {
  if (!path_exists(path) || is_directory(path)) {
    Diagnostic d;
    d.message = path_exists(path) ? "this is a folder" : "no such file";
    d.file = path;
    d.expected = "a device profile, as `tandem policy auto --save-profile` writes it";
    throw Error(ErrorKind::usage, std::move(d));
  }
  return ProfileReader(path).read();
}

std::string device_profiles_json(const DeviceProfiles& profiles) {
  Json devices = Json::object();
  for (const auto& [name, stored] : profiles) {
    Json& device = devices[name] = Json::object();
    for (const Rate& rate : rates) device[rate.name] = stored.profile.*(rate.value);
    if (stored.memory_bytes) device[memory_key] = *stored.memory_bytes;
    if (!stored.profile.measured.empty()) device[kernels_key] = stored.profile.measured;
  }
  return Json{{version_key, 1}, {"devices", devices}}.dump(2) + "\n";
}

void add_stand_ins(const DeviceProfiles& profiles, std::vector<DeviceBinding>& stand_ins) {
  int number = 0;
  for (const auto& [name, stored] : profiles) {
    if (name == "cpu") continue;
    DeviceBinding binding;
    binding.name = name;
    binding.use = "emulated:" + std::to_string(number++);
    binding.memory_bytes = stored.memory_bytes;
    stand_ins.push_back(std::move(binding));
  }
}

}  // namespace tandem::api
