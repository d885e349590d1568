// Ids of lookups on the GPU: the row that each names, checked as the reference kernels check it.
#pragma once

#include <cstdint>

#include "engine/device/kernel.h"
#include "engine/graph/host_device.h"
#include "engine/operators/tables/rows.h"
#include "kernels/shared/block/step_context.h"

namespace tandem::cuda {

inline constexpr std::int64_t absent_wide = absent_id<std::int64_t>;
inline constexpr std::int32_t absent_narrow = absent_id<std::int32_t>;

/// int32 or int64 ids in the GPU's memory.
struct IdArray {
  const void* data = nullptr;
  bool wide = false;

  /// The id as it is stored.
  TANDEM_HOST_DEVICE std::int64_t at(std::int64_t i) const {
    return wide ? static_cast<const std::int64_t*>(data)[i]
                : static_cast<const std::int32_t*>(data)[i];
  }
  TANDEM_HOST_DEVICE bool is_absent(std::int64_t id) const {
    return id == (wide ? absent_wide : std::int64_t{absent_narrow});
  }
};

/// Where a node says that an id names no row.
struct IdReport {
  const DeviceStepContext* context = nullptr;
  std::int32_t node = -1;

  IdReport() = default;
  IdReport(const KernelArguments& a, std::int32_t node_index)
      : context(reinterpret_cast<const DeviceStepContext*>(a.context)), node(node_index) {}

  TANDEM_HOST_DEVICE void operator()(std::int64_t id) const {
    if (context != nullptr && context->error != nullptr) {
      report_error(context->error, ErrorWord::index_out_of_range, node, id);
    }
  }
};

/// Row i of a table of `rows` rows, -1 for an absent id. Others are reported by those who have a
/// `report`, then become the nearest row.
TANDEM_HOST_DEVICE inline std::int64_t row_of(const IdArray& ids, std::int64_t i, std::int64_t rows,
                                              const IdReport* report) {
  const std::int64_t id = ids.at(i);
  if (ids.is_absent(id)) return -1;
  const std::int64_t row = id < 0 ? id + rows : id;
  if (row >= 0 && row < rows) return row;
  if (report != nullptr) (*report)(id);
  return row < 0 ? 0 : rows - 1;
}

}  // namespace tandem::cuda
