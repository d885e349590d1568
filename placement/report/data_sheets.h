// Common accelerators, as their vendors describe them: plans for these need no measured profile.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/types.h"
#include "placement/report/device_profile.h"

namespace tandem {

/// A row of data_sheets.inl, which says its units.
struct DataSheet {
  const char* name;
  double float32, tf32, float16, bfloat16;
  double bandwidth, memory, link_bandwidth;
};

/// Null where the table has no such name.
const DataSheet* find_data_sheet(std::string_view name);
/// In the order of the table.
std::vector<std::string> data_sheet_names();

/// What a run with products in `compute` reaches of the stated rates; float32 products are in TF32
/// where `tf32`.
StoredProfile reached_profile(const DataSheet& sheet, DType compute, bool tf32);

/// The profiles that `--profile` names: a name of the table describes `gpu`, all else is a file.
/// Throws Error{usage} where it is neither, or the file is wrong.
DeviceProfiles named_profiles(const std::string& name, DType compute, bool tf32);

}  // namespace tandem
