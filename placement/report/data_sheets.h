// Accelerators that are common, as their vendors describe them: plans for them need no profile of
// one's own.
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

/// What a run reaches of it, whose products are in `compute`; float32 ones in TF32 where `tf32`.
StoredProfile reached_profile(const DataSheet& sheet, DType compute, bool tf32);

/// What `--profile` says: a name of the table describes `gpu`, all else is a file of profiles.
/// Throws Error{usage} where it is neither, or the file is wrong.
DeviceProfiles named_profiles(const std::string& name, DType compute, bool tf32);

}  // namespace tandem
