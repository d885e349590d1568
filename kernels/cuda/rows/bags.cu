// EmbeddingBag: sums of looked-up rows, in the order of their ids. Neighbouring threads share a
// bag; sums are in float32 whatever the element types are.

#include "kernels/cuda/launching.h"
#include "kernels/cuda/rows/ids.h"
#include "kernels/cuda/rows/lane_groups.h"
#include "kernels/cuda/rows/row_lists.h"
#include "kernels/cuda/updates/floats.h"
#include "kernels/shared/block/block.h"

namespace tandem::cuda {
namespace {

constexpr int block_threads = 128;
constexpr int rows_at_once = 4;

struct Bags {
  const void* table;
  IdArray ids;
  const void* weights;  // one for each id; null: 1
  void* y;
  std::int64_t rows, columns, bags, length;
  Floats table_type, weight_type, y_type;
  int lanes;
  IdReport report;
};

/// y[b] = sum over l of weights[b, l] table[ids[b, l]]; rows of weight 0 and absent ones are not
/// read. n columns at a time.
template <int n>
struct SumBags : Bags {
  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const int groups = block.threads() / lanes;
    block.each([&](int thread) {
      const int lane = thread % lanes;
      const std::int64_t stride = static_cast<std::int64_t>(block.blocks()) * groups;
      for (std::int64_t bag = static_cast<std::int64_t>(block.index()) * groups + thread / lanes;
           bag < bags; bag += stride) {
        for (std::int64_t c = lane * n; c < columns; c += lanes * n) {
          store<n>(y, y_type, bag * columns + c, sum(bag, c, c == 0));
        }
        if (columns == 0 && lane == 0) sum(bag, -1, true);
      }
    });
  }

  /// Sums columns [c, c + n) of a bag; no columns where c is below 0, only to report ids.
  TANDEM_HOST_DEVICE Values<n> sum(std::int64_t bag, std::int64_t c, bool reports) const {
    Values<n> all{};
    for (std::int64_t l = 0; l < length; l += rows_at_once) {
      Values<n> row[rows_at_once];
      float weight[rows_at_once];
      TANDEM_UNROLL
      for (int k = 0; k < rows_at_once; ++k) {
        row[k] = {};
        weight[k] = 0;
        if (l + k >= length) continue;
        const std::int64_t at = bag * length + l + k;
        const std::int64_t from = row_of(ids, at, rows, reports ? &report : nullptr);
        weight[k] = weights == nullptr ? 1.0f : load<1>(weights, weight_type, at).at[0];
        if (from < 0) weight[k] = 0;
        if (weight[k] != 0 && c >= 0) row[k] = load<n>(table, table_type, from * columns + c);
      }
      TANDEM_UNROLL
      for (int k = 0; k < rows_at_once; ++k) {
        TANDEM_UNROLL
        for (int i = 0; i < n; ++i) {
          if (weight[k] != 0) all.at[i] += weight[k] * row[k].at[i];
        }
      }
    }
    return all;
  }
};

template <int n>
void launch_bags(GpuContext& gpu, const Bags& bags, void* queue) {
  SumBags<n> body{bags};
  body.lanes = lanes_for((bags.columns + n - 1) / n);
  const LaunchShape shape{.blocks = blocks_for(gpu, bags.bags, block_threads / body.lanes, 16),
                          .threads = block_threads};
  gpu.launch(launch_of("sum bags", shape, body), queue);
}

std::unique_ptr<PreparedKernel> prepare_bags(const KernelRequest& r, const Gpu& gpu) {
  const TensorType &table = r.inputs[0].type, &ids = r.inputs[1].type;
  const bool weighted = r.is_present(2);
  Bags bags{};
  bags.ids.wide = ids.dtype == DType::int64;
  bags.rows = table.shape[0];
  bags.columns = row_elements(table.shape);
  bags.length = ids.shape.back();
  bags.bags = ids.elements() / bags.length;
  bags.table_type = *floats_of(table.dtype);
  bags.y_type = *floats_of(r.outputs[0].type.dtype);
  if (weighted) bags.weight_type = *floats_of(r.inputs[2].type.dtype);
  return prepared([=, node = r.node_index](const KernelArguments& a) {
    if (bags.bags == 0) return;
    Bags now = bags;
    now.table = a.inputs[0];
    now.ids.data = a.inputs[1];
    now.weights = weighted ? a.inputs[2] : nullptr;
    now.y = a.outputs[0];
    now.report = IdReport(a, node);
    const bool vector = bags.columns % 4 == 0 && is_aligned(now.y, 4 * size_of(bags.y_type)) &&
                        is_aligned(now.table, 4 * size_of(bags.table_type));
    (vector ? launch_bags<4> : launch_bags<1>)(*gpu, now, a.queue);
  });
}

}  // namespace

void add_bags(KernelList& list, const Gpu& gpu) {
  add_row_major(
      list, "cuda.embedding_bag", "EmbeddingBag",
      [](const KernelRequest& r) -> std::optional<std::string> {
        if (r.inputs[0].type.shape[0] == 0) return "a table without rows";
        const DType y = r.outputs[0].type.dtype;
        return is_short_float(y) ? refuse_but_floats(r, {0, 2}) : refused_type(y);
      },
      on(gpu, prepare_bags));
}

}  // namespace tandem::cuda
