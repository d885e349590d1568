// Attention in tiles: scores exist for 64 queries and 64 keys at a time, with the largest score and
// the sum of exponentials so far.
#include "kernels/cuda/networks/attention_tiles.h"

namespace tandem::cuda {
namespace {

using namespace networks;

template <class T>
struct ForwardBody {
  PlainAttention n;
  const void *q, *k, *v, *mask;
  T* y;                // null: not wanted
  float* log_sum_exp;  // null: not wanted
  std::int64_t items;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    for (std::int64_t item = block.index(); item < items; item += block.blocks()) {
      run(block, TileOfWork(n, item, n.value_size));
    }
  }

  template <class Block>
  TANDEM_HOST_DEVICE void run(Block& block, const TileOfWork& work) const {
    const Head<T> queries = head_of<T>(q, n.q, work.batch, work.head);
    const Head<T> keys = head_of<T>(k, n.k, work.batch, work.head);
    const Head<T> values = head_of<T>(v, n.v, work.batch, work.head);
    const Head<T> masks = head_of<T>(mask, n.mask, work.batch, work.head);
    float* const numbers = block.template shared<float>() + numbers_at;
    float* const largest = block.template shared<float>() + rows_at;
    float* const sums = largest + tile;
    float* const factors = sums + tile;
    float* const parts = factors + tile;
    float* const part_sums = parts + tile_threads;
    typename Block::template Private<Tile> sum, score;

    block.sync();  // readers of the item before are done
    block.each([&](int thread) {
      clear(sum, thread);
      if (thread < tile) largest[thread] = -infinity, sums[thread] = 0;
    });
    const std::int64_t last = work.first + tile < n.queries ? work.first + tile : n.queries;
    std::int64_t seen = n.keys;  // keys that the last query of the tile sees
    if (n.is_causal && last + n.keys - n.queries < seen) seen = last + n.keys - n.queries;
    for (std::int64_t key = 0; key < seen; key += tile) {
      block.each([&](int thread) { clear(score, thread); });
      add_row_products(block, score, queries, work.first, n.queries, keys, key, n.keys, n.key_size);
      block.each([&](int thread) {
        TANDEM_UNROLL
        for (int i = 0; i < each; ++i) {
          TANDEM_UNROLL
          for (int j = 0; j < each; ++j) {
            const int row = thread / side + i * side, column = thread % side + j * side;
            const std::int64_t query = work.first + row;
            numbers[row * number_row + column] =
                query < n.queries ? score_of(n, masks, query, key + column, score(thread).at[i][j])
                                  : -infinity;
          }
        }
      });
      block.sync();
      // Four threads for a row.
      block.each([&](int thread) {
        const float* from = numbers + thread / 4 * number_row + thread % 4 * side;
        float most = -infinity;
        for (int c = 0; c < side; ++c) most = from[c] > most || from[c] != from[c] ? from[c] : most;
        parts[thread] = most;
      });
      block.sync();
      block.each([&](int thread) {
        const int row = thread / 4;
        const float most = raised(largest[row], parts + row * 4);
        float* from = numbers + row * number_row + thread % 4 * side;
        float part = 0;
        for (int c = 0; c < side; ++c) {
          from[c] = most == -infinity ? 0.0f : std::exp(from[c] - most);
          part += from[c];
        }
        part_sums[thread] = part;
      });
      block.sync();
      block.each([&](int thread) {
        if (thread >= tile) return;
        const float most = raised(largest[thread], parts + thread * 4);
        const float* part = part_sums + thread * 4;
        factors[thread] = most == -infinity ? 0.0f : std::exp(largest[thread] - most);
        sums[thread] = sums[thread] * factors[thread] + (part[0] + part[1] + part[2] + part[3]);
        largest[thread] = most;
      });
      block.sync();
      block.each([&](int thread) {
        TANDEM_UNROLL
        for (int i = 0; i < each; ++i) {
          const float factor = factors[thread / side + i * side];
          TANDEM_UNROLL
          for (int j = 0; j < each; ++j) sum(thread).at[i][j] *= factor;
        }
      });
      add_number_products<false>(block, sum, values, key, n.keys, work.column, n.value_size);
    }
    block.sync();
    block.each([&](int thread) {
      const std::int64_t row = (work.batch * n.heads + work.head) * n.queries + work.first + thread;
      if (log_sum_exp != nullptr && work.column == 0 && thread < tile &&
          work.first + thread < n.queries) {
        const bool blind = largest[thread] == -infinity;
        log_sum_exp[row] = blind ? -infinity : largest[thread] + std::log(sums[thread]);
      }
      if (y == nullptr) return;
      T* const to = y + work.batch * n.y.batch + work.head * n.y.head;
      TANDEM_UNROLL
      for (int i = 0; i < each; ++i) {
        const int own = thread / side + i * side;
        if (work.first + own >= n.queries) continue;
        const bool blind = largest[own] == -infinity;
        TANDEM_UNROLL
        for (int j = 0; j < each; ++j) {
          const std::int64_t column = work.column + thread % side + j * side;
          if (column >= n.value_size) continue;
          to[(work.first + own) * n.y.row + column * n.y.column] =
              stored<T>(blind ? 0.0f : sum(thread).at[i][j] / sums[own]);
        }
      }
    });
  }

  /// The largest of what was before and four parts; NaN wins.
  TANDEM_HOST_DEVICE static float raised(float most, const float* parts) {
    for (int i = 0; i < 4; ++i) most = parts[i] > most || parts[i] != parts[i] ? parts[i] : most;
    return most;
  }
};

template <class T>
void run_forward(GpuContext& gpu, const PlainAttention& n, const AttentionAddresses& at,
                 void* queue) {
  const ForwardBody<T> body{n,
                            at.q,
                            at.k,
                            at.v,
                            at.mask,
                            static_cast<T*>(at.y),
                            at.log_sum_exp,
                            tiles_of_work(n, n.queries, n.value_size)};
  launch_tiles(gpu, "attention", body, queue);
}

}  // namespace

void run_attention(GpuContext& gpu, const PlainAttention& n, const AttentionAddresses& at,
                   void* queue) {
  with_float(n.dtype, [&](auto tag) { run_forward<decltype(tag)>(gpu, n, at, queue); });
}

}  // namespace tandem::cuda
