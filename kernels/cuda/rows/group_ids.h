// Ids of lookups grouped by the row that they name, on the GPU: what UniqueIndices gives, and
// what dense gradients of lookups need.
#pragma once

#include <vector>

#include "kernels/cuda/context.h"
#include "kernels/cuda/rows/ids.h"

namespace tandem::cuda {

/// Where the groups go (engine/operators/tables/rows.h: UniqueOutputs); null where it is not read.
struct GroupOutputs {
  std::int64_t* unique = nullptr;
  std::int32_t* order = nullptr;
  std::int32_t* offsets = nullptr;
  std::int32_t* count = nullptr;
  std::int32_t* inverse = nullptr;
};

/// A sort of (row, position) by row that keeps the order of positions: eight bits a pass, the same
/// on every run. Absent ids are sorted as those of a row after the last one.
class IdGroups {
 public:
  struct Ids {
    std::int64_t count = 0;
    bool wide = false;  // int64, else int32
  };
  /// Lookups of one table: the ids travel with the launch.
  static constexpr std::size_t most_arrays = 64;

  IdGroups(std::vector<Ids> arrays, std::int64_t rows);

  std::int64_t ids() const { return count_; }
  std::int64_t capacity() const { return capacity_; }  // entries that `unique` has room for
  std::size_t workspace_bytes() const { return bytes_; }
  /// Ids outside of the table are reported and become the nearest row.
  void run(GpuContext& gpu, const void* const* ids, const GroupOutputs& outputs, void* workspace,
           const IdReport& report, void* queue) const;

 private:
  template <class Key>
  void sort(GpuContext& gpu, const void* const* ids, const GroupOutputs& outputs, void* workspace,
            const IdReport& report, void* queue) const;

  std::vector<Ids> arrays_;
  std::int64_t rows_, count_ = 0, capacity_ = 0;
  int passes_ = 1;
  bool small_ = false, wide_keys_ = false;
  std::size_t bytes_ = 0;
};

}  // namespace tandem::cuda
