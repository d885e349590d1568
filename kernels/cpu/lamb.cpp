// LambUpdate and many of them as one GroupedUpdate, in two walks over chunks that are cut within
// each tensor: moments and sums of squares in double, then the step. Sums of chunks are added in
// order, so that a result depends neither on threads nor on what is grouped.
#include <algorithm>

#include "engine/operators/grouped_update.h"
#include "engine/runtime/update_proposal.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/updates.h"
#include "kernels/cpu/vector_functions.h"

namespace tandem {
namespace {

constexpr std::int64_t tile =
    1024;  // of 16-bit operands converted at once: stays in the first cache
constexpr std::int64_t chunk_elements = 4 * tile;

// Group i reads inputs [i * inputs, ...) and writes outputs [i * outputs, ...).
class LambUpdate final : public PreparedKernel {
 public:
  LambUpdate(const KernelRequest& r, std::int64_t count)
      : settings_(lamb_settings(r.attributes())),
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
    parts_ = parts_for(r.facts->threads, total * 24, grain_bytes);
    workspace_bytes = static_cast<std::size_t>(2 * chunks_ + count) * sizeof(double);
  }

  void run(const KernelArguments& a) noexcept override {
    const void* const* scalars = a.inputs + scalars_;
    const double lr = static_cast<double>(*static_cast<const float*>(scalars[0]));
    const std::int64_t number = *static_cast<const std::int64_t*>(scalars[1]);
    const double scale = static_cast<double>(*static_cast<const float*>(scalars[2]));
    if (*static_cast<const bool*>(scalars[3])) {
      each_chunk([&](const Chunk& chunk) { keep(a, chunk); });
      return;
    }
    const LambStep<float> step = lamb_step<float>(settings_, number, scale);
    double* const squares = static_cast<double*>(a.workspace);
    double* const rates = squares + 2 * chunks_;
    each_chunk([&](const Chunk& chunk) { moments(a, step, chunk, squares + 2 * chunk.number); });
    for (std::size_t k = 0; k < elements_.size(); ++k) {
      const std::int64_t end = k + 1 < elements_.size() ? first_chunks_[k + 1] : chunks_;
      double master = 0, direction = 0;
      for (std::int64_t chunk = first_chunks_[k]; chunk < end; ++chunk) {
        master += squares[2 * chunk];
        direction += squares[2 * chunk + 1];
      }
      rates[k] = lamb_rate(settings_, lr, master, direction);
    }
    each_chunk(
        [&](const Chunk& chunk) { apply(a, step, static_cast<float>(rates[chunk.group]), chunk); });
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

  void moments(const KernelArguments& a, const LambStep<float>& step, const Chunk& chunk,
               double* squares) const {
    alignas(64) float widened[tile];
    squares[0] = squares[1] = 0;
    for (std::int64_t i = chunk.begin; i < chunk.end; i += tile) {
      const std::int64_t n = std::min(chunk.end - i, tile);
      const float* grad = widened;
      if (half_grad_) {
        const void* from = a.inputs[chunk.group * sizes_.inputs + 1];
        widen_(static_cast<const std::uint16_t*>(from) + i, widened, n);
      } else {
        grad = input(a, chunk, 1) + i;
      }
      functions_.lamb_moments(step, input(a, chunk, 0) + i, grad, input(a, chunk, 2) + i,
                              input(a, chunk, 3) + i, output(a, chunk, 1) + i,
                              output(a, chunk, 2) + i, n, squares);
    }
  }

  void apply(const KernelArguments& a, const LambStep<float>& step, float rate,
             const Chunk& chunk) const {
    for (std::int64_t i = chunk.begin; i < chunk.end; i += tile) {
      const std::int64_t n = std::min(chunk.end - i, tile);
      functions_.lamb_apply(step, rate, input(a, chunk, 0) + i, output(a, chunk, 1) + i,
                            output(a, chunk, 2) + i, output(a, chunk, 0) + i, n);
      write_weight(a, chunk, i, n);
    }
  }

  void keep(const KernelArguments& a, const Chunk& chunk) const {
    const std::int64_t n = chunk.end - chunk.begin;
    for (const std::size_t k : {0, 1, 2}) {
      const float* from = input(a, chunk, k == 0 ? 0 : k + 1) + chunk.begin;
      float* to = output(a, chunk, k) + chunk.begin;
      if (from != to) std::copy_n(from, n, to);
    }
    write_weight(a, chunk, chunk.begin, n);
  }

  void write_weight(const KernelArguments& a, const Chunk& chunk, std::int64_t first,
                    std::int64_t n) const {
    if (!sizes_.weight) return;
    void* const weight = a.outputs[chunk.group * sizes_.outputs + sizes_.results];
    if (weight == nullptr) return;
    narrow_(output(a, chunk, 0) + first, static_cast<std::uint16_t*>(weight) + first, n);
  }

  LambSettings settings_;
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

Kernel lamb_kernel(const char* name, const char* op) {
  return {.name = name,
          .op = op,
          .refuse = [](const KernelRequest& r) -> std::optional<std::string> {
            const std::string& kind = update_kind(*r.node).op;
            if (kind != "LambUpdate") return "updates of kind " + kind;
            return refuse_update_operands(r, true);
          },
          .propose = propose_update,
          .prepare = [](const KernelRequest& r) -> std::unique_ptr<PreparedKernel> {
            return std::make_unique<LambUpdate>(r, update_count(r));
          }};
}

}  // namespace

void add_lamb_kernels(KernelList& list) {
  list.push_back(lamb_kernel("cpu.lamb_update", "LambUpdate"));
  list.push_back(lamb_kernel("cpu.grouped_lamb_update", "GroupedUpdate"));
}

}  // namespace tandem
