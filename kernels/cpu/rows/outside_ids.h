// The check of ids against a table: the first one outside of it goes into the error word, before
// the look-up itself, which clamps. Absent ids are in range for every table.
#pragma once

#include <atomic>

#include "engine/operators/rows.h"
#include "engine/runtime/kernel.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows/rows.h"

namespace tandem {

template <class Id>
void report_outside(const KernelArguments& a, const Id* ids, std::int64_t count, std::int64_t rows,
                    int threads, std::int32_t node) {
  if (a.context == nullptr || a.context->error == nullptr) return;
  std::atomic<bool> outside = false;
  parallel_ranges(threads, count, count * static_cast<std::int64_t>(sizeof(Id)),
                  [&](std::int64_t begin, std::int64_t end) {
                    bool found = false;
                    for (std::int64_t i = begin; i < end; ++i) {
                      const auto id = static_cast<std::int64_t>(ids[i]);
                      found |= ((id >= rows) | (id < -rows)) & (ids[i] != absent_id<Id>);
                    }
                    if (found) outside.store(true, std::memory_order_relaxed);
                  });
  if (!outside) return;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto id = static_cast<std::int64_t>(ids[i]);
    if ((id >= rows || id < -rows) && ids[i] != absent_id<Id>)
      return a.context->error->report(ErrorWord::index_out_of_range, node, id);
  }
}

inline void report_outside(const KernelArguments& a, const IdArray& ids, std::int64_t rows,
                           int threads, std::int32_t node) {
  if (ids.wide)
    report_outside(a, static_cast<const std::int64_t*>(ids.data), ids.count, rows, threads, node);
  else
    report_outside(a, static_cast<const std::int32_t*>(ids.data), ids.count, rows, threads, node);
}

}  // namespace tandem
