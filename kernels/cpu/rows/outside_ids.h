// The check of ids against a table: the first one outside of it goes into the error word; the
// lookup itself clamps. Absent ids are in range for every table.
#pragma once

#include <atomic>

#include "engine/device/kernel.h"
#include "engine/operators/tables/rows.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows/rows.h"

namespace tandem {

/// Reports the first of the ids that is outside, if any is.
template <class Id>
void report_first_outside(const KernelArguments& a, const Id* ids, std::int64_t count,
                          std::int64_t rows, std::int32_t node) {
  if (a.context == nullptr || a.context->error == nullptr) return;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto id = static_cast<std::int64_t>(ids[i]);
    if ((id >= rows || id < -rows) && ids[i] != absent_id<Id>)
      return a.context->error->report(ErrorWord::index_out_of_range, node, id);
  }
}
inline void report_first_outside(const KernelArguments& a, const IdArray& ids, std::int64_t rows,
                                 std::int32_t node) {
  if (ids.wide)
    report_first_outside(a, static_cast<const std::int64_t*>(ids.data), ids.count, rows, node);
  else
    report_first_outside(a, static_cast<const std::int32_t*>(ids.data), ids.count, rows, node);
}

template <class Id>
bool all_inside(const Id* ids, std::int64_t count, std::int64_t rows, int threads) {
  std::atomic<bool> inside = true;
  parallel_ranges(threads, count, count * static_cast<std::int64_t>(sizeof(Id)),
                  [&](std::int64_t begin, std::int64_t end) {
                    bool found = false;
                    for (std::int64_t i = begin; i < end; ++i) {
                      const auto id = static_cast<std::int64_t>(ids[i]);
                      found |= ((id >= rows) | (id < -rows)) & (ids[i] != absent_id<Id>);
                    }
                    if (found) inside.store(false, std::memory_order_relaxed);
                  });
  return inside;
}

/// For kernels that do not check the ids while they read them.
inline void report_outside(const KernelArguments& a, const IdArray& ids, std::int64_t rows,
                           int threads, std::int32_t node) {
  const bool inside =
      ids.wide ? all_inside(static_cast<const std::int64_t*>(ids.data), ids.count, rows, threads)
               : all_inside(static_cast<const std::int32_t*>(ids.data), ids.count, rows, threads);
  if (!inside) report_first_outside(a, ids, rows, node);
}

}  // namespace tandem
