// The chains of products, sums and exponentials that cuDNN recognises as attention.
#include "kernels/cuda/networks/attention_graph.h"

#include <cassert>
#include <limits>

namespace tandem::cuda {
namespace {

// Where a key is hidden; below every score, and finite so that differences are.
constexpr float hidden_score = std::numeric_limits<float>::lowest();

class Builder {
 public:
  explicit Builder(const AttentionShape& shape)
      : n_(shape),
        type_(cudnn_type(shape.dtype)),
        scores_{n_.batch, n_.heads, n_.queries, n_.keys},
        rows_{n_.batch, n_.heads, n_.queries, 1} {}

  NetworkGraph forward() {
    const TensorId q = queries(n_.q, n_.key_size), k = keys_transposed(n_.k, n_.key_size);
    const TensorId v = keys(n_.v, n_.value_size), mask = mask_tensor();
    const TensorId y = queries(n_.y, n_.value_size);
    const TensorId log_sum_exp = g_.tensor(CUDNN_DATA_FLOAT, rows_, row_major(rows_).strides);
    const TensorId scores = scores_of(q, k, mask, g_.number(static_cast<float>(n_.scale), 4));

    const TensorId largest = row(), sum = row(), log_sum = row();
    const TensorId shifted = square(), exponentials = square(), p = g_.inside(type_, scores_);
    g_.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest);
    g_.pointwise(CUDNN_POINTWISE_SUB, scores, largest, shifted);
    g_.pointwise(CUDNN_POINTWISE_EXP, shifted, exponentials);
    g_.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sum);
    g_.pointwise(CUDNN_POINTWISE_LOG, sum, log_sum);
    g_.pointwise(CUDNN_POINTWISE_ADD, largest, log_sum, log_sum_exp);
    g_.pointwise(CUDNN_POINTWISE_DIV, exponentials, sum, p);
    g_.product(p, v, y);
    return std::move(g_);
  }

  // delta = sum(dy y); p = exp(scores - log_sum_exp); dv = p^T dy; ds = scale p (dy v^T - delta);
  // dk = ds^T q; dq = ds k
  NetworkGraph gradient() {
    const TensorId dy = queries(n_.dy, n_.value_size), q = queries(n_.q, n_.key_size);
    const TensorId k = keys_transposed(n_.k, n_.key_size);
    const TensorId v = keys_transposed(n_.v, n_.value_size);
    const TensorId y = queries(n_.y, n_.value_size);
    const TensorId log_sum_exp = g_.tensor(CUDNN_DATA_FLOAT, rows_, row_major(rows_).strides);
    const TensorId mask = mask_tensor();
    const TensorId dq = queries(n_.dq, n_.key_size), dk = keys(n_.dk, n_.key_size);
    const TensorId dv = keys(n_.dv, n_.value_size);
    const TensorId dq_sum = n_.is_deterministic
                                ? TensorId{}
                                : g_.tiled_sum({n_.batch, n_.heads, n_.queries, n_.key_size});
    const TensorId scale = g_.number(static_cast<float>(n_.scale), 4), one = g_.number(1, 4);

    const Shape values{n_.batch, n_.heads, n_.queries, n_.value_size};
    const TensorId products = g_.inside(CUDNN_DATA_FLOAT, values);
    const TensorId plain_delta = row(), delta = row();
    g_.pointwise(CUDNN_POINTWISE_MUL, dy, y, products);
    g_.reduce(CUDNN_REDUCE_TENSOR_ADD, products, plain_delta);
    g_.pointwise(CUDNN_POINTWISE_MUL, plain_delta, one, delta);

    const TensorId scores = scores_of(q, k, mask, scale);
    const TensorId shifted = square(), p = square();
    g_.pointwise(CUDNN_POINTWISE_SUB, scores, log_sum_exp, shifted);
    g_.pointwise(CUDNN_POINTWISE_EXP, shifted, p);
    g_.product(transposed(p), dy, dv);

    const TensorId dp = square(), kept = square(), centred = square(), weighted = square();
    const TensorId ds = square();
    g_.product(dy, v, dp);
    g_.pointwise(CUDNN_POINTWISE_MUL, dp, one, kept);
    g_.pointwise(CUDNN_POINTWISE_SUB, kept, delta, centred);
    g_.pointwise(CUDNN_POINTWISE_MUL, centred, p, weighted);
    g_.pointwise(CUDNN_POINTWISE_MUL, weighted, scale, ds);
    g_.product(transposed(ds), q, dk);

    const TensorId plain_k = g_.inside(type_, {n_.batch, n_.heads, n_.keys, n_.key_size}, n_.k);
    g_.reshape(k, plain_k);
    g_.product(ds, plain_k, dq_sum ? dq_sum : dq);
    if (dq_sum) g_.pointwise(CUDNN_POINTWISE_IDENTITY, dq_sum, dq);
    return std::move(g_);
  }

 private:
  TensorId queries(const std::vector<std::int64_t>& strides, std::int64_t columns) {
    return g_.tensor(type_, {n_.batch, n_.heads, n_.queries, columns}, strides);
  }
  TensorId keys(const std::vector<std::int64_t>& strides, std::int64_t columns) {
    return g_.tensor(type_, {n_.batch, n_.heads, n_.keys, columns}, strides);
  }
  TensorId keys_transposed(std::vector<std::int64_t> strides, std::int64_t columns) {
    std::swap(strides[2], strides[3]);
    return g_.tensor(type_, {n_.batch, n_.heads, columns, n_.keys}, strides);
  }
  TensorId mask_tensor() {
    return n_.mask.empty() ? TensorId{} : g_.tensor(type_, n_.mask, n_.mask_strides);
  }
  TensorId square() { return g_.inside(CUDNN_DATA_FLOAT, scores_); }
  TensorId row() { return g_.inside(CUDNN_DATA_FLOAT, rows_); }

  TensorId transposed(TensorId x) {
    const std::int64_t head = n_.queries * n_.keys;
    const TensorId y = g_.inside(type_, {n_.batch, n_.heads, n_.keys, n_.queries},
                                 {n_.heads * head, head, 1, n_.keys});
    g_.reshape(x, y);
    return y;
  }

  // scale * q k^T + mask, and `hidden_score` at keys that come after their query.
  TensorId scores_of(TensorId q, TensorId k, TensorId mask, TensorId scale) {
    TensorId scores = square();
    const TensorId plain = square();
    g_.product(q, k, plain);
    g_.pointwise(CUDNN_POINTWISE_MUL, plain, scale, scores);
    if (mask) {
      const TensorId sum = square();
      g_.pointwise(CUDNN_POINTWISE_ADD, scores, mask, sum);
      scores = sum;
    }
    if (!n_.is_causal) return scores;
    assert(n_.queries == n_.keys);
    const TensorId query = g_.inside(CUDNN_DATA_INT32, scores_);
    const TensorId key = g_.inside(CUDNN_DATA_INT32, scores_);
    const TensorId is_seen = g_.inside(CUDNN_DATA_BOOLEAN, scores_);
    const TensorId hidden = g_.number(hidden_score, 4), chosen = square();
    g_.index(2, scores, query);
    g_.index(3, scores, key);
    g_.pointwise(CUDNN_POINTWISE_CMP_GE, query, key, is_seen, CUDNN_DATA_BOOLEAN);
    g_.select(is_seen, scores, hidden, chosen);
    return chosen;
  }

  const AttentionShape& n_;
  const cudnnDataType_t type_;
  const Shape scores_, rows_;
  NetworkGraph g_;
};

}  // namespace

AttentionShape dense_attention(DType dtype, std::int64_t batch, std::int64_t heads,
                               std::int64_t queries, std::int64_t keys, std::int64_t key_size,
                               std::int64_t value_size) {
  AttentionShape n{.dtype = dtype,
                   .batch = batch,
                   .heads = heads,
                   .queries = queries,
                   .keys = keys,
                   .key_size = key_size,
                   .value_size = value_size};
  const auto strides = [&](std::int64_t rows, std::int64_t columns) {
    return row_major({batch, heads, rows, columns}).strides;
  };
  n.q = n.dq = strides(queries, key_size);
  n.k = n.dk = strides(keys, key_size);
  n.v = n.dv = strides(keys, value_size);
  n.y = n.dy = strides(queries, value_size);
  return n;
}

NetworkGraph attention_graph(const AttentionShape& shape) { return Builder(shape).forward(); }
NetworkGraph attention_gradient_graph(const AttentionShape& shape) {
  return Builder(shape).gradient();
}

}  // namespace tandem::cuda
