// Attention and its gradient, one query at a time. A query that sees no key gives 0 and takes no
// gradient.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/network_support.h"
#include "kernels/shared/coarse_sums.h"
#include "kernels/shared/scalar.h"

namespace tandem::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Strides of an operand [B, H, rows, columns].
struct AttentionMatrices {
  std::int64_t b = 0, h = 0, row = 0, column = 0;

  AttentionMatrices() = default;
  explicit AttentionMatrices(const Operand& operand)
      : AttentionMatrices(operand, operand.type.shape) {}
  AttentionMatrices(const Operand& operand, const Shape& over) {
    const Places places(operand, over);
    b = places.stride(0), h = places.stride(1), row = places.stride(2), column = places.stride(3);
  }
  std::int64_t operator()(std::int64_t i, std::int64_t j, std::int64_t r, std::int64_t c) const {
    return i * b + j * h + r * row + c * column;
  }
};

/// What forward and gradient share: sizes, and the scores of one query.
struct Problem {
  std::int64_t batch, heads, queries, keys, key_size, value_size;
  AttentionMatrices q, k, v, mask;
  std::size_t first, mask_input;  // q, k, v at first, first + 1, first + 2
  bool masked, causal;
  double scale;

  Problem(const KernelRequest& r, std::size_t first_input, std::size_t mask_at)
      : q(r.inputs[first_input]),
        k(r.inputs[first_input + 1]),
        v(r.inputs[first_input + 2]),
        first(first_input),
        mask_input(mask_at),
        masked(r.is_present(mask_at)),
        causal(r.attributes().flag("causal")),
        scale(r.attributes().number("scale")) {
    const Shape& q_shape = r.inputs[first].type.shape;
    const Shape& v_shape = r.inputs[first + 2].type.shape;
    batch = q_shape[0], heads = q_shape[1], queries = q_shape[2], key_size = q_shape[3];
    keys = v_shape[2], value_size = v_shape[3];
    if (masked) mask = AttentionMatrices(r.inputs[mask_at], {batch, heads, queries, keys});
  }

  /// scale * q k^T + mask of query i into `scores`; -infinity where a key is hidden.
  template <class T>
  void scores_of(const KernelArguments& a, std::int64_t n, std::int64_t h, std::int64_t i,
                 double* scores) const {
    const T* qs = static_cast<const T*>(a.inputs[first]);
    const T* ks = static_cast<const T*>(a.inputs[first + 1]);
    for (std::int64_t j = 0; j < keys; ++j) {
      double sum = 0;
      for (std::int64_t d = 0; d < key_size; ++d) {
        sum += static_cast<double>(qs[q(n, h, i, d)]) * static_cast<double>(ks[k(n, h, j, d)]);
      }
      scores[j] = scale * sum;
      if (masked) {
        scores[j] +=
            static_cast<double>(static_cast<const T*>(a.inputs[mask_input])[mask(n, h, i, j)]);
      }
      if (causal && j > i + keys - queries) scores[j] = -infinity;
    }
  }

  /// exp(score - log_sum_exp) in the place of each score, 0 where the query sees no key.
  void probabilities(double* scores, double log_sum_exp) const {
    double shift = log_sum_exp, sum = 1;
    if (is_coarse_sum(log_sum_exp)) {
      shift = -infinity, sum = 0;
      for (std::int64_t j = 0; j < keys; ++j) shift = scalar::maximum(shift, scores[j]);
      for (std::int64_t j = 0; j < keys; ++j) sum += std::exp(scores[j] - shift);
    }
    for (std::int64_t j = 0; j < keys; ++j)
      scores[j] = shift == -infinity ? 0 : std::exp(scores[j] - shift) / sum;
  }

  /// f(n, h, i, row) for all queries; row counts them.
  template <class F>
  void for_queries(F f) const {
    std::int64_t row = 0;
    for (std::int64_t n = 0; n < batch; ++n) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t i = 0; i < queries; ++i) f(n, h, i, row++);
      }
    }
  }
};

constexpr auto attention_forward = []<class T>(const KernelRequest& r, T) {
  const Problem p(r, 0, 3);
  const AttentionMatrices y(r.outputs[0]);
  const Writer log_sum_exp(r.outputs[1]);
  return prepared(
      [=](const KernelArguments& a) {
        double* scores = static_cast<double*>(a.workspace);
        const T* vs = static_cast<const T*>(a.inputs[2]);
        p.for_queries([&](auto n, auto h, auto i, auto row) {
          p.scores_of<T>(a, n, h, i, scores);
          double largest = -infinity, sum = 0;
          for (std::int64_t j = 0; j < p.keys; ++j) largest = scalar::maximum(largest, scores[j]);
          const bool blind = largest == -infinity;
          for (std::int64_t j = 0; j < p.keys; ++j) {
            scores[j] = blind ? 0 : std::exp(scores[j] - largest);
            sum += scores[j];
          }
          log_sum_exp(a.outputs[1], row, blind ? -infinity : largest + std::log(sum));
          if (a.outputs[0] == nullptr) return;
          for (std::int64_t e = 0; e < p.value_size; ++e) {
            double value = 0;
            for (std::int64_t j = 0; j < p.keys; ++j) {
              value += scores[j] * static_cast<double>(vs[p.v(n, h, j, e)]);
            }
            static_cast<T*>(a.outputs[0])[y(n, h, i, e)] = rounded<T>(blind ? 0 : value / sum);
          }
        });
      },
      static_cast<std::size_t>(p.keys) * sizeof(double));
};

constexpr auto attention_gradient = []<class T>(const KernelRequest& r, T) {
  const Problem p(r, 1, 6);
  const AttentionMatrices dy(r.inputs[0]), y(r.inputs[4]);
  const AttentionMatrices dq(r.outputs[0]), dk(r.outputs[1]), dv(r.outputs[2]);
  const Reader log_sum_exp(r.inputs[5]);
  // Scores of one query, then the sums of dk and dv of one head, then dq of one query.
  const std::int64_t dk_at = p.keys, dv_at = dk_at + p.keys * p.key_size;
  const std::int64_t dq_at = dv_at + p.keys * p.value_size, total = dq_at + p.key_size;
  return prepared(
      [=](const KernelArguments& a) {
        double* const scores = static_cast<double*>(a.workspace);
        double* const dk_sum = scores + dk_at;
        double* const dv_sum = scores + dv_at;
        double* const dq_sum = scores + dq_at;
        const auto at = [&](std::size_t input, std::int64_t place) {
          return static_cast<double>(static_cast<const T*>(a.inputs[input])[place]);
        };
        const auto put = [&](std::size_t output, std::int64_t place, double value) {
          if (a.outputs[output]) static_cast<T*>(a.outputs[output])[place] = rounded<T>(value);
        };
        p.for_queries([&](auto n, auto h, auto i, auto row) {
          if (i == 0) std::fill(dk_sum, dq_sum, 0.0);
          std::fill(dq_sum, dq_sum + p.key_size, 0.0);
          p.scores_of<T>(a, n, h, i, scores);
          const double lse = log_sum_exp.number(a.inputs[5], row);
          double delta = 0;  // sum over keys of p * dp
          for (std::int64_t e = 0; e < p.value_size; ++e) {
            delta += at(0, dy(n, h, i, e)) * at(4, y(n, h, i, e));
          }
          p.probabilities(scores, lse);
          for (std::int64_t j = 0; j < p.keys && lse != -infinity; ++j) {
            const double probability = scores[j];
            double dp = 0;
            for (std::int64_t e = 0; e < p.value_size; ++e) {
              dp += at(0, dy(n, h, i, e)) * at(3, p.v(n, h, j, e));
              dv_sum[j * p.value_size + e] += probability * at(0, dy(n, h, i, e));
            }
            const double ds = p.scale * probability * (dp - delta);
            for (std::int64_t d = 0; d < p.key_size; ++d) {
              dq_sum[d] += ds * at(2, p.k(n, h, j, d));
              dk_sum[j * p.key_size + d] += ds * at(1, p.q(n, h, i, d));
            }
          }
          for (std::int64_t d = 0; d < p.key_size; ++d) put(0, dq(n, h, i, d), dq_sum[d]);
          if (i + 1 < p.queries) return;
          for (std::int64_t j = 0; j < p.keys; ++j) {
            for (std::int64_t d = 0; d < p.key_size; ++d) {
              put(1, dk(n, h, j, d), dk_sum[j * p.key_size + d]);
            }
            for (std::int64_t e = 0; e < p.value_size; ++e) {
              put(2, dv(n, h, j, e), dv_sum[j * p.value_size + e]);
            }
          }
        });
      },
      static_cast<std::size_t>(total) * sizeof(double));
};

}  // namespace

void add_attention(KernelList& list) {
  list.push_back(any_float_kernel("reference.attention", "Attention", attention_forward));
  list.push_back(float_kernel("reference.attention_grad", "AttentionGrad", attention_gradient, 1));
}

}  // namespace tandem::reference
