// RowsWithout and PlanRows: rows that are fetched a step before they are looked up. Lists are
// ascending, so that each row is found by halving; counts stay on the GPU.

#include "kernels/cuda/rows/row_lists.h"
#include "kernels/cuda/rows/select.h"

namespace tandem::cuda {
namespace {

/// The first *count of ascending rows.
struct RowList {
  const std::int64_t* rows;
  const std::int32_t* count;

  RowList() = default;
  RowList(const KernelArguments& a, std::size_t input)
      : rows(static_cast<const std::int64_t*>(a.inputs[input])),
        count(static_cast<const std::int32_t*>(a.inputs[input + 1])) {}

  /// The place of a row, or -1.
  TANDEM_HOST_DEVICE std::int32_t find(std::int64_t row) const {
    std::int32_t low = 0, high = *count;
    while (low < high) {
      const std::int32_t middle = low + (high - low) / 2;
      if (rows[middle] < row)
        low = middle + 1;
      else
        high = middle;
    }
    return low < *count && rows[low] == row ? low : -1;
  }
};

struct Without {
  RowList rows, without;
  const std::int64_t* step;
  std::int64_t capacity;
  std::int64_t* kept;  // results that are not read are null
  std::int32_t* kept_count;
  std::int64_t* kept_step;

  TANDEM_HOST_DEVICE void note(std::int64_t) const {}
  TANDEM_HOST_DEVICE bool selected(std::int64_t i) const {
    return i < *rows.count && without.find(rows.rows[i]) < 0;
  }
  TANDEM_HOST_DEVICE void emit(std::int64_t i, bool picked, std::int64_t before,
                               std::int64_t all) const {
    if (kept != nullptr) {
      if (picked) kept[before] = rows.rows[i];
      if (i >= all && i < capacity) kept[i] = -1;
    }
    if (i > 0) return;
    if (kept_count != nullptr) *kept_count = static_cast<std::int32_t>(all);
    if (kept_step != nullptr) *kept_step = *step + 1;
  }
};

struct Planned {
  RowList unique, kept;
  const std::int64_t *kept_step, *step;
  std::int64_t capacity, most_kept;
  std::int64_t* late;  // results that are not read are null
  std::int32_t *late_count, *place;

  TANDEM_HOST_DEVICE std::int32_t find(std::int64_t i) const {
    return *kept_step == *step ? kept.find(unique.rows[i]) : -1;
  }
  TANDEM_HOST_DEVICE void note(std::int64_t) const {}
  TANDEM_HOST_DEVICE bool selected(std::int64_t i) const {
    return i < *unique.count && find(i) < 0;
  }
  TANDEM_HOST_DEVICE void emit(std::int64_t i, bool picked, std::int64_t before,
                               std::int64_t all) const {
    if (late != nullptr) {
      if (picked) late[before] = unique.rows[i];
      if (i >= all && i < capacity) late[i] = -1;
    }
    if (place != nullptr && i < capacity) {
      if (i >= *unique.count)
        place[i] = 0;
      else
        place[i] = picked ? static_cast<std::int32_t>(most_kept + before) : find(i);
    }
    if (i == 0 && late_count != nullptr) *late_count = static_cast<std::int32_t>(all);
  }
};

std::unique_ptr<PreparedKernel> prepare_rows_without(const KernelRequest& r, const Gpu& gpu) {
  const std::int64_t capacity = r.inputs[0].type.elements();
  return prepared(
      [gpu, capacity](const KernelArguments& a) {
        Without select{};
        select.rows = RowList(a, 0);
        select.without = RowList(a, 2);
        select.step = static_cast<const std::int64_t*>(a.inputs[4]);
        select.capacity = capacity;
        select.kept = static_cast<std::int64_t*>(a.outputs[0]);
        select.kept_count = static_cast<std::int32_t*>(a.outputs[1]);
        select.kept_step = static_cast<std::int64_t*>(a.outputs[2]);
        select_in_order(*gpu, select, capacity + 1, a.workspace, a.queue);
      },
      select_bytes(capacity + 1));
}

std::unique_ptr<PreparedKernel> prepare_plan_rows(const KernelRequest& r, const Gpu& gpu) {
  const std::int64_t capacity = r.inputs[0].type.elements();
  return prepared(
      [gpu, capacity, most_kept = r.inputs[2].type.elements()](const KernelArguments& a) {
        Planned select{};
        select.unique = RowList(a, 0);
        select.kept = RowList(a, 2);
        select.kept_step = static_cast<const std::int64_t*>(a.inputs[4]);
        select.step = static_cast<const std::int64_t*>(a.inputs[5]);
        select.capacity = capacity;
        select.most_kept = most_kept;
        select.late = static_cast<std::int64_t*>(a.outputs[0]);
        select.late_count = static_cast<std::int32_t*>(a.outputs[1]);
        select.place = static_cast<std::int32_t*>(a.outputs[2]);
        select_in_order(*gpu, select, capacity + 1, a.workspace, a.queue);
      },
      select_bytes(capacity + 1));
}

}  // namespace

void add_rows_ahead(KernelList& list, const Gpu& gpu) {
  add_row_major(list, "cuda.rows_without", "RowsWithout", refuse_nothing,
                on(gpu, prepare_rows_without));
  add_row_major(list, "cuda.plan_rows", "PlanRows", refuse_nothing, on(gpu, prepare_plan_rows));
}

}  // namespace tandem::cuda
