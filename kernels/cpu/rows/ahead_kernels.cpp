// Rows that are fetched a step before they are looked up: merges of ascending lists, which are
// short compared with the rows themselves, and the lookup in two buffers.
#include <algorithm>
#include <cstring>

#include "engine/device/kernel_forms.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"

namespace tandem {
namespace {

template <class T>
const T& scalar(const KernelArguments& a, std::size_t input) {
  return *static_cast<const T*>(a.inputs[input]);
}
const std::int64_t* rows_at(const KernelArguments& a, std::size_t input) {
  return static_cast<const std::int64_t*>(a.inputs[input]);
}
template <class T>
T* output(const KernelArguments& a, std::size_t i) {
  return static_cast<T*>(a.outputs[i]);
}

std::unique_ptr<PreparedKernel> prepare_rows_without(const KernelRequest& r) {
  return prepared([capacity = r.inputs[0].type.elements()](const KernelArguments& a) {
    const std::int64_t *rows = rows_at(a, 0), *without = rows_at(a, 2);
    const auto count = scalar<std::int32_t>(a, 1), others = scalar<std::int32_t>(a, 3);
    const std::int64_t step = scalar<std::int64_t>(a, 4);
    auto* kept = output<std::int64_t>(a, 0);
    std::int32_t found = 0, other = 0;
    for (std::int32_t i = 0; i < count; ++i) {
      const std::int64_t row = rows[i];
      while (other < others && without[other] < row) ++other;
      kept[found] = row;  // the next one takes its place where it is in both
      found += !(other < others && without[other] == row);
    }
    std::fill(kept + found, kept + capacity, std::int64_t{-1});
    *output<std::int32_t>(a, 1) = found;
    *output<std::int64_t>(a, 2) = step + 1;
  });
}

// `late` and `place` go into the workspace where they are not read.
std::unique_ptr<PreparedKernel> prepare_plan_rows(const KernelRequest& r) {
  const std::int64_t capacity = r.inputs[0].type.elements();
  const std::int64_t parts = r.inputs[2].type.elements();
  const auto late_bytes = static_cast<std::size_t>(capacity) * 8;
  return prepared(
      [=](const KernelArguments& a) {
        const std::int64_t *unique = rows_at(a, 0), *kept = rows_at(a, 2);
        const bool is_of_step = scalar<std::int64_t>(a, 4) == scalar<std::int64_t>(a, 5);
        const std::int32_t count = scalar<std::int32_t>(a, 1),
                           known = is_of_step ? scalar<std::int32_t>(a, 3) : 0;
        auto* spare = static_cast<char*>(a.workspace);
        auto* late = output<std::int64_t>(a, 0);
        auto* place = output<std::int32_t>(a, 2);
        if (late == nullptr) late = reinterpret_cast<std::int64_t*>(spare);
        if (place == nullptr) place = reinterpret_cast<std::int32_t*>(spare + late_bytes);
        std::int32_t found = 0, k = 0;
        for (std::int32_t u = 0; u < count; ++u) {
          const std::int64_t row = unique[u];
          while (k < known && kept[k] < row) ++k;
          const bool is_here = k < known && kept[k] == row;
          late[found] = row;
          place[u] = is_here ? k : static_cast<std::int32_t>(parts) + found;
          found += !is_here;
        }
        std::fill(late + found, late + capacity, std::int64_t{-1});
        std::fill(place + count, place + capacity, 0);
        if (a.outputs[1] != nullptr) *output<std::int32_t>(a, 1) = found;
      },
      late_bytes + static_cast<std::size_t>(capacity) * 4);
}

void fetch(const char* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at);
}

// Copies of whole rows, of any element type.
std::unique_ptr<PreparedKernel> prepare_gather_parts(const KernelRequest& r) {
  const TensorType& kept = r.inputs[0].type;
  const std::int64_t parts = kept.shape[0], indices = r.inputs[3].type.elements();
  const std::size_t bytes =
      kept.bytes() / static_cast<std::size_t>(std::max<std::int64_t>(parts, 1));
  return prepared([=, threads = r.facts->threads](const KernelArguments& a) {
    const auto *first = static_cast<const char*>(a.inputs[0]),
               *second = static_cast<const char*>(a.inputs[1]);
    const auto* place = static_cast<const std::int32_t*>(a.inputs[2]);
    const auto* index = static_cast<const std::int32_t*>(a.inputs[3]);
    char* y = output<char>(a, 0);
    const auto source = [=](std::int64_t i) {
      const std::int64_t row = place[index[i]];
      return row < parts ? first + static_cast<std::size_t>(row) * bytes
                         : second + static_cast<std::size_t>(row - parts) * bytes;
    };
    constexpr std::int64_t ahead = 8;  // rows on their way from memory
    parallel_ranges(threads, indices, 2 * indices * static_cast<std::int64_t>(bytes),
                    [=](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        if (i + ahead < end && index[i + ahead] >= 0)
                          fetch(source(i + ahead), bytes);
                        char* to = y + static_cast<std::size_t>(i) * bytes;
                        if (index[i] >= 0)
                          std::memcpy(to, source(i), bytes);
                        else  // absent
                          std::memset(to, 0, bytes);
                      }
                    });
  });
}

}  // namespace

void add_rows_ahead_kernels(KernelList& list) {
  add_row_major(list, "cpu.rows_without", "RowsWithout", refuse_nothing, prepare_rows_without);
  add_row_major(list, "cpu.plan_rows", "PlanRows", refuse_nothing, prepare_plan_rows);
  add_row_major(list, "cpu.gather_parts", "GatherParts", refuse_nothing, prepare_gather_parts);
}

}  // namespace tandem
