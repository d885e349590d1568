// Queries that see no key, around a library's attention.
#include "kernels/cuda/launching.h"
#include "kernels/cuda/networks/attention_tiles.h"
#include "kernels/shared/block/each_index.h"

namespace tandem::cuda {
namespace {

using namespace networks;

/// A row that sees a key has no log_sum_exp below this, except under masks of numbers as low.
constexpr float lowest_sum = -1e30f;

/// A thread for a query. What a library makes of a row without a key is -infinity, NaN, or the
/// score that it gives to hidden keys.
template <class T>
struct MendRowsBody {
  PlainAttention n;
  const void* mask;
  T* y;
  float* log_sum_exp;
  std::int64_t rows;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    each_index(block, rows, [&](std::int64_t row) {
      if (log_sum_exp[row] > lowest_sum) return;
      const std::int64_t query = row % n.queries, head = row / n.queries % n.heads;
      const std::int64_t batch = row / n.queries / n.heads;
      const Head<T> masks = head_of<T>(mask, n.mask, batch, head);
      bool blind = true;
      for (std::int64_t key = 0; key < n.keys && blind; ++key) {
        blind = !is_seen(n, query, key) || masks(query, key) == -infinity;
      }
      if (!blind) return;  // a NaN of the operands stays one
      log_sum_exp[row] = -infinity;
      T* const to = y + batch * n.y.batch + head * n.y.head + query * n.y.row;
      for (std::int64_t c = 0; c < n.value_size; ++c) to[c * n.y.column] = stored<T>(0.0f);
    });
  }
};

struct MendSumsBody {
  std::int64_t rows;
  const float* from;
  float* to;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    each_index(block, rows,
               [&](std::int64_t row) { to[row] = from[row] == -infinity ? infinity : from[row]; });
  }
};

}  // namespace

void mend_blind_queries(GpuContext& gpu, const PlainAttention& n, const AttentionAddresses& at,
                        void* queue) {
  const std::int64_t rows = n.batch * n.heads * n.queries;
  if (rows == 0) return;
  with_float(n.dtype, [&](auto tag) {
    using T = decltype(tag);
    const MendRowsBody<T> body{n, at.mask, static_cast<T*>(at.y), at.log_sum_exp, rows};
    gpu.launch(launch_of("mend_blind_queries", spread(rows, gpu.properties.multiprocessors), body),
               queue);
  });
}

void mend_blind_sums(GpuContext& gpu, std::int64_t rows, const float* from, float* to,
                     void* queue) {
  if (rows == 0) return;
  const MendSumsBody body{rows, from, to};
  gpu.launch(launch_of("mend_blind_sums", spread(rows, gpu.properties.multiprocessors), body),
             queue);
}

}  // namespace tandem::cuda
