// Common accelerators, as their vendors describe them: plans for these need no measured profile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/device/device_family.h"
#include "engine/graph/types.h"
#include "placement/report/device_profile.h"

namespace tandem {

/// Null where no family has a model of this name.
const DeviceModel* find_data_sheet(std::string_view name);
/// In the order of the families and their tables.
std::vector<std::string> data_sheet_names();

/// What a run with products in `compute` reaches of the stated rates; float32 products are in TF32
/// where `tf32`.
StoredProfile reached_profile(const DeviceModel& sheet, DType compute, bool tf32);

/// The profiles that `--profile` names: a model describes the default device of its family, `gpu`;
/// all else is a file.
/// Throws Error{usage} where it is neither, or the file is wrong.
DeviceProfiles named_profiles(const std::string& name, DType compute, bool tf32);

}  // namespace tandem
