// SplitIds: each id either to the table or to the cache of some of its rows. GatherAdd: the sum of
// what both give.

#include "engine/operators/tables/split_ids.h"
#include "kernels/cuda/launching.h"
#include "kernels/cuda/rows/ids.h"
#include "kernels/cuda/rows/lane_groups.h"
#include "kernels/cuda/rows/row_lists.h"
#include "kernels/cuda/updates/floats.h"
#include "kernels/shared/block/each_index.h"

namespace tandem::cuda {
namespace {

constexpr int block_threads = 256;

TANDEM_HOST_DEVICE int bits_in(std::uint64_t word) {
#if defined(__CUDA_ARCH__)
  return __popcll(word);
#else
  return __builtin_popcountll(word);
#endif
}

/// What SplitId gives for every id (engine/operators/tables/split_ids.h); results that are not
/// read are null.
template <class Id>
struct SplitAll {
  const Id* ids;
  const std::int64_t* marks;
  const std::int32_t* ranks;
  Id* cold;
  std::int32_t* hot;
  std::int64_t count, rows;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    each_index(block, count, [&](std::int64_t i) {
      const Id id = ids[i];
      const std::int32_t place = cached(id);
      if (cold != nullptr) cold[i] = place < 0 ? id : absent_id<Id>;
      if (hot != nullptr) hot[i] = place < 0 ? absent_narrow : place;
    });
  }

  TANDEM_HOST_DEVICE std::int32_t cached(Id id) const {
    const std::int64_t row = id < 0 ? static_cast<std::int64_t>(id) + rows : std::int64_t{id};
    if (id == absent_id<Id> || row < 0 || row >= rows) return -1;
    const auto word = static_cast<std::uint64_t>(marks[row / 64]);
    const std::uint64_t bit = std::uint64_t{1} << (row % 64);
    if ((word & bit) == 0) return -1;
    return ranks[row / 64] + bits_in(word & (bit - 1));
  }
};

template <class Id>
void launch_split(GpuContext& gpu, const KernelArguments& a, std::int64_t count,
                  std::int64_t rows) {
  const SplitAll<Id> body{static_cast<const Id*>(a.inputs[0]),
                          static_cast<const std::int64_t*>(a.inputs[1]),
                          static_cast<const std::int32_t*>(a.inputs[2]),
                          static_cast<Id*>(a.outputs[0]),
                          static_cast<std::int32_t*>(a.outputs[1]),
                          count,
                          rows};
  gpu.launch(
      launch_of("split ids",
                {.blocks = blocks_for(gpu, count, block_threads), .threads = block_threads}, body),
      a.queue);
}

/// y[i] = base[i] + row indices[i] of x, or base[i] where the index is absent; n elements at a
/// time. All of one type.
struct AddRows {
  const void *base, *x;
  IdArray indices;
  void* y;
  std::int64_t count, rows, columns;
  Floats type;
  int lanes;
  IdReport report;
};
template <int n>
struct AddRowsBy : AddRows {
  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int groups = block.threads() / lanes;
    const std::int64_t stride = static_cast<std::int64_t>(block.blocks()) * groups;
    block.each([&](int thread) {
      const int lane = thread % lanes;
      for (std::int64_t i = static_cast<std::int64_t>(block.index()) * groups + thread / lanes;
           i < count; i += stride) {
        const std::int64_t row = row_of(indices, i, rows, lane == 0 ? &report : nullptr);
        if (row < 0 && y == base) continue;
        for (std::int64_t c = lane * n; c < columns; c += lanes * n) {
          Values<n> sum = load<n>(base, type, i * columns + c);
          if (row >= 0) {
            const Values<n> more = load<n>(x, type, row * columns + c);
            for (int k = 0; k < n; ++k) sum.at[k] += more.at[k];
          }
          store<n>(y, type, i * columns + c, sum);
        }
      }
    });
  }
};

template <int n>
void launch_sums(GpuContext& gpu, const AddRows& rows, void* queue) {
  AddRowsBy<n> body{rows};
  body.lanes = lanes_for((rows.columns + n - 1) / n);
  const LaunchShape shape{.blocks = blocks_for(gpu, rows.count, block_threads / body.lanes),
                          .threads = block_threads};
  gpu.launch(launch_of("add rows", shape, body), queue);
}

std::unique_ptr<PreparedKernel> prepare_gather_add(const KernelRequest& r, const Gpu& gpu) {
  const TensorType &x = r.inputs[1].type, &indices = r.inputs[2].type;
  AddRows rows{};
  rows.indices.wide = indices.dtype == DType::int64;
  rows.count = indices.elements();
  rows.rows = x.shape[0];
  rows.columns = row_elements(x.shape);
  rows.type = *floats_of(x.dtype);
  return prepared([=, node = r.node_index](const KernelArguments& a) {
    if (rows.count == 0) return;
    AddRows now = rows;
    now.base = a.inputs[0];
    now.x = a.inputs[1];
    now.indices.data = a.inputs[2];
    now.y = a.outputs[0];
    now.report = IdReport(a, node);
    const int bytes = 4 * size_of(rows.type);
    const bool vector = rows.columns % 4 == 0 && is_aligned(now.base, bytes) &&
                        is_aligned(now.x, bytes) && is_aligned(now.y, bytes);
    (vector ? launch_sums<4> : launch_sums<1>)(*gpu, now, a.queue);
  });
}

}  // namespace

void add_cached_rows(KernelList& list, const Gpu& gpu) {
  add_row_major(list, "cuda.split_ids", "SplitIds", refuse_nothing, [gpu](const KernelRequest& r) {
    const TensorType& ids = r.inputs[0].type;
    return prepared([gpu, rows = r.attributes().integer("rows"), count = ids.elements(),
                     wide = ids.dtype == DType::int64](const KernelArguments& a) {
      if (count == 0) return;
      const auto launch = wide ? launch_split<std::int64_t> : launch_split<std::int32_t>;
      launch(*gpu, a, count, rows);
    });
  });
  add_row_major(list, "cuda.gather_add", "GatherAdd", only_floats({0}),
                on(gpu, prepare_gather_add));
}

}  // namespace tandem::cuda
