// Updates of whole tensors and many of them as one GroupedUpdate, in three launches for as many
// tensors as a launch takes: states and the sums of squares of chunks, the factor of each tensor,
// the step. Chunks are cut within each
// tensor and summed in a fixed order: what is grouped, addresses and the GPU's size change no bit.
#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "engine/device/update_proposal.h"
#include "kernels/cuda/launching.h"
#include "kernels/cuda/updates/rules.h"
#include "kernels/cuda/updates/update_lists.h"
#include "kernels/cuda/updates/update_tensors.h"
#include "kernels/reference/scalar_operators.h"

namespace tandem::cuda {
namespace {

/// n elements, in one access where `vector` says so.
template <int n>
TANDEM_HOST_DEVICE Values<n> load_some(const void* data, Floats type, std::int64_t first,
                                       bool vector) {
  if (vector) return load<n>(data, type, first);
  Values<n> values;
  for (int k = 0; k < n; ++k) values.at[k] = load<1>(data, type, first + k).at[0];
  return values;
}
template <int n>
TANDEM_HOST_DEVICE void store_some(void* data, Floats type, std::int64_t first, bool vector,
                                   const Values<n>& values) {
  if (vector) return store<n>(data, type, first, values);
  for (int k = 0; k < n; ++k) store<1>(data, type, first + k, Values<1>{{values.at[k]}});
}

template <class Rule, int n>
TANDEM_HOST_DEVICE void load_some_states(const UpdateTensor& tensor, std::int64_t i, bool vector,
                                         Values<n>* states) {
  for (int s = 0; s < Rule::states; ++s) {
    if (Rule::has(s)) states[s] = load_some<n>(tensor.states[s], Floats::float32, i, vector);
  }
}

/// The sums of the squares of a rule's terms.
template <class Rule>
struct Squares {
  double at[Rule::Kind::terms] = {};
};

template <class Rule, class Block, class Sums>
TANDEM_HOST_DEVICE Squares<Rule> sum_of(const Block& block, const Sums& sums) {
  Squares<Rule> all;
  for (int t = 0; t < Rule::Kind::terms; ++t) {
    typename Block::template Private<double> own;
    block.each([&](int thread) { own(thread) = sums(thread).at[t]; });
    all.at[t] = block.sum(own);
  }
  return all;
}

/// squares[chunk] = those of the chunk, whose states are replaced.
template <class Rule, int capacity>
struct FirstWalk {
  static constexpr int block_threads = update_threads;
  Rule rule;
  StepScalars scalars;
  Squares<Rule>* squares;
  UpdateTensors<capacity> all;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const StepFactors<Rule> factors = step_factors(block, rule, scalars);
    if (factors.skipped) return;
    typename Block::template Private<Squares<Rule>> sums;
    for (std::int64_t number = block.index(); number < all.chunks; number += block.blocks()) {
      const auto [k, begin, end] = all.chunk(number);
      const UpdateTensor& tensor = all.tensors[k];
      const bool vector = all.is_vector(tensor);
      const std::int64_t whole = end - (end - begin) % 4;
      block.each([&, begin = begin, end = end](int thread) {
        Squares<Rule> own;
        for (std::int64_t i = begin + 4 * thread; i < whole; i += 4 * update_threads) {
          replace<4>(factors.step, tensor, i, vector, own);
        }
        if (whole + thread < end) replace<1>(factors.step, tensor, whole + thread, vector, own);
        sums(thread) = own;
      });
      const Squares<Rule> all_of_chunk = sum_of<Rule>(block, sums);
      block.one([&] { squares[number] = all_of_chunk; });
    }
  }

  template <int n>
  TANDEM_HOST_DEVICE void replace(const typename Rule::Step& step, const UpdateTensor& tensor,
                                  std::int64_t i, bool vector, Squares<Rule>& own) const {
    const Values<n> master = load_some<n>(tensor.master, Floats::float32, i, vector);
    const Values<n> grad = load_some<n>(tensor.grad, all.grads, i, vector);
    Values<n> states[most_states] = {};
    load_some_states<Rule>(tensor, i, vector, states);
    for (int k = 0; k < n; ++k) {
      float own_states[most_states], terms[Rule::Kind::terms];
      for (int s = 0; s < most_states; ++s) own_states[s] = states[s].at[k];
      Rule::Kind::first(step, master.at[k], grad.at[k], own_states, terms);
      for (int s = 0; s < most_states; ++s) states[s].at[k] = own_states[s];
      for (int t = 0; t < Rule::Kind::terms; ++t) {
        const auto term = static_cast<double>(terms[t]);
        own.at[t] += term * term;
      }
    }
    for (int s = 0; s < Rule::states; ++s) {
      if (Rule::has(s)) store_some<n>(tensor.states[s], Floats::float32, i, vector, states[s]);
    }
  }
};

/// A block to each tensor: its factor from the squares of its chunks.
template <class Rule, int capacity>
struct FactorOfTensor {
  static constexpr int block_threads = update_threads;
  Rule rule;
  StepScalars scalars;
  const Squares<Rule>* squares;
  float* factors;
  UpdateTensors<capacity> all;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const auto lr = static_cast<double>(*scalars.lr);
    if (*scalars.skip || Rule::Kind::is_no_step(lr)) return;  // no squares were written
    const int tensor = static_cast<int>(block.index());
    const std::int64_t end = all.end_of(tensor);
    typename Block::template Private<Squares<Rule>> sums;
    block.each([&](int thread) {
      Squares<Rule> own;
      for (std::int64_t i = all.tensors[tensor].first_chunk + thread; i < end;
           i += update_threads) {
        for (int t = 0; t < Rule::Kind::terms; ++t) own.at[t] += squares[i].at[t];
      }
      sums(thread) = own;
    });
    const Squares<Rule> all_of_tensor = sum_of<Rule>(block, sums);
    block.one([&] {
      factors[tensor] = static_cast<float>(Rule::Kind::factor(
          rule.settings, lr, {all_of_tensor.at, all.tensors[tensor].elements, *scalars.step}));
    });
  }
};

/// The new master, from the new states.
template <class Rule, int capacity>
struct LastWalk {
  static constexpr int block_threads = update_threads;
  Rule rule;
  StepScalars scalars;
  const float* factors_of;
  UpdateTensors<capacity> all;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const StepFactors<Rule> factors = step_factors(block, rule, scalars);
    for (std::int64_t number = block.index(); number < all.chunks; number += block.blocks()) {
      const auto [k, begin, end] = all.chunk(number);
      const UpdateTensor& tensor = all.tensors[k];
      const float factor = factors.skipped ? 0 : factors_of[k];
      const bool vector = all.is_vector(tensor);
      const std::int64_t whole = end - (end - begin) % 4;
      block.each([&, begin = begin, end = end](int thread) {
        for (std::int64_t i = begin + 4 * thread; i < whole; i += 4 * update_threads) {
          step<4>(factors, tensor, factor, i, vector);
        }
        if (whole + thread < end) step<1>(factors, tensor, factor, whole + thread, vector);
      });
    }
  }

  // A skipped step does not change the master; the weight is the master's all the same.
  template <int n>
  TANDEM_HOST_DEVICE void step(const StepFactors<Rule>& factors, const UpdateTensor& tensor,
                               float factor, std::int64_t i, bool vector) const {
    Values<n> master = load_some<n>(tensor.master, Floats::float32, i, vector);
    if (!factors.skipped) {
      Values<n> states[most_states] = {};
      load_some_states<Rule>(tensor, i, vector, states);
      for (int k = 0; k < n; ++k) {
        float own[most_states];
        for (int s = 0; s < most_states; ++s) own[s] = states[s].at[k];
        master.at[k] = Rule::Kind::last(factors.step, master.at[k], own, factor);
      }
      store_some<n>(tensor.master, Floats::float32, i, vector, master);
    }
    if (tensor.weight != nullptr) store_some<n>(tensor.weight, all.weights, i, vector, master);
  }
};

template <class Rule>
class TensorUpdate final : public PreparedKernel {
 public:
  TensorUpdate(const Gpu& gpu, const KernelRequest& r, const Rule& rule)
      : gpu_(gpu), rule_(rule), operands_(gpu, r, update_count(r), Rule::set) {
    std::int64_t most = 0;
    for (std::size_t first = 0; first < operands_.count(); first += most_tensors)
      most = std::max(most, operands_.chunks(first, part(first)));
    squares_bytes_ = padded(static_cast<std::size_t>(most) * sizeof(Squares<Rule>));
    workspace_bytes = squares_bytes_ + most_tensors * sizeof(float);
  }

  // Parts share the workspace: they run one after the other.
  void run(const KernelArguments& a) noexcept override {
    for (std::size_t first = 0; first < operands_.count(); first += most_tensors) {
      if (part(first) == 1)
        run_part<1>(a, first);
      else
        run_part<most_tensors>(a, first);
    }
  }

 private:
  std::size_t part(std::size_t first) const {
    return std::min<std::size_t>(operands_.count() - first, most_tensors);
  }

  template <int capacity>
  void run_part(const KernelArguments& a, std::size_t first) {
    const auto all = operands_.tensors<capacity>(a, first, part(first));
    if (all.count == 0) return;
    const StepScalars scalars(a, operands_.scalars());
    auto* const squares = static_cast<Squares<Rule>*>(a.workspace);
    auto* const factors =
        reinterpret_cast<float*>(static_cast<char*>(a.workspace) + squares_bytes_);
    const LaunchShape shape{.blocks = blocks_for(*gpu_, all.chunks, 1),
                            .threads = update_threads,
                            .shared_bytes = sizeof(StepFactors<Rule>)};
    const FirstWalk<Rule, capacity> first_walk{rule_, scalars, squares, all};
    gpu_->launch(launch_of("tensor update: states", shape, first_walk), a.queue);
    const LaunchShape by_tensor{.blocks = static_cast<unsigned>(all.count),
                                .threads = update_threads};
    const FactorOfTensor<Rule, capacity> factor{rule_, scalars, squares, factors, all};
    gpu_->launch(launch_of("tensor update: factors", by_tensor, factor), a.queue);
    const LastWalk<Rule, capacity> last_walk{rule_, scalars, factors, all};
    gpu_->launch(launch_of("tensor update: step", shape, last_walk), a.queue);
  }

  Gpu gpu_;
  Rule rule_;
  UpdateOperands operands_;
  std::size_t squares_bytes_ = 0;
};

Kernel tensor_kernel(const Gpu& gpu, std::string name, std::string op, const std::string& kind) {
  return {.name = std::move(name),
          .op = std::move(op),
          .refuse = [kind](const KernelRequest& r) -> std::optional<std::string> {
            const std::string& own = update_kind(*r.node).op;
            if (own != kind) return "updates of kind " + own;
            return refuse_update(r);
          },
          .propose = propose_update,
          .prepare =
              [gpu](const KernelRequest& r) {
                return with_rule<float>(update_kind(*r.node).op, r.attributes(),
                                        [&](const auto& rule) -> std::unique_ptr<PreparedKernel> {
                                          using R = std::decay_t<decltype(rule)>;
                                          if constexpr (R::whole_tensor && !R::factored)
                                            return std::make_unique<TensorUpdate<R>>(gpu, r, rule);
                                          else
                                            return nullptr;
                                        });
              }};
}

}  // namespace

void add_tensor_updates(KernelList& list, const Gpu& gpu) {
  for (const UpdateKind& kind : update_kinds()) {
    if (!kind.whole_tensor || kind.is_factored() || kind.compose != nullptr) continue;
    list.push_back(tensor_kernel(gpu, "cuda." + kind.op, kind.op, kind.op));
    list.push_back(
        tensor_kernel(gpu, "cuda.grouped_" + kernel_name(kind.op), "GroupedUpdate", kind.op));
  }
}

}  // namespace tandem::cuda
