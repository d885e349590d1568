// Which rows of a table got a gradient in the micro-batches of a step: MarkRows sets a byte a row,
// TouchedRows lists the rows whose byte is set.
#include <utility>

#include "kernels/cuda/rows/ids.h"
#include "kernels/cuda/rows/row_lists.h"
#include "kernels/cuda/rows/select.h"
#include "kernels/shared/block/each_index.h"

namespace tandem::cuda {
namespace {

constexpr int block_threads = 256;

/// Ids of no row mark nothing; the lookup reports those that are none. Threads that mark the same
/// row write the same byte.
struct Mark {
  IdArray ids;
  std::int64_t count, rows;
  bool* marks;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    each_index(block, count, [&](std::int64_t i) {
      const std::int64_t id = ids.at(i), row = id < 0 ? id + rows : id;
      if (!ids.is_absent(id) && row >= 0 && row < rows) marks[row] = true;
    });
  }
};

std::unique_ptr<PreparedKernel> prepare_mark_rows(const KernelRequest& r, const Gpu& gpu) {
  std::vector<Mark> arrays;
  for (std::size_t i = 1; i < r.inputs.size(); ++i) {
    const TensorType& type = r.inputs[i].type;
    arrays.push_back({.ids = {nullptr, type.dtype == DType::int64},
                      .count = type.elements(),
                      .rows = r.inputs[0].type.elements(),
                      .marks = nullptr});
  }
  return prepared([gpu, arrays = std::move(arrays), first = r.attributes().flag("first"),
                   bytes = r.inputs[0].type.bytes()](const KernelArguments& a) {
    if (first)
      zero_bytes(*gpu, a.outputs[0], bytes, a.queue);
    else
      copy_bytes(*gpu, a.outputs[0], a.inputs[0], bytes, a.queue);
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      Mark body = arrays[k];
      if (body.count == 0) continue;
      body.ids.data = a.inputs[1 + k];
      body.marks = static_cast<bool*>(a.outputs[0]);
      const LaunchShape shape{.blocks = blocks_for(*gpu, body.count, block_threads),
                              .threads = block_threads};
      gpu->launch(launch_of("mark rows", shape, body), a.queue);
    }
  });
}

/// Groups as UniqueIndices makes them, for rows that each have one position: their own. Results
/// that are not read are null.
struct Touched {
  const bool* marks;
  std::int64_t rows;
  std::int64_t* unique;
  std::int32_t *order, *offsets, *count;

  TANDEM_HOST_DEVICE void note(std::int64_t) const {}
  TANDEM_HOST_DEVICE bool selected(std::int64_t i) const { return i < rows && marks[i]; }
  TANDEM_HOST_DEVICE void emit(std::int64_t i, bool picked, std::int64_t before,
                               std::int64_t all) const {
    if (picked && unique != nullptr) unique[before] = i;
    if (picked && order != nullptr) order[before] = static_cast<std::int32_t>(i);
    if (i >= all && i < rows) {
      if (unique != nullptr) unique[i] = -1;
      if (order != nullptr) order[i] = -1;
    }
    if (offsets != nullptr) offsets[i] = static_cast<std::int32_t>(i < all ? i : all);
    if (i == 0 && count != nullptr) *count = static_cast<std::int32_t>(all);
  }
};

std::unique_ptr<PreparedKernel> prepare_touched_rows(const KernelRequest& r, const Gpu& gpu) {
  const std::int64_t rows = r.inputs[0].type.elements();
  return prepared(
      [gpu, rows](const KernelArguments& a) {
        const Touched select{static_cast<const bool*>(a.inputs[0]),
                             rows,
                             static_cast<std::int64_t*>(a.outputs[UniqueOutputs::unique]),
                             static_cast<std::int32_t*>(a.outputs[UniqueOutputs::order]),
                             static_cast<std::int32_t*>(a.outputs[UniqueOutputs::offsets]),
                             static_cast<std::int32_t*>(a.outputs[UniqueOutputs::count])};
        select_in_order(*gpu, select, rows + 1, a.workspace, a.queue);
      },
      select_bytes(rows + 1));
}

}  // namespace

void add_marks(KernelList& list, const Gpu& gpu) {
  add_row_major(list, "cuda.mark_rows", "MarkRows", refuse_nothing, on(gpu, prepare_mark_rows));
  add_row_major(list, "cuda.touched_rows", "TouchedRows", refuse_nothing,
                on(gpu, prepare_touched_rows));
}

}  // namespace tandem::cuda
