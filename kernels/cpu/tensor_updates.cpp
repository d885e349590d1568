// Updates of whole tensors and many of them as one GroupedUpdate, in two walks over chunks that are
// cut within each tensor: states and sums of squares in double, then the step. Sums of chunks are
// added in order, so that a result depends neither on threads nor on what is grouped.
#include <algorithm>
#include <bit>

#include "engine/device/update_proposal.h"
#include "engine/operators/grouped_update.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/pointwise/vector_functions.h"
#include "kernels/cpu/rows/row_rule.h"
#include "kernels/cpu/rows/rule_loops.h"
#include "kernels/cpu/updates.h"

namespace tandem {
namespace {

constexpr std::int64_t tile =
    1024;  // of 16-bit operands converted at once: stays in the first cache
constexpr std::int64_t chunk_elements = 4 * tile;

// Group i reads inputs [i * inputs, ...) and writes outputs [i * outputs, ...).
class TensorUpdate final : public PreparedKernel {
 public:
  TensorUpdate(const KernelRequest& r, std::int64_t count)
      : rule_(r),
        loops_(rule_loops(rule_.rule(), isa_of(*r.facts))),
        sizes_(update_group(*r.node)),
        functions_(vector_functions(r)),
        scalars_(first_scalar(*r.node)) {
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::size_t first = static_cast<std::size_t>(i) * sizes_.inputs;
      elements_.push_back(r.inputs[first].type.elements());
      first_chunks_.push_back(chunks_);
      chunks_ += (elements_.back() + chunk_elements - 1) / chunk_elements;
      total += elements_.back();
    }
    const DType grad = r.inputs[1].type.dtype;
    half_grad_ = grad != DType::float32;
    widen_ = grad == DType::float16 ? functions_.widen_float16 : functions_.widen;
    const bool float16 = r.attributes().text("weight") == "float16";
    narrow_ = float16 ? functions_.narrow_float16 : functions_.narrow;
    parts_ = parts_for(r.facts->threads, total * 8 * (1 + std::popcount(rule_.layout().kept)),
                       grain_bytes);
    workspace_bytes = static_cast<std::size_t>(rule_.terms() * chunks_ + count) * sizeof(double);
  }

  void run(const KernelArguments& a) noexcept override {
    const std::optional<RowStep> step = rule_.step(a.inputs + scalars_);
    if (!step) {
      each_chunk([&](const Chunk& chunk) { keep(a, chunk, true); });
      return;
    }
    const double lr = static_cast<double>(*static_cast<const float*>(a.inputs[scalars_]));
    const std::int64_t number = *static_cast<const std::int64_t*>(a.inputs[scalars_ + 1]);
    const int terms = rule_.terms();
    double* const sums = static_cast<double*>(a.workspace);
    double* const factors = sums + terms * chunks_;
    each_chunk([&](const Chunk& chunk) {
      keep(a, chunk, false);
      first(a, *step, chunk, sums + terms * chunk.number);
    });
    for (std::size_t k = 0; k < elements_.size(); ++k) {
      const std::int64_t end = k + 1 < elements_.size() ? first_chunks_[k + 1] : chunks_;
      double all[most_terms] = {};
      for (std::int64_t chunk = first_chunks_[k]; chunk < end; ++chunk) {
        for (int term = 0; term < terms; ++term) all[term] += sums[terms * chunk + term];
      }
      factors[k] = rule_.factor(lr, {all, elements_[k], number});
    }
    each_chunk([&](const Chunk& chunk) {
      last(a, *step, static_cast<float>(factors[chunk.group]), chunk);
    });
  }

 private:
  struct Chunk {
    std::int64_t number;
    std::size_t group;
    std::int64_t begin, end;  // elements of the group's tensors
  };

  template <class F>
  void each_chunk(F f) const {
    parallel_parts(parts_, [&](int part) {
      const Range range = part_of(chunks_, part, parts_);
      std::size_t group = 0;
      for (std::int64_t chunk = range.begin; chunk < range.end; ++chunk) {
        // The last group that begins at or before the chunk: those without elements have none.
        if (chunk == range.begin) {
          group = static_cast<std::size_t>(
              std::upper_bound(first_chunks_.begin(), first_chunks_.end(), chunk) -
              first_chunks_.begin() - 1);
        }
        while (group + 1 < first_chunks_.size() && first_chunks_[group + 1] <= chunk) ++group;
        const std::int64_t begin = (chunk - first_chunks_[group]) * chunk_elements;
        f(Chunk{chunk, group, begin, std::min(begin + chunk_elements, elements_[group])});
      }
    });
  }

  const float* input(const KernelArguments& a, const Chunk& chunk, std::size_t i) const {
    return static_cast<const float*>(a.inputs[chunk.group * sizes_.inputs + i]);
  }
  float* output(const KernelArguments& a, const Chunk& chunk, std::size_t i) const {
    return static_cast<float*>(a.outputs[chunk.group * sizes_.outputs + i]);
  }

  /// Of the chunk from element i on, which results start as; null where the rule keeps none.
  struct States {
    float* at[most_states] = {};
  };
  States states(const KernelArguments& a, const Chunk& chunk, std::int64_t i) const {
    States own;
    for (int k = 0; k < most_states; ++k) {
      if (rule_.layout().has(k)) own.at[k] = output(a, chunk, 1 + static_cast<std::size_t>(k)) + i;
    }
    return own;
  }

  void first(const KernelArguments& a, const RowStep& step, const Chunk& chunk,
             double* sums) const {
    alignas(64) float widened[tile];
    for (int term = 0; term < rule_.terms(); ++term) sums[term] = 0;
    for (std::int64_t i = chunk.begin; i < chunk.end; i += tile) {
      const std::int64_t n = std::min(chunk.end - i, tile);
      const float* grad = widened;
      if (half_grad_) {
        const void* from = a.inputs[chunk.group * sizes_.inputs + 1];
        widen_(static_cast<const std::uint16_t*>(from) + i, widened, n);
      } else {
        grad = input(a, chunk, 1) + i;
      }
      loops_.first(step.factors, output(a, chunk, 0) + i, states(a, chunk, i).at, grad, n, sums);
    }
  }

  void last(const KernelArguments& a, const RowStep& step, float factor, const Chunk& chunk) const {
    for (std::int64_t i = chunk.begin; i < chunk.end; i += tile) {
      const std::int64_t n = std::min(chunk.end - i, tile);
      loops_.last(step.factors, factor, output(a, chunk, 0) + i, states(a, chunk, i).at, n);
      write_weight(a, chunk, i, n);
    }
  }

  // The outputs begin as what was there before; in place nothing moves.
  void keep(const KernelArguments& a, const Chunk& chunk, bool with_weight) const {
    const std::int64_t n = chunk.end - chunk.begin;
    for (std::size_t k = 0; k <= most_states; ++k) {
      if (k > 0 && !rule_.layout().has(static_cast<int>(k) - 1)) continue;
      const float* from = input(a, chunk, k == 0 ? 0 : k + 1) + chunk.begin;
      float* to = output(a, chunk, k) + chunk.begin;
      if (from != to) std::copy_n(from, n, to);
    }
    if (with_weight) write_weight(a, chunk, chunk.begin, n);
  }

  void write_weight(const KernelArguments& a, const Chunk& chunk, std::int64_t first,
                    std::int64_t n) const {
    if (!sizes_.weight) return;
    void* const weight = a.outputs[chunk.group * sizes_.outputs + sizes_.results];
    if (weight == nullptr) return;
    narrow_(output(a, chunk, 0) + first, static_cast<std::uint16_t*>(weight) + first, n);
  }

  static constexpr int most_terms = 4;

  RowRule rule_;
  const RuleLoops& loops_;
  UpdateGroup sizes_;
  const VectorFunctions& functions_;
  std::size_t scalars_;
  bool half_grad_ = false;
  void (*widen_)(const std::uint16_t* x, float* y, std::int64_t n);   // of gradients
  void (*narrow_)(const float* x, std::uint16_t* y, std::int64_t n);  // of weights
  std::vector<std::int64_t> elements_, first_chunks_;                 // of the groups
  std::int64_t chunks_ = 0;
  int parts_ = 1;
};

}  // namespace

void add_tensor_update_kernels(KernelList& list) {
  const auto prepare = [](const KernelRequest& r) -> std::unique_ptr<PreparedKernel> {
    return std::make_unique<TensorUpdate>(r, update_count(r));
  };
  for (const UpdateKind& kind : update_kinds()) {
    if (!kind.whole_tensor || kind.is_factored()) continue;
    add_kernels_of_kind(list, kind, propose_update, prepare);
  }
}

}  // namespace tandem
