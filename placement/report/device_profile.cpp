#include "placement/report/device_profile.h"

#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/formats/json_file.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"
#include "placement/device_use.h"

namespace tandem {
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
    {"network_bytes_per_second", &DeviceProfile::network_bandwidth, false},
    {"network_latency_seconds", &DeviceProfile::network_latency, true},
};
constexpr const char* memory_key = "memory_bytes";
constexpr const char* kernels_key = "kernel_seconds";

class ProfileReader {
 public:
  explicit ProfileReader(const std::string& file) : file_(file) {}

  DeviceProfiles read() {
    DeviceProfiles profiles;
    const JsonFile file({.file = file_, .kind = ErrorKind::usage}, read_file(file_, most_bytes),
                        {.bytes = most_bytes});
    const JsonItem json = file.root();
    for (const auto& [key, value] : json.members()) {
      if (key != version_key && key != "devices") problem(key, "unknown key", "", "");
    }
    const auto version = json.find(version_key), devices = json.find("devices");
    if (!version) {
      problem("", "not a device profile", std::string("a JSON object with ") + version_key, "");
    } else if (version->as_number() != 1) {
      problem(version_key, "this program reads version 1", "1", version->shown());
    } else if (!devices || !devices->is_object()) {
      problem("devices", "no devices", "an object, one member a device", "");
    } else {
      for (const auto& [name, device] : devices->members()) profiles[name] = read_device(device);
    }
    if (!problems_.empty()) throw Error(ErrorKind::usage, std::move(problems_));
    return profiles;
  }

 private:
  void problem(const std::string& path, const std::string& message, const std::string& expected,
               const std::string& got, const std::string& fix = "") {
    problems_.push_back({.message = message,
                         .file = file_,
                         .path = path,
                         .expected = expected,
                         .got = got,
                         .fix = fix});
  }

  double read_number(const JsonItem& value, bool may_be_zero) {
    // Seconds from 0 to 1,000; rates and sizes from 1 to 1e21.
    const double number = value.as_number().value_or(-1);
    const double low = may_be_zero ? 0 : 1, high = may_be_zero ? 1e3 : 1e21;
    if (number >= low && number <= high) return number;
    problem(value.keys(), "out of range", may_be_zero ? "0 to 1000" : "1 to 1e21", value.shown());
    return 1;
  }

  StoredProfile read_device(const JsonItem& device) {
    StoredProfile stored;
    if (!device.is_object()) {
      problem(device.keys(), "not a device", "an object", device.shown());
      return stored;
    }
    for (const auto& [key, value] : device.members()) {
      const Rate* rate = nullptr;
      for (const Rate& known : rates) {
        if (key == known.name) rate = &known;
      }
      if (rate != nullptr) {
        stored.profile.*(rate->value) = read_number(value, rate->may_be_zero);
      } else if (key == memory_key) {
        const double bytes = read_number(value, false);
        if (bytes < 1e18) stored.memory_bytes = static_cast<std::uint64_t>(bytes);
      } else if (key == kernels_key && value.is_object()) {
        for (const auto& [request, seconds] : value.members()) {
          stored.profile.measured[request] = read_number(seconds, true);
        }
      } else {
        std::vector<std::string> names{memory_key, kernels_key};
        for (const Rate& known : rates) names.emplace_back(known.name);
        const std::string near = nearest_name(key, names);
        problem(value.keys(), key == kernels_key ? "not an object" : "unknown key", "", "",
                near == key ? "" : did_you_mean(near, "", ""));
      }
    }
    return stored;
  }

  const std::string file_;
  std::vector<Diagnostic> problems_;
};

}  // namespace

DeviceProfiles read_device_profiles(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    throw Error(
        ErrorKind::usage,
        Diagnostic{
            .message = is_directory(path)  ? "this is a folder"
                       : path_exists(path) ? "this is not a regular file"
                                           : "no such file",
            .file = path,
            .expected = "a device profile, as `tandem policy auto --save-profile` writes it"});
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
    binding.use = use_without_hardware(number++);
    binding.memory_bytes = stored.memory_bytes;
    stand_ins.push_back(std::move(binding));
  }
}

}  // namespace tandem
