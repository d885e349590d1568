// The gradient of attention in tiles: a block sums up queries or keys and is the only one to write
// them.
#include "kernels/cuda/launching.h"
#include "kernels/cuda/networks/attention_tiles.h"
#include "kernels/shared/block/lanes.h"
#include "kernels/shared/coarse_sums.h"

namespace tandem::cuda {
namespace {

using namespace networks;

/// For each query: delta = sum(dy y), and shift and factor in p = factor exp(score - shift).
struct OfRows {
  float *deltas, *shifts, *factors;

  OfRows(float* memory, std::int64_t rows)
      : deltas(memory), shifts(memory + rows), factors(memory + 2 * rows) {}
};

/// A warp for each query. Where log_sum_exp is coarse the lanes go through the keys.
template <class T>
struct RowsBody {
  PlainAttention n;
  const void *q, *k, *dy, *y, *mask;
  const float* log_sum_exp;
  OfRows results;
  std::int64_t rows;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    typename Block::template Private<float> sums;
    float* const largest = block.template shared<float>();  // largest score of each lane's keys
    float* const parts = largest + block.threads();
    const std::int64_t at_once = block.threads() / 32;
    const std::int64_t step = block.blocks() * at_once;
    for (std::int64_t first = block.index() * at_once; first < rows; first += step) {
      block.each([&](int thread) {
        const std::int64_t row = first + thread / 32;
        float sum = 0;
        if (row < rows) {
          const std::int64_t query = row % n.queries, head = row / n.queries;
          const Head<T> a = head_of<T>(dy, n.dy, head / n.heads, head % n.heads);
          const Head<T> b = head_of<T>(y, n.y, head / n.heads, head % n.heads);
          for (std::int64_t c = thread % 32; c < n.value_size; c += 32)
            sum += a(query, c) * b(query, c);
          if (is_coarse_sum(log_sum_exp[row]))
            add_keys(row, thread % 32, largest[thread], parts[thread]);
        }
        sums(thread) = sum;
      });
      sum_lanes(block, sums, 32);
      sync_lanes(block);
      block.each([&](int thread) {
        const std::int64_t row = first + thread / 32;
        if (thread % 32 != 0 || row >= rows) return;
        results.deltas[row] = sums(thread);
        results.shifts[row] = log_sum_exp[row];
        results.factors[row] = 1;
        if (is_coarse_sum(log_sum_exp[row])) join(row, largest + thread, parts + thread);
      });
      sync_lanes(block);
    }
  }

  /// The largest score of every 32nd key from `lane` on, and the sum of exponentials relative to
  /// it.
  TANDEM_HOST_DEVICE void add_keys(std::int64_t row, int lane, float& most, float& sum) const {
    const std::int64_t query = row % n.queries, head = row / n.queries;
    const Head<T> queries = head_of<T>(q, n.q, head / n.heads, head % n.heads);
    const Head<T> keys = head_of<T>(k, n.k, head / n.heads, head % n.heads);
    const Head<T> masks = head_of<T>(mask, n.mask, head / n.heads, head % n.heads);
    most = -infinity, sum = 0;
    for (std::int64_t key = lane; key < n.keys; key += 32) {
      float product = 0;
      for (std::int64_t c = 0; c < n.key_size; ++c) product += queries(query, c) * keys(key, c);
      const float score = score_of(n, masks, query, key, product);
      if (score == -infinity) continue;
      const float before = most;
      if (score > most || score != score) most = score;
      sum = sum * std::exp(before - most) + std::exp(score - most);
    }
  }

  /// Combines the parts of 32 lanes.
  TANDEM_HOST_DEVICE void join(std::int64_t row, const float* largest, const float* parts) const {
    float most = -infinity, sum = 0;
    for (int i = 0; i < 32; ++i)
      most = largest[i] > most || largest[i] != largest[i] ? largest[i] : most;
    for (int i = 0; i < 32; ++i)
      if (largest[i] != -infinity) sum += parts[i] * std::exp(largest[i] - most);
    results.shifts[row] = most;
    if (most != -infinity) results.factors[row] = 1 / sum;
  }
};

enum class Gradient { query, key, value };

/// dq = ds k, dk = ds^T q or dv = p^T dy, with ds = scale p (dy v^T - delta).
template <class T, Gradient which>
struct GradientBody {
  PlainAttention n;
  const void *q, *k, *v, *dy, *mask;
  OfRows of_rows;
  T* result;
  std::int64_t items;

  static constexpr bool of_queries = which == Gradient::query;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    for (std::int64_t item = block.index(); item < items; item += block.blocks()) {
      run(block, TileOfWork(n, item, which == Gradient::value ? n.value_size : n.key_size));
    }
  }

  template <class Block>
  TANDEM_HOST_DEVICE void run(Block& block, const TileOfWork& work) const {
    typename Block::template Private<Tile> sum;
    block.each([&](int thread) { clear(sum, thread); });
    const std::int64_t behind = n.keys - n.queries;  // keys that every query sees, and one more
    if (of_queries) {
      const std::int64_t last = work.first + tile < n.queries ? work.first + tile : n.queries;
      const std::int64_t seen = n.is_causal && last + behind < n.keys ? last + behind : n.keys;
      const Head<T> from = head_of<T>(k, n.k, work.batch, work.head);
      for (std::int64_t key = 0; key < seen; key += tile) {
        fill_numbers(block, work, work.first, key);
        add_number_products<false>(block, sum, from, key, n.keys, work.column, n.key_size);
      }
      write(block, work, sum, n.dq, n.queries, n.key_size);
    } else {
      std::int64_t query = 0;  // the first that sees the tile's first key
      if (n.is_causal && work.first > behind) query = (work.first - behind) / tile * tile;
      constexpr bool of_values = which == Gradient::value;
      const Head<T> from = of_values ? head_of<T>(dy, n.dy, work.batch, work.head)
                                     : head_of<T>(q, n.q, work.batch, work.head);
      const std::int64_t columns = of_values ? n.value_size : n.key_size;
      for (; query < n.queries; query += tile) {
        fill_numbers(block, work, query, work.first);
        add_number_products<true>(block, sum, from, query, n.queries, work.column, columns);
      }
      write(block, work, sum, of_values ? n.dv : n.dk, n.keys, columns);
    }
  }

  /// p or ds of 64 queries and 64 keys into shared memory.
  template <class Block>
  TANDEM_HOST_DEVICE void fill_numbers(Block& block, const TileOfWork& work,
                                       std::int64_t first_query, std::int64_t first_key) const {
    const Head<T> queries = head_of<T>(q, n.q, work.batch, work.head);
    const Head<T> keys = head_of<T>(k, n.k, work.batch, work.head);
    const Head<T> masks = head_of<T>(mask, n.mask, work.batch, work.head);
    const std::int64_t row0 = (work.batch * n.heads + work.head) * n.queries;
    float* const numbers = block.template shared<float>() + numbers_at;
    typename Block::template Private<Tile> score, dp;
    block.each([&](int thread) { clear(score, thread); });
    add_row_products(block, score, queries, first_query, n.queries, keys, first_key, n.keys,
                     n.key_size);
    if constexpr (which != Gradient::value) {
      const Head<T> gradients = head_of<T>(dy, n.dy, work.batch, work.head);
      const Head<T> values = head_of<T>(v, n.v, work.batch, work.head);
      block.each([&](int thread) { clear(dp, thread); });
      add_row_products(block, dp, gradients, first_query, n.queries, values, first_key, n.keys,
                       n.value_size);
    }
    block.each([&](int thread) {
      TANDEM_UNROLL
      for (int i = 0; i < each; ++i) {
        const int row = thread / side + i * side;
        const std::int64_t query = first_query + row;
        const bool inside = query < n.queries;
        const float shift = inside ? of_rows.shifts[row0 + query] : -infinity;
        const float factor = inside ? of_rows.factors[row0 + query] : 0.0f;
        const float centre =
            which != Gradient::value && inside ? of_rows.deltas[row0 + query] : 0.0f;
        TANDEM_UNROLL
        for (int j = 0; j < each; ++j) {
          const int column = thread % side + j * side;
          float number = 0;
          if (shift != -infinity) {
            const std::int64_t key = first_key + column;
            const float own = score_of(n, masks, query, key, score(thread).at[i][j]);
            number = factor * std::exp(own - shift);
            if constexpr (which != Gradient::value) {
              number =
                  is_seen(n, query, key) ? n.scale * number * (dp(thread).at[i][j] - centre) : 0.0f;
            }
          }
          numbers[row * number_row + column] = number;
        }
      }
    });
  }

  template <class Block>
  TANDEM_HOST_DEVICE void write(Block& block, const TileOfWork& work,
                                const typename Block::template Private<Tile>& sum,
                                const HeadMap& map, std::int64_t rows, std::int64_t columns) const {
    T* const to = result + work.batch * map.batch + work.head * map.head;
    block.each([&](int thread) {
      TANDEM_UNROLL
      for (int i = 0; i < each; ++i) {
        const std::int64_t row = work.first + thread / side + i * side;
        TANDEM_UNROLL
        for (int j = 0; j < each; ++j) {
          const std::int64_t column = work.column + thread % side + j * side;
          if (row < rows && column < columns) {
            to[row * map.row + column * map.column] = stored<T>(sum(thread).at[i][j]);
          }
        }
      }
    });
  }
};

template <class T, Gradient which>
void run_gradient(GpuContext& gpu, const char* name, const PlainAttention& n,
                  const AttentionAddresses& at, void* result, std::int64_t rows,
                  std::int64_t columns, void* queue) {
  if (result == nullptr) return;
  const GradientBody<T, which> body{n,
                                    at.q,
                                    at.k,
                                    at.v,
                                    at.dy,
                                    at.mask,
                                    OfRows(at.of_rows, n.batch * n.heads * n.queries),
                                    static_cast<T*>(result),
                                    tiles_of_work(n, rows, columns)};
  launch_tiles(gpu, name, body, queue);
}

template <class T>
void run_gradients(GpuContext& gpu, const PlainAttention& n, const AttentionAddresses& at,
                   void* queue) {
  const std::int64_t rows = n.batch * n.heads * n.queries;
  if (rows > 0) {
    const RowsBody<T> body{
        n,   at.q, at.k, at.dy, at.y_read, at.mask, at.log_sum_exp_read, OfRows(at.of_rows, rows),
        rows};
    LaunchShape shape = spread(rows * 32, gpu.properties.multiprocessors);
    shape.shared_bytes = 2 * shape.threads * sizeof(float);
    gpu.launch(launch_of("attention_rows", shape, body), queue);
  }
  run_gradient<T, Gradient::query>(gpu, "attention_grad_query", n, at, at.dq, n.queries, n.key_size,
                                   queue);
  run_gradient<T, Gradient::key>(gpu, "attention_grad_key", n, at, at.dk, n.keys, n.key_size,
                                 queue);
  run_gradient<T, Gradient::value>(gpu, "attention_grad_value", n, at, at.dv, n.keys, n.value_size,
                                   queue);
}

}  // namespace

void run_attention_gradient(GpuContext& gpu, const PlainAttention& n, const AttentionAddresses& at,
                            void* queue) {
  with_float(n.dtype, [&](auto tag) { run_gradients<decltype(tag)>(gpu, n, at, queue); });
}

}  // namespace tandem::cuda
