// Attention and its gradient. One thread does a whole (batch, head): blocks of queries against
// blocks of keys, with a running maximum and sum, so that scores exist for one block only. q, k, v
// are read where they are.
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "engine/operators/operator.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/pointwise/vector_functions.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/strided.h"
#include "kernels/shared/coarse_sums.h"

namespace tandem {
namespace {

constexpr std::int64_t query_block = 64, key_block = 256;
constexpr float infinity = std::numeric_limits<float>::infinity();

// Strides of [B, H, rows, columns]; columns have stride 1.
struct Heads {
  std::int64_t b = 0, h = 0, row = 0;

  Heads() = default;
  explicit Heads(const Operand& operand) {
    if (!operand.present) return;
    const auto strides = strides_over(operand, operand.type.shape);
    b = strides[0], h = strides[1];
    row = operand.layout.strides[2];
  }
  std::int64_t at(std::int64_t batch, std::int64_t head) const { return batch * b + head * h; }
};

// Rows of the operand are contiguous and do not overlap.
bool has_rows(const Operand& operand) {
  const Shape& shape = operand.type.shape;
  const Layout& layout = operand.layout;
  if (!layout.is_strided() || layout.strides.size() != 4) return false;
  return (shape[3] == 1 || layout.strides[3] == 1) &&
         (shape[2] == 1 || layout.strides[2] >= shape[3]);
}

struct Problem {
  std::int64_t batch, heads, queries, keys, key_size, value_size;
  Heads q, k, v;
  std::vector<std::int64_t> mask_strides;  // over [B, H, S, T]; empty without a mask
  std::size_t mask_input;
  bool causal;
  float scale;
  int parts;

  Problem(const KernelRequest& r, std::size_t first, std::size_t mask_at)
      : q(r.inputs[first]),
        k(r.inputs[first + 1]),
        v(r.inputs[first + 2]),
        mask_input(mask_at),
        causal(r.attributes().flag("causal")),
        scale(static_cast<float>(r.attributes().number("scale"))) {
    const Shape& q_shape = r.inputs[first].type.shape;
    const Shape& v_shape = r.inputs[first + 2].type.shape;
    batch = q_shape[0], heads = q_shape[1], queries = q_shape[2], key_size = q_shape[3];
    keys = v_shape[2], value_size = v_shape[3];
    if (r.is_present(mask_at))
      mask_strides = strides_over(r.inputs[mask_at], {batch, heads, queries, keys});
    const std::int64_t flops = 2 * batch * heads * queries * keys * (key_size + value_size);
    parts = static_cast<int>(std::min<std::int64_t>(parts_for(r.facts->threads, flops, grain_flops),
                                                    std::max<std::int64_t>(batch * heads, 1)));
  }

  /// Keys from 0 that query i sees.
  std::int64_t visible(std::int64_t i) const {
    return causal ? std::clamp<std::int64_t>(i + keys - queries + 1, 0, keys) : keys;
  }

  /// The mask of query i from key `first` on, or null; through `buffer` where it is not contiguous.
  const float* mask_row(const KernelArguments& a, std::int64_t n, std::int64_t h, std::int64_t i,
                        std::int64_t first, std::int64_t count, float* buffer) const {
    if (mask_strides.empty()) return nullptr;
    const std::int64_t step = mask_strides[3];
    const float* mask = static_cast<const float*>(a.inputs[mask_input]) + n * mask_strides[0] +
                        h * mask_strides[1] + i * mask_strides[2] + first * step;
    if (step == 1) return mask;
    for (std::int64_t j = 0; j < count; ++j) buffer[j] = mask[j * step];
    return buffer;
  }
};

// The product plans of each shape of block; m queries, n keys.
struct BlockPlans {
  GemmPlan scores;           // [m, n] = q [m, D] k^T
  GemmPlan values;           // [m, E] = p [m, n] v
  GemmPlan dvalues;          // dv [n, E] = p^T dy
  GemmPlan dprobabilities;   // [m, n] = dy [m, E] v^T
  GemmPlan dqueries, dkeys;  // dq [m, D] = ds k; dk [n, D] = ds^T q
};

class PlanTable {
 public:
  PlanTable(const Problem& p, Isa isa, bool gradient, const Heads& y_or_dy, const Heads& dq,
            const Heads& dk, const Heads& dv) {
    std::map<std::pair<std::int64_t, std::int64_t>, int> known;
    key_blocks_ = (p.keys + key_block - 1) / key_block;
    const std::int64_t d = p.key_size, e = p.value_size, ld = key_block;
    for (std::int64_t i = 0; i < p.queries; i += query_block) {
      const std::int64_t m = std::min(query_block, p.queries - i);
      const std::int64_t seen = p.visible(i + m - 1);
      for (std::int64_t j = 0; j < p.keys; j += key_block) {
        const std::int64_t n = std::min(key_block, seen - j);
        if (n <= 0) {
          index_.push_back(-1);
          continue;
        }
        const auto [place, fresh] = known.try_emplace({m, n}, static_cast<int>(plans_.size()));
        index_.push_back(place->second);
        if (!fresh) continue;
        BlockPlans b;
        b.scores = plan({m, n, d, p.q.row, 1, 1, p.k.row, ld, 1}, isa);
        if (!gradient) {
          b.values = plan({m, e, n, ld, 1, p.v.row, 1, y_or_dy.row, 1}, isa);
        } else {
          b.dvalues = plan({n, e, m, 1, ld, y_or_dy.row, 1, dv.row, 1}, isa);
          b.dprobabilities = plan({m, n, e, y_or_dy.row, 1, 1, p.v.row, ld, 1}, isa);
          b.dqueries = plan({m, d, n, ld, 1, p.k.row, 1, dq.row, 1}, isa);
          b.dkeys = plan({n, d, m, 1, ld, p.q.row, 1, dk.row, 1}, isa);
        }
        plans_.push_back(b);
      }
    }
  }

  const BlockPlans& at(std::int64_t query, std::int64_t key) const {
    return plans_[static_cast<std::size_t>(
        index_[query / query_block * key_blocks_ + key / key_block])];
  }
  std::size_t workspace_bytes() const { return (workspace_ + 63) / 64 * 64; }

 private:
  GemmPlan plan(const GemmShape& shape, Isa isa) {
    GemmPlan result = plan_gemm(shape, 1, isa);
    workspace_ = std::max(workspace_, result.workspace_bytes());
    return result;
  }

  std::vector<BlockPlans> plans_;
  std::vector<int> index_;
  std::int64_t key_blocks_ = 1;
  std::size_t workspace_ = 0;
};

void product(const GemmPlan& plan, const float* a, const float* b, float* c, float alpha,
             bool accumulate, void* workspace) {
  run_gemm(plan, {.a = a, .b = b, .c = c, .alpha = alpha, .accumulate = accumulate}, workspace);
}

// Workspace of a part: blocks of scores [query_block, key_block], one mask row, per-query numbers,
// products.
constexpr std::size_t block_bytes = query_block * key_block * sizeof(float);
constexpr std::size_t row_bytes = (key_block + 4 * query_block) * sizeof(float);

class Forward final : public PreparedKernel {
 public:
  explicit Forward(const KernelRequest& r)
      : p_(r, 0, 3),
        y_(r.outputs[0]),
        functions_(vector_functions(r)),
        plans_(p_, isa_of(*r.facts), false, y_, {}, {}, {}) {
    part_bytes_ = block_bytes + row_bytes + plans_.workspace_bytes();
    workspace_bytes = part_bytes_ * static_cast<std::size_t>(p_.parts);
  }

  void run(const KernelArguments& a) noexcept override {
    parallel_parts(p_.parts, [&](int part) {
      char* workspace =
          static_cast<char*>(a.workspace) + static_cast<std::size_t>(part) * part_bytes_;
      const Range range = part_of(p_.batch * p_.heads, part, p_.parts);
      for (std::int64_t i = range.begin; i < range.end; ++i)
        run_head(a, i / p_.heads, i % p_.heads, workspace);
    });
  }

 private:
  void run_head(const KernelArguments& a, std::int64_t n, std::int64_t h, char* workspace) const {
    const auto in = [&](int i) { return static_cast<const float*>(a.inputs[i]); };
    float* scores = reinterpret_cast<float*>(workspace);
    float* mask_buffer = reinterpret_cast<float*>(workspace + block_bytes);
    float* largest = mask_buffer + key_block;
    float* sums = largest + query_block;
    void* products = workspace + block_bytes + row_bytes;
    const float *q = in(0) + p_.q.at(n, h), *k = in(1) + p_.k.at(n, h), *v = in(2) + p_.v.at(n, h);
    float* y = static_cast<float*>(a.outputs[0]) + y_.at(n, h);
    float* log_sums = static_cast<float*>(a.outputs[1]);
    if (log_sums != nullptr) log_sums += (n * p_.heads + h) * p_.queries;
    for (std::int64_t i = 0; i < p_.queries; i += query_block) {
      const std::int64_t m = std::min(query_block, p_.queries - i);
      const std::int64_t seen = p_.visible(i + m - 1);
      for (std::int64_t r = 0; r < m; ++r) largest[r] = -infinity, sums[r] = 0;
      for (std::int64_t j = 0; j < seen; j += key_block) {
        const std::int64_t count = std::min(key_block, seen - j);
        const BlockPlans& plans = plans_.at(i, j);
        product(plans.scores, q + i * p_.q.row, k + j * p_.k.row, scores, p_.scale, false,
                products);
        for (std::int64_t r = 0; r < m; ++r) {
          float* row = scores + r * key_block;
          const std::int64_t own = std::clamp<std::int64_t>(p_.visible(i + r) - j, 0, count);
          const float before = largest[r];
          const float sum = own == 0 ? 0.0f
                                     : functions_.online_softmax(
                                           row, p_.mask_row(a, n, h, i + r, j, own, mask_buffer),
                                           own, &largest[r]);
          std::memset(row + own, 0, static_cast<std::size_t>(count - own) * sizeof(float));
          if (j > 0 && largest[r] != before) {
            const float factor = std::exp(before - largest[r]);
            sums[r] *= factor;
            functions_.scale(y + (i + r) * y_.row, factor, p_.value_size);
          }
          sums[r] += sum;
        }
        product(plans.values, scores, v + j * p_.v.row, y + i * y_.row, 1, j > 0, products);
      }
      for (std::int64_t r = 0; r < m; ++r) {
        float* row = y + (i + r) * y_.row;
        const bool blind = largest[r] == -infinity;
        if (blind)
          std::memset(row, 0, static_cast<std::size_t>(p_.value_size) * sizeof(float));
        else
          functions_.scale(row, 1 / sums[r], p_.value_size);
        if (log_sums != nullptr)
          log_sums[i + r] = blind ? -infinity : largest[r] + std::log(sums[r]);
      }
    }
  }

  Problem p_;
  Heads y_;
  const VectorFunctions& functions_;
  PlanTable plans_;
  std::size_t part_bytes_ = 0;
};

// ds = scale p (dy v^T - sum(dy y)), p = exp(scale q k^T + mask - log_sum_exp).
class Backward final : public PreparedKernel {
 public:
  explicit Backward(const KernelRequest& r)
      : p_(r, 1, 6),
        dy_(r.inputs[0]),
        y_(r.inputs[4]),
        dq_(r.outputs[0]),
        dk_(r.outputs[1]),
        dv_(r.outputs[2]),
        functions_(vector_functions(r)),
        plans_(p_, isa_of(*r.facts), true, dy_, rows_or_dense(dq_, p_.key_size),
               rows_or_dense(dk_, p_.key_size), rows_or_dense(dv_, p_.value_size)) {
    part_bytes_ = 2 * block_bytes + row_bytes + plans_.workspace_bytes();
    workspace_bytes = part_bytes_ * static_cast<std::size_t>(p_.parts);
  }

  void run(const KernelArguments& a) noexcept override {
    parallel_parts(p_.parts, [&](int part) {
      char* workspace =
          static_cast<char*>(a.workspace) + static_cast<std::size_t>(part) * part_bytes_;
      const Range range = part_of(p_.batch * p_.heads, part, p_.parts);
      for (std::int64_t i = range.begin; i < range.end; ++i)
        run_head(a, i / p_.heads, i % p_.heads, workspace);
    });
  }

 private:
  static Heads rows_or_dense(Heads heads, std::int64_t columns) {
    if (heads.row == 0) heads.row = columns;  // it is not read, or is a single row
    return heads;
  }

  static void clear(float* x, std::int64_t rows, std::int64_t stride, std::int64_t n) {
    if (x == nullptr) return;
    for (std::int64_t r = 0; r < rows; ++r) {
      std::memset(x + r * stride, 0, static_cast<std::size_t>(n) * sizeof(float));
    }
  }

  static bool is_coarse_block(const float* log_sums, std::int64_t m) {
    bool coarse = false;
    for (std::int64_t r = 0; r < m; ++r) coarse |= is_coarse_sum(log_sums[r]);
    return coarse;
  }

  /// For m queries from i on: shift and factor of p = factor exp(score - shift), from log_sum_exp
  /// where that is fine, else from the largest score and its sum of exponentials. `scores` is a
  /// block to work in.
  void sums_again(const KernelArguments& a, std::int64_t n, std::int64_t h, std::int64_t i,
                  std::int64_t m, const float* log_sums, float* scores, float* mask_buffer,
                  float* shifts, float* factors, void* products) const {
    const float* q = static_cast<const float*>(a.inputs[1]) + p_.q.at(n, h) + i * p_.q.row;
    const float* k = static_cast<const float*>(a.inputs[2]) + p_.k.at(n, h);
    for (std::int64_t r = 0; r < m; ++r) shifts[r] = -infinity, factors[r] = 0;
    const std::int64_t seen = p_.visible(i + m - 1);
    for (std::int64_t j = 0; j < seen; j += key_block) {
      const std::int64_t count = std::min(key_block, seen - j);
      product(plans_.at(i, j).scores, q, k + j * p_.k.row, scores, p_.scale, false, products);
      for (std::int64_t r = 0; r < m; ++r) {
        const std::int64_t own = std::clamp<std::int64_t>(p_.visible(i + r) - j, 0, count);
        if (own == 0 || !is_coarse_sum(log_sums[r])) continue;
        const float before = shifts[r];
        const float sum = functions_.online_softmax(
            scores + r * key_block, p_.mask_row(a, n, h, i + r, j, own, mask_buffer), own,
            &shifts[r]);
        if (shifts[r] != before) factors[r] *= std::exp(before - shifts[r]);
        factors[r] += sum;
      }
    }
    for (std::int64_t r = 0; r < m; ++r) {
      const bool coarse = is_coarse_sum(log_sums[r]);
      factors[r] = coarse && shifts[r] != -infinity ? 1 / factors[r] : 1;
      if (!coarse) shifts[r] = log_sums[r];
    }
  }

  void run_head(const KernelArguments& a, std::int64_t n, std::int64_t h, char* workspace) const {
    const auto in = [&](int i) { return static_cast<const float*>(a.inputs[i]); };
    const auto out = [&](int i, const Heads& heads) {
      float* x = static_cast<float*>(a.outputs[i]);
      return x == nullptr ? x : x + heads.at(n, h);
    };
    float* p = reinterpret_cast<float*>(workspace);
    float* ds = reinterpret_cast<float*>(workspace + block_bytes);
    float* mask_buffer = reinterpret_cast<float*>(workspace + 2 * block_bytes);
    float* delta = mask_buffer + key_block;
    float* shifts = delta + query_block;
    float* factors = shifts + query_block;
    void* products = workspace + 2 * block_bytes + row_bytes;
    const float *q = in(1) + p_.q.at(n, h), *k = in(2) + p_.k.at(n, h), *v = in(3) + p_.v.at(n, h);
    const float *dy = in(0) + dy_.at(n, h), *y = in(4) + y_.at(n, h);
    const float* log_sums = in(5) + (n * p_.heads + h) * p_.queries;
    float *dq = out(0, dq_), *dk = out(1, dk_), *dv = out(2, dv_);
    clear(dk, p_.keys, dk_.row, p_.key_size);
    clear(dv, p_.keys, dv_.row, p_.value_size);
    for (std::int64_t i = 0; i < p_.queries; i += query_block) {
      const std::int64_t m = std::min(query_block, p_.queries - i);
      const std::int64_t seen = p_.visible(i + m - 1);
      for (std::int64_t r = 0; r < m; ++r) {
        delta[r] = functions_.dot(dy + (i + r) * dy_.row, y + (i + r) * y_.row, p_.value_size);
      }
      if (seen == 0 && dq != nullptr) clear(dq + i * dq_.row, m, dq_.row, p_.key_size);
      const bool again = is_coarse_block(log_sums + i, m);
      if (again) sums_again(a, n, h, i, m, log_sums + i, p, mask_buffer, shifts, factors, products);
      for (std::int64_t j = 0; j < seen; j += key_block) {
        const std::int64_t count = std::min(key_block, seen - j);
        const BlockPlans& plans = plans_.at(i, j);
        product(plans.scores, q + i * p_.q.row, k + j * p_.k.row, p, p_.scale, false, products);
        for (std::int64_t r = 0; r < m; ++r) {
          float* row = p + r * key_block;
          const std::int64_t own = std::clamp<std::int64_t>(p_.visible(i + r) - j, 0, count);
          functions_.probabilities(row, p_.mask_row(a, n, h, i + r, j, own, mask_buffer),
                                   again ? shifts[r] : log_sums[i + r], own);
          if (again && factors[r] != 1) functions_.scale(row, factors[r], own);
          std::memset(row + own, 0, static_cast<std::size_t>(count - own) * sizeof(float));
        }
        if (dv != nullptr)
          product(plans.dvalues, p, dy + i * dy_.row, dv + j * dv_.row, 1, true, products);
        if (dq == nullptr && dk == nullptr) continue;
        product(plans.dprobabilities, dy + i * dy_.row, v + j * p_.v.row, ds, 1, false, products);
        for (std::int64_t r = 0; r < m; ++r) {
          functions_.score_grad(p + r * key_block, ds + r * key_block, delta[r], p_.scale, count);
        }
        if (dq != nullptr)
          product(plans.dqueries, ds, k + j * p_.k.row, dq + i * dq_.row, 1, j > 0, products);
        if (dk != nullptr)
          product(plans.dkeys, ds, q + i * p_.q.row, dk + j * dk_.row, 1, true, products);
      }
    }
  }

  Problem p_;
  Heads dy_, y_, dq_, dk_, dv_;
  const VectorFunctions& functions_;
  PlanTable plans_;
  std::size_t part_bytes_ = 0;
};

std::optional<std::string> refuse(const KernelRequest& r, std::size_t q, std::size_t mask) {
  if (isa_of(*r.facts) == Isa::baseline) return "needs AVX2";
  for (std::int64_t extent : r.inputs[q].type.shape) {
    if (extent == 0) return "an empty q";
  }
  for (std::int64_t extent : r.inputs[q + 2].type.shape) {
    if (extent == 0) return "an empty v";
  }
  return refuse_but_float32(r, {q, mask});
}

// What comes with contiguous rows is taken as it is.
LayoutConstraint constraint_of_rows(const Operand& operand) {
  if (operand.present && operand.type.rank() == 4 && has_rows(operand)) {
    return {LayoutConstraint::Kind::exact, operand.layout};
  }
  return {LayoutConstraint::Kind::row_major, {}};
}

std::vector<Proposal> propose_forward(const KernelRequest& r) {
  Proposal proposal;
  for (std::size_t i = 0; i < 3; ++i) proposal.inputs.push_back(constraint_of_rows(r.inputs[i]));
  proposal.inputs.push_back({LayoutConstraint::Kind::any, {}});
  proposal.outputs = {constraint_of_rows(r.outputs[0]), {LayoutConstraint::Kind::row_major, {}}};
  return {proposal};
}

std::vector<Proposal> propose_backward(const KernelRequest& r) {
  Proposal proposal;
  for (std::size_t i = 0; i < 5; ++i) proposal.inputs.push_back(constraint_of_rows(r.inputs[i]));
  proposal.inputs.push_back({LayoutConstraint::Kind::row_major, {}});
  proposal.inputs.push_back({LayoutConstraint::Kind::any, {}});
  for (std::size_t i = 0; i < 3; ++i) proposal.outputs.push_back(constraint_of_rows(r.outputs[i]));
  return {proposal};
}

}  // namespace

void add_attention_kernels(KernelList& list) {
  list.push_back({"cpu.attention", "Attention",
                  [](const KernelRequest& r) {
                    if (!r.outputs[0].present) return std::optional<std::string>("nothing reads y");
                    return refuse(r, 0, 3);
                  },
                  propose_forward, makes<Forward>()});
  list.push_back({"cpu.attention_grad", "AttentionGrad",
                  [](const KernelRequest& r) { return refuse(r, 1, 6); }, propose_backward,
                  makes<Backward>()});
}

}  // namespace tandem
