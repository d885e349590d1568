// SplitIds, one bit of an array that stays in a cache for each id, and GatherAdd, which does not
// touch rows that have nothing to add.
#include <cstring>

#include "engine/device/kernel_forms.h"
#include "engine/operators/tables/split_ids.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows/outside_ids.h"

namespace tandem {
namespace {

// Results that are not read have no address.
template <class Id>
void split(const KernelArguments& a, std::int64_t begin, std::int64_t end, std::int64_t rows) {
  const Id* ids = static_cast<const Id*>(a.inputs[0]);
  const auto* marks = static_cast<const std::int64_t*>(a.inputs[1]);
  const auto* ranks = static_cast<const std::int32_t*>(a.inputs[2]);
  Id* cold = static_cast<Id*>(a.outputs[0]);
  auto* hot = static_cast<std::int32_t*>(a.outputs[1]);
  for (std::int64_t i = begin; i < end; ++i) {
    const SplitId<Id> next(ids[i], rows, marks, ranks);
    if (cold != nullptr) cold[i] = next.cold;
    if (hot != nullptr) hot[i] = next.hot;
  }
}

std::unique_ptr<PreparedKernel> prepare_split_ids(const KernelRequest& r) {
  const TensorType& ids = r.inputs[0].type;
  return prepared([rows = r.attributes().integer("rows"), count = ids.elements(),
                   wide = ids.dtype == DType::int64,
                   threads = r.facts->threads](const KernelArguments& a) {
    parallel_ranges(threads, count, count * 32, [&](std::int64_t begin, std::int64_t end) {
      if (wide) {
        split<std::int64_t>(a, begin, end, rows);
      } else {
        split<std::int32_t>(a, begin, end, rows);
      }
    });
  });
}

struct Rows {
  std::int64_t count = 0, columns = 0;  // rows and columns of x

  template <class Id>
  void add(const KernelArguments& a, std::int64_t begin, std::int64_t end) const {
    const float* base = static_cast<const float*>(a.inputs[0]);
    const float* x = static_cast<const float*>(a.inputs[1]);
    const Id* ids = static_cast<const Id*>(a.inputs[2]);
    float* y = static_cast<float*>(a.outputs[0]);
    const auto bytes = static_cast<std::size_t>(columns) * sizeof(float);
    for (std::int64_t i = begin; i < end; ++i) {
      const float* from = base + i * columns;
      float* to = y + i * columns;
      if (ids[i] == absent_id<Id>) {
        if (to != from) std::memcpy(to, from, bytes);
        continue;
      }
      const std::int64_t id = ids[i] + (ids[i] < 0 ? count : 0);
      const float* more = x + std::clamp<std::int64_t>(id, 0, count - 1) * columns;
      for (std::int64_t c = 0; c < columns; ++c) to[c] = from[c] + more[c];
    }
  }
};

std::unique_ptr<PreparedKernel> prepare_gather_add(const KernelRequest& r) {
  const TensorType &x = r.inputs[1].type, &indices = r.inputs[2].type;
  const Rows rows{x.shape[0], x.elements() / x.shape[0]};
  return prepared([rows, count = indices.elements(), wide = indices.dtype == DType::int64,
                   threads = r.facts->threads, node = r.node_index](const KernelArguments& a) {
    report_outside(a, IdArray{a.inputs[2], count, wide}, rows.count, threads, node);
    parallel_ranges(threads, count, count * (rows.columns * 8 + 8),
                    [&](std::int64_t begin, std::int64_t end) {
                      if (wide) {
                        rows.add<std::int64_t>(a, begin, end);
                      } else {
                        rows.add<std::int32_t>(a, begin, end);
                      }
                    });
  });
}

}  // namespace

void add_cached_row_kernels(KernelList& list) {
  add_row_major(list, "cpu.split_ids", "SplitIds", refuse_nothing, prepare_split_ids);
  add_row_major(list, "cpu.gather_add", "GatherAdd", only_float32({0}), prepare_gather_add);
}

}  // namespace tandem
