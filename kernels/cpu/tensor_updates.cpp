// Updates of whole tensors and many of them as one GroupedUpdate, in two walks over chunks that are
// cut within each tensor: states and sums of squares in double, then the step. Sums of chunks are
// added in order, so that a result depends neither on threads nor on what is grouped.
#include <algorithm>
#include <bit>

#include "engine/device/kernel_forms.h"
#include "engine/device/update_proposal.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows/rule_loops.h"
#include "kernels/cpu/updates.h"

namespace tandem {
namespace {

constexpr std::int64_t tile =
    1024;  // 16-bit operands converted at once: they stay in the first cache
constexpr std::int64_t chunk_elements = 4 * tile;

class TensorUpdate final : public DenseUpdate {
 public:
  explicit TensorUpdate(const KernelRequest& r)
      : DenseUpdate(r), loops_(rule_loops(rule_.rule(), isa_)) {
    const std::int64_t count = update_count(r);
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::size_t first = static_cast<std::size_t>(i) * sizes_.inputs;
      elements_.push_back(r.inputs[first].type.elements());
      first_chunks_.push_back(chunks_);
      chunks_ += (elements_.back() + chunk_elements - 1) / chunk_elements;
      total += elements_.back();
    }
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

  /// The outputs for the states of the chunk, from element i on; they start as copies of the
  /// inputs. Null where the rule keeps none.
  /// none.
  struct States {
    float* at[most_states] = {};
  };
  States states(const KernelArguments& a, const Chunk& chunk, std::int64_t i) const {
    States own;
    for (int k = 0; k < most_states; ++k) {
      if (rule_.layout().has(k)) own.at[k] = state(a, chunk.group, k) + i;
    }
    return own;
  }

  void first(const KernelArguments& a, const RowStep& step, const Chunk& chunk,
             double* sums) const {
    alignas(64) float widened[tile];
    for (int term = 0; term < rule_.terms(); ++term) sums[term] = 0;
    for (std::int64_t i = chunk.begin; i < chunk.end; i += tile) {
      const std::int64_t n = std::min(chunk.end - i, tile);
      loops_.first(step.factors, output(a, chunk.group, 0) + i, states(a, chunk, i).at,
                   gradient(a, chunk.group, i, n, widened), n, sums);
    }
  }

  void last(const KernelArguments& a, const RowStep& step, float factor, const Chunk& chunk) const {
    for (std::int64_t i = chunk.begin; i < chunk.end; i += tile) {
      const std::int64_t n = std::min(chunk.end - i, tile);
      loops_.last(step.factors, factor, output(a, chunk.group, 0) + i, states(a, chunk, i).at, n);
      write_weight(a, chunk.group, i, n);
    }
  }

  void keep(const KernelArguments& a, const Chunk& chunk, bool with_weight) const {
    const std::int64_t n = chunk.end - chunk.begin;
    keep_master(a, chunk.group, chunk.begin, n);
    for (int k = 0; k < most_states; ++k) {
      if (rule_.layout().has(k)) keep_state(a, chunk.group, k, chunk.begin, n);
    }
    if (with_weight) write_weight(a, chunk.group, chunk.begin, n);
  }

  static constexpr int most_terms = 4;

  const RuleLoops& loops_;
  std::vector<std::int64_t> elements_, first_chunks_;  // elements and first chunk of each group
  std::int64_t chunks_ = 0;
};

}  // namespace

void add_tensor_update_kernels(KernelList& list) {
  for (const UpdateKind& kind : update_kinds()) {
    if (!kind.whole_tensor || kind.is_factored() || kind.compose != nullptr) continue;
    add_kernels_of_kind(list, kind, propose_update, makes<TensorUpdate>());
  }
}

}  // namespace tandem
