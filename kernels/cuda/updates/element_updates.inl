// The updates of single elements, and many of them as one GroupedUpdate. A stream of memory: chunks
// of all tensors are distributed over the blocks. Included by element_updates_*.cu, each for a part
// of the rules.

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "engine/device/update_proposal.h"
#include "kernels/cuda/launching.h"
#include "kernels/cuda/updates/element_updates.h"
#include "kernels/cuda/updates/update_tensors.h"

namespace tandem::cuda {
namespace {

/// The step's scalars are read from the GPU's memory.
template <class Rule, int capacity>
struct UpdateElements {
  Rule rule;
  StepScalars scalars;
  UpdateTensors<capacity> all;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const StepFactors<Rule> factors = step_factors(block, rule, scalars);
    for (std::int64_t number = block.index(); number < all.chunks; number += block.blocks()) {
      const auto [k, begin, end] = all.chunk(number);
      const UpdateTensor& tensor = all.tensors[k];
      if (all.is_vector(tensor)) {
        const std::int64_t whole = end - (end - begin) % 4;
        block.each([&, begin = begin, end = end](int thread) {
          for (std::int64_t i = begin + 4 * thread; i < whole; i += 4 * update_threads) {
            update<4>(factors, tensor, i);
          }
          if (whole + thread < end) update<1>(factors, tensor, whole + thread);
        });
      } else {
        block.each([&, begin = begin, end = end](int thread) {
          for (std::int64_t i = begin + thread; i < end; i += update_threads) {
            update<1>(factors, tensor, i);
          }
        });
      }
    }
  }

  // A skipped step does not change master and states; the weight is the master's all the same.
  template <int n>
  TANDEM_HOST_DEVICE void update(const StepFactors<Rule>& factors, const UpdateTensor& tensor,
                                 std::int64_t i) const {
    if (factors.skipped) {
      if (tensor.weight != nullptr) {
        store<n>(tensor.weight, all.weights, i, load<n>(tensor.master, i));
      }
      return;
    }
    Values<n> master = load<n>(tensor.master, i);
    const Values<n> grad = load<n>(tensor.grad, all.grads, i);
    Values<n> states[most_states] = {};
    load_states<Rule>(tensor.states, i, states);
    for (int k = 0; k < n; ++k) {
      float own[most_states];
      for (int s = 0; s < most_states; ++s) own[s] = states[s].at[k];
      master.at[k] = Rule::element(factors.step, master.at[k], grad.at[k], own);
      for (int s = 0; s < most_states; ++s) states[s].at[k] = own[s];
    }
    store<n>(tensor.master, i, master);
    store_states<Rule>(tensor.states, i, states);
    if (tensor.weight != nullptr) store<n>(tensor.weight, all.weights, i, master);
  }
};

template <class Rule>
class Update final : public PreparedKernel {
 public:
  Update(Gpu gpu, const KernelRequest& r, const Rule& rule)
      : gpu_(gpu), rule_(rule), operands_(gpu, r, update_count(r), Rule::set) {}

  void run(const KernelArguments& a) noexcept override {
    for (std::size_t first = 0; first < operands_.count(); first += most_tensors) {
      const std::size_t count = std::min<std::size_t>(operands_.count() - first, most_tensors);
      if (count == 1)
        run_part<1>(a, first, count);
      else
        run_part<most_tensors>(a, first, count);
    }
  }

 private:
  template <int capacity>
  void run_part(const KernelArguments& a, std::size_t first, std::size_t count) {
    const UpdateElements<Rule, capacity> body{rule_, StepScalars(a, operands_.scalars()),
                                              operands_.tensors<capacity>(a, first, count)};
    if (body.all.count == 0) return;
    const LaunchShape shape{.blocks = blocks_for(*gpu_, body.all.chunks, 1),
                            .threads = update_threads,
                            .shared_bytes = sizeof(StepFactors<Rule>)};
    gpu_->launch(launch_of("update", shape, body), a.queue);
  }

  Gpu gpu_;
  Rule rule_;
  UpdateOperands operands_;
};

}  // namespace

template <int part>
std::unique_ptr<PreparedKernel> make_element_update(const Gpu& gpu, const KernelRequest& r) {
  return with_rule<float>(update_kind(*r.node).op, r.attributes(),
                          [&](const auto& rule) -> std::unique_ptr<PreparedKernel> {
                            using R = std::decay_t<decltype(rule)>;
                            if constexpr (!R::whole_row && !R::whole_tensor && is_of_part<R, part>)
                              return std::make_unique<Update<R>>(gpu, r, rule);
                            else
                              return nullptr;
                          });
}

}  // namespace tandem::cuda
