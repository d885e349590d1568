// The updates of single elements: SgdUpdate, AdamUpdate, AdagradUpdate, FtrlUpdate, and many of
// them as one GroupedUpdate. A stream of memory: chunks of all tensors are dealt to the blocks.
#include <memory>
#include <utility>

#include "engine/runtime/update_proposal.h"
#include "kernels/cuda/launching.h"
#include "kernels/cuda/updates/rules.h"
#include "kernels/cuda/updates/update_lists.h"
#include "kernels/cuda/updates/update_tensors.h"

namespace tandem::cuda {
namespace {

/// The step's scalars are read from the card's memory.
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
      if (all.is_vector(tensor, Rule::states)) {
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

  // A skipped step leaves master and states alone; the weight is the master's all the same.
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
    Values<n> states[most_states];
    for (int s = 0; s < Rule::states; ++s) states[s] = load<n>(tensor.states[s], i);
    for (int k = 0; k < n; ++k) {
      float own[most_states] = {states[0].at[k], states[1].at[k]};
      master.at[k] = Rule::element(factors.step, master.at[k], grad.at[k], own);
      states[0].at[k] = own[0];
      states[1].at[k] = own[1];
    }
    store<n>(tensor.master, i, master);
    for (int s = 0; s < Rule::states; ++s) store<n>(tensor.states[s], i, states[s]);
    if (tensor.weight != nullptr) store<n>(tensor.weight, all.weights, i, master);
  }
};

template <class Rule>
class Update final : public PreparedKernel {
 public:
  Update(Card card, const KernelRequest& r, const Rule& rule)
      : card_(card), rule_(rule), operands_(card, r, update_count(r), Rule::states) {}

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
    const LaunchShape shape{.blocks = blocks_for(*card_, body.all.chunks, 1),
                            .threads = update_threads,
                            .shared_bytes = sizeof(StepFactors<Rule>)};
    card_->launch(launch_of("update", shape, body), a.queue);
  }

  Card card_;
  Rule rule_;
  UpdateOperands operands_;
};

Kernel update_kernel(const Card& card, std::string name, std::string op) {
  return {.name = std::move(name),
          .op = std::move(op),
          .refuse = [](const KernelRequest& r) -> std::optional<std::string> {
            const UpdateKind& kind = update_kind(*r.node);
            if (kind.whole_tensor) return "updates of kind " + kind.op;
            return refuse_update(r);
          },
          .propose = propose_update,
          .prepare =
              [card](const KernelRequest& r) {
                std::unique_ptr<PreparedKernel> kernel;
                with_rule<float>(update_kind(*r.node).op, r.attributes(), [&](auto rule) {
                  using Rule = decltype(rule);
                  if constexpr (!Rule::whole_row)
                    kernel = std::make_unique<Update<Rule>>(card, r, rule);
                });
                return kernel;
              }};
}

}  // namespace

void add_element_updates(KernelList& list, const Card& card) {
  for (const UpdateKind& kind : update_kinds()) {
    if (!kind.elementwise()) continue;
    list.push_back(update_kernel(card, "cuda." + kind.op, kind.op));
  }
  list.push_back(update_kernel(card, "cuda.grouped_update", "GroupedUpdate"));
}

}  // namespace tandem::cuda
