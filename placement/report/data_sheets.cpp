#include "placement/report/data_sheets.h"

#include <cmath>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

// The part of the stated rates that large kernels and copies reach.
constexpr double reached_rate = 0.7, reached_bandwidth = 0.85;
constexpr double launch_seconds = 3e-6;  // for each kernel
constexpr double giga = 1e9, tera = 1e12;

double stated_rate(const DeviceModel& sheet, DType compute, bool tf32) {
  const double rate = compute == DType::float16    ? sheet.float16
                      : compute == DType::bfloat16 ? sheet.bfloat16
                      : tf32                       ? sheet.tf32
                                                   : sheet.float32;
  return rate > 0 ? rate : sheet.float32;
}

struct FamilyModel {
  const DeviceFamily* family = nullptr;
  const DeviceModel* model = nullptr;
};

FamilyModel find_model(std::string_view name) {
  for (const DeviceFamily& family : device_families()) {
    for (const DeviceModel& model : family.models) {
      if (model.name == name) return {&family, &model};
    }
  }
  return {};
}

}  // namespace

const DeviceModel* find_data_sheet(std::string_view name) { return find_model(name).model; }

std::vector<std::string> data_sheet_names() {
  std::vector<std::string> names;
  for (const DeviceFamily& family : device_families()) {
    for (const DeviceModel& model : family.models) names.emplace_back(model.name);
  }
  return names;
}

StoredProfile reached_profile(const DeviceModel& sheet, DType compute, bool tf32) {
  StoredProfile stored;
  stored.profile.flops = reached_rate * tera * stated_rate(sheet, compute, tf32);
  stored.profile.bandwidth = reached_bandwidth * giga * sheet.bandwidth;
  stored.profile.link_bandwidth = reached_bandwidth * giga * sheet.link_bandwidth;
  stored.profile.overhead = launch_seconds;
  stored.memory_bytes = static_cast<std::uint64_t>(std::llround(giga * sheet.memory));
  return stored;
}

DeviceProfiles named_profiles(const std::string& name, DType compute, bool tf32) {
  if (const FamilyModel found = find_model(name); found.model)
    return {{std::string(found.family->name), reached_profile(*found.model, compute, tf32)}};
  if (path_exists(name)) return read_device_profiles(name);
  const std::vector<std::string> names = data_sheet_names();
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "no such file, and no accelerator of this name is known",
                         .file = name,
                         .expected = "a device profile, as `tandem policy auto --save-profile` "
                                     "writes it, or one of " +
                                     joined(names),
                         .fix = did_you_mean(nearest_name(name, names))});
}

}  // namespace tandem
