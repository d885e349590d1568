// RowsWithout, PlanRows and GatherParts: rows that are fetched a step before they are looked up.
#include <algorithm>
#include <cstring>

#include "kernels/reference/network_support.h"

namespace tandem::reference {
namespace {

/// The first `count` of ascending rows.
struct KeptRows {
  const std::int64_t* first;
  std::int32_t count;

  KeptRows(const KernelArguments& a, std::size_t rows)
      : first(static_cast<const std::int64_t*>(a.inputs[rows])),
        count(*static_cast<const std::int32_t*>(a.inputs[rows + 1])) {}
  /// The place of a row, or -1.
  std::int32_t find(std::int64_t row) const {
    const std::int64_t* at = std::lower_bound(first, first + count, row);
    return at == first + count || *at != row ? -1 : static_cast<std::int32_t>(at - first);
  }
};

std::int64_t step_at(const KernelArguments& a, std::size_t input) {
  return *static_cast<const std::int64_t*>(a.inputs[input]);
}

template <class T>
void put(const KernelArguments& a, std::size_t output, std::int64_t at, T value) {
  if (a.outputs[output] != nullptr) static_cast<T*>(a.outputs[output])[at] = value;
}

std::unique_ptr<PreparedKernel> rows_without(const KernelRequest& r) {
  return prepared([capacity = r.inputs[0].type.elements()](const KernelArguments& a) {
    const KeptRows rows(a, 0), without(a, 2);
    const std::int64_t step = step_at(a, 4);
    std::int32_t kept = 0;
    for (std::int32_t i = 0; i < rows.count; ++i) {
      if (without.find(rows.first[i]) < 0) put(a, 0, kept++, rows.first[i]);
    }
    put(a, 1, 0, kept);
    put(a, 2, 0, step + 1);
    for (std::int64_t i = kept; i < capacity; ++i) put(a, 0, i, std::int64_t{-1});
  });
}

std::unique_ptr<PreparedKernel> plan_rows(const KernelRequest& r) {
  return prepared([capacity = r.inputs[0].type.elements(),
                   most_kept = r.inputs[2].type.elements()](const KernelArguments& a) {
    const KeptRows unique(a, 0);
    KeptRows kept(a, 2);
    if (step_at(a, 4) != step_at(a, 5)) kept.count = 0;
    std::int32_t late = 0;
    for (std::int32_t u = 0; u < unique.count; ++u) {
      std::int32_t place = kept.find(unique.first[u]);
      if (place < 0) {
        place = static_cast<std::int32_t>(most_kept) + late;
        put(a, 0, late++, unique.first[u]);
      }
      put(a, 2, u, place);
    }
    put(a, 1, 0, late);
    for (std::int64_t i = late; i < capacity; ++i) put(a, 0, i, std::int64_t{-1});
    for (std::int64_t u = unique.count; u < capacity; ++u) put(a, 2, u, std::int32_t{0});
  });
}

std::unique_ptr<PreparedKernel> gather_parts(const KernelRequest& r) {
  const TensorType& kept = r.inputs[0].type;
  const std::int64_t parts = kept.shape[0], indices = r.inputs[3].type.elements();
  const std::size_t bytes =
      kept.bytes() / static_cast<std::size_t>(std::max<std::int64_t>(parts, 1));
  return prepared([=](const KernelArguments& a) {
    const auto* place = static_cast<const std::int32_t*>(a.inputs[2]);
    const auto* index = static_cast<const std::int32_t*>(a.inputs[3]);
    for (std::int64_t i = 0; i < indices; ++i) {
      char* to = static_cast<char*>(a.outputs[0]) + static_cast<std::size_t>(i) * bytes;
      if (index[i] < 0) {  // absent
        std::memset(to, 0, bytes);
        continue;
      }
      const std::int64_t row = place[index[i]];
      const auto* part = static_cast<const char*>(a.inputs[row < parts ? 0 : 1]);
      std::memcpy(to, part + static_cast<std::size_t>(row < parts ? row : row - parts) * bytes,
                  bytes);
    }
  });
}

}  // namespace

// Rows and places are read as plain arrays, so everything is row-major.
void add_rows_ahead(KernelList& list) {
  const std::size_t first = list.size();
  list.push_back(untyped_kernel("reference.rows_without", "RowsWithout", rows_without));
  list.push_back(untyped_kernel("reference.plan_rows", "PlanRows", plan_rows));
  list.push_back(untyped_kernel("reference.gather_parts", "GatherParts", gather_parts));
  for (std::size_t i = first; i < list.size(); ++i) {
    list[i].propose = propose_row_major;
  }
}

}  // namespace tandem::reference
