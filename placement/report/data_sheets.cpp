#include "placement/report/data_sheets.h"

#include <algorithm>
#include <cmath>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

constexpr DataSheet data_sheets[] = {
#include "placement/report/data_sheets.inl"
};

// The part of the stated rates that large kernels and copies reach.
constexpr double reached_rate = 0.7, reached_bandwidth = 0.85;
constexpr double launch_seconds = 3e-6;  // for each kernel
constexpr double giga = 1e9, tera = 1e12;

double stated_rate(const DataSheet& sheet, DType compute, bool tf32) {
  const double rate = compute == DType::float16    ? sheet.float16
                      : compute == DType::bfloat16 ? sheet.bfloat16
                      : tf32                       ? sheet.tf32
                                                   : sheet.float32;
  return rate > 0 ? rate : sheet.float32;
}

}  // namespace

const DataSheet* find_data_sheet(std::string_view name) {
  const auto* found = std::find_if(std::begin(data_sheets), std::end(data_sheets),
                                   [&](const DataSheet& sheet) { return sheet.name == name; });
  return found == std::end(data_sheets) ? nullptr : found;
}

std::vector<std::string> data_sheet_names() {
  std::vector<std::string> names;
  for (const DataSheet& sheet : data_sheets) names.emplace_back(sheet.name);
  return names;
}

StoredProfile reached_profile(const DataSheet& sheet, DType compute, bool tf32) {
  StoredProfile stored;
  stored.profile.flops = reached_rate * tera * stated_rate(sheet, compute, tf32);
  stored.profile.bandwidth = reached_bandwidth * giga * sheet.bandwidth;
  stored.profile.link_bandwidth = reached_bandwidth * giga * sheet.link_bandwidth;
  stored.profile.overhead = launch_seconds;
  stored.memory_bytes = static_cast<std::uint64_t>(std::llround(giga * sheet.memory));
  return stored;
}

DeviceProfiles named_profiles(const std::string& name, DType compute, bool tf32) {
  if (const DataSheet* sheet = find_data_sheet(name))
    return {{"gpu", reached_profile(*sheet, compute, tf32)}};
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
