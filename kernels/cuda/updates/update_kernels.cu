// The updates of single elements: SgdUpdate, AdamUpdate, AdagradUpdate, FtrlUpdate, and many of
// them as one GroupedUpdate. A stream of memory: chunks of all tensors are dealt to the blocks.
#include <memory>
#include <utility>

#include "engine/operators/grouped_update.h"
#include "kernels/cuda/launching.h"
#include "kernels/cuda/updates/floats.h"
#include "kernels/cuda/updates/rules.h"
#include "kernels/cuda/updates/update_lists.h"

namespace tandem::cuda {
namespace {

constexpr int block_threads = 256;
constexpr std::int64_t chunk_elements = 16 * block_threads;

/// A parameter with what its update reads and writes, all dense and in the same order.
struct UpdateTensor {
  float* master;
  float* states[2];
  const void* grad;
  void* weight;  // the new master in 16 bits; null where there is none
  std::int64_t elements;
  std::int64_t first_chunk;  // how many the tensors before it have
};

/// The tensors travel with the launch. In a captured graph the launch and with it their addresses
/// stay as they are; the step's scalars are read from the card's memory.
template <class Rule, int capacity>
struct UpdateElements {
  Rule rule;
  StepScalars scalars;
  std::int64_t chunks;
  int count;
  Floats grads, weights;
  UpdateTensor tensors[capacity];

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const StepFactors<Rule> factors = step_factors(block, rule, scalars);
    for (std::int64_t chunk = block.index(); chunk < chunks; chunk += block.blocks()) {
      int k = 0;
      for (int above = count; above - k > 1;) {
        const int middle = (k + above) / 2;
        (tensors[middle].first_chunk <= chunk ? k : above) = middle;
      }
      const UpdateTensor& tensor = tensors[k];
      const std::int64_t begin = (chunk - tensor.first_chunk) * chunk_elements;
      const std::int64_t left = tensor.elements - begin;
      const std::int64_t end = begin + (left < chunk_elements ? left : chunk_elements);
      if (is_vector(tensor)) {
        const std::int64_t whole = end - (end - begin) % 4;
        block.each([&](int thread) {
          for (std::int64_t i = begin + 4 * thread; i < whole; i += 4 * block_threads) {
            update<4>(factors, tensor, i);
          }
          if (whole + thread < end) update<1>(factors, tensor, whole + thread);
        });
      } else {
        block.each([&](int thread) {
          for (std::int64_t i = begin + thread; i < end; i += block_threads) {
            update<1>(factors, tensor, i);
          }
        });
      }
    }
  }

  TANDEM_HOST_DEVICE bool is_vector(const UpdateTensor& tensor) const {
    bool aligned = is_aligned(tensor.master, 16) && is_aligned(tensor.weight, 8) &&
                   is_aligned(tensor.grad, grads == Floats::float32 ? 16 : 8);
    for (int s = 0; s < Rule::states; ++s) aligned = aligned && is_aligned(tensor.states[s], 16);
    return aligned;
  }

  // A skipped step leaves master and states alone; the weight is the master's all the same.
  template <int n>
  TANDEM_HOST_DEVICE void update(const StepFactors<Rule>& factors, const UpdateTensor& tensor,
                                 std::int64_t i) const {
    if (factors.skipped) {
      if (tensor.weight != nullptr) {
        store<n>(tensor.weight, weights, i, load<n>(tensor.master, i));
      }
      return;
    }
    Values<n> master = load<n>(tensor.master, i);
    const Values<n> grad = load<n>(tensor.grad, grads, i);
    Values<n> states[2];
    for (int s = 0; s < Rule::states; ++s) states[s] = load<n>(tensor.states[s], i);
    for (int k = 0; k < n; ++k) {
      float own[2] = {states[0].at[k], states[1].at[k]};
      master.at[k] = Rule::element(factors.step, master.at[k], grad.at[k], own);
      states[0].at[k] = own[0];
      states[1].at[k] = own[1];
    }
    store<n>(tensor.master, i, master);
    for (int s = 0; s < Rule::states; ++s) store<n>(tensor.states[s], i, states[s]);
    if (tensor.weight != nullptr) store<n>(tensor.weight, weights, i, master);
  }
};

// As many tensors as fit a launch: its arguments are at most 4 KiB.
constexpr int most_tensors = 64;

/// Group i reads inputs [i * inputs, ...) and writes outputs [i * outputs, ...).
template <class Rule>
class Update final : public PreparedKernel {
 public:
  Update(Card card, const KernelRequest& r, std::int64_t count, const Rule& rule)
      : card_(std::move(card)),
        rule_(rule),
        sizes_(update_group(*r.node)),
        scalars_(first_scalar(*r.node)),
        grads_(*floats_of(r.inputs[1].type.dtype)) {
    for (std::int64_t i = 0; i < count; ++i) {
      elements_.push_back(r.inputs[static_cast<std::size_t>(i) * sizes_.inputs].type.elements());
    }
    if (sizes_.weight) weights_ = *floats_of(r.outputs[sizes_.results].type.dtype);
  }

  void run(const KernelArguments& a) noexcept override {
    for (std::size_t first = 0; first < elements_.size(); first += most_tensors) {
      const std::size_t count = std::min<std::size_t>(elements_.size() - first, most_tensors);
      if (count == 1)
        run_part<1>(a, first, count);
      else
        run_part<most_tensors>(a, first, count);
    }
  }

 private:
  template <int capacity>
  void run_part(const KernelArguments& a, std::size_t first, std::size_t count) {
    UpdateElements<Rule, capacity> body{};
    body.rule = rule_;
    body.scalars = StepScalars(a, scalars_);
    body.grads = grads_;
    body.weights = weights_;
    for (std::size_t k = first; k < first + count; ++k) {
      if (elements_[k] == 0) continue;
      UpdateTensor& tensor = body.tensors[body.count++];
      tensor.master = in_place(a, k, 0, 0);
      for (int s = 0; s < Rule::states; ++s) {
        const auto at = static_cast<std::size_t>(s);
        tensor.states[s] = in_place(a, k, 2 + at, 1 + at);
      }
      tensor.grad = a.inputs[k * sizes_.inputs + 1];
      tensor.weight = sizes_.weight ? a.outputs[k * sizes_.outputs + sizes_.results] : nullptr;
      tensor.elements = elements_[k];
      tensor.first_chunk = body.chunks;
      body.chunks += (elements_[k] + chunk_elements - 1) / chunk_elements;
    }
    if (body.count == 0) return;
    const LaunchShape shape{.blocks = blocks_for(*card_, body.chunks, 1),
                            .threads = block_threads,
                            .shared_bytes = sizeof(StepFactors<Rule>)};
    card_->launch(launch_of("update", shape, body), a.queue);
  }

  // A result that does not lie where it was begins as what was there before.
  float* in_place(const KernelArguments& a, std::size_t k, std::size_t input, std::size_t output) {
    void* const to = a.outputs[k * sizes_.outputs + output];
    copy_bytes(*card_, to, a.inputs[k * sizes_.inputs + input],
               static_cast<std::size_t>(elements_[k]) * sizeof(float), a.queue);
    return static_cast<float*>(to);
  }

  Card card_;
  Rule rule_;
  UpdateGroup sizes_;
  std::size_t scalars_;
  Floats grads_, weights_ = Floats::bfloat16;
  std::vector<std::int64_t> elements_;  // of the groups
};

std::optional<std::string> refuse_update(const KernelRequest& r) {
  const std::size_t scalars = first_scalar(*r.node);
  const UpdateGroup sizes = update_group(*r.node);
  for (std::size_t i = 0; i < scalars; ++i) {
    const std::size_t k = i % sizes.inputs;
    const DType dtype = r.inputs[i].type.dtype;
    if (!r.inputs[i].present || k == sizes.tensors) continue;
    if (k != 1 && dtype != DType::float32) return element_type(dtype);
    if (k == 1 && !floats_of(dtype)) return "a gradient of " + std::string(name_of(dtype));
    if (k == 1 && dtype != r.inputs[1].type.dtype) return "gradients of several types";
  }
  for (std::size_t k = 0; k < r.outputs.size(); ++k) {
    const std::size_t own = k % sizes.outputs, group = k / sizes.outputs * sizes.inputs;
    const bool made = own == 0 || (own < sizes.results && is_present(r, group + 1 + own));
    if (made && !r.outputs[k].present) return "a result that nobody reads";
  }
  return refuse_scalars(r, scalars);
}

// All tensors of one update lie alike: as the master does where that is dense, else row-major.
std::vector<Proposal> propose_update(const KernelRequest& r, std::int64_t count) {
  const UpdateGroup sizes = update_group(*r.node);
  const LayoutWish row_major{LayoutWish::Kind::row_major, {}};
  const LayoutWish dense{LayoutWish::Kind::dense, {}};
  Proposal proposal;
  proposal.inputs.resize(r.inputs.size(), row_major);
  proposal.outputs.resize(r.outputs.size(), row_major);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const std::size_t first = i * sizes.inputs;
    const Operand& master = r.inputs[first];
    LayoutWish wish = row_major;
    if (satisfies(dense, master.layout, master.type.shape)) {
      wish = {LayoutWish::Kind::exact, master.layout};
    }
    for (std::size_t k = 0; k < sizes.tensors; ++k) proposal.inputs[first + k] = wish;
    const bool grouped = r.node->op->name == "GroupedUpdate";
    const std::size_t weight = grouped ? first + sizes.tensors : old_weight(*r.node);
    if (sizes.weight && weight < proposal.inputs.size()) proposal.inputs[weight] = wish;
    for (std::size_t k = 0; k < sizes.outputs; ++k) {
      const std::size_t at = i * sizes.outputs + k;
      if (r.outputs[at].type.shape == master.type.shape) proposal.outputs[at] = wish;
    }
  }
  return {proposal};
}

std::int64_t count_of(const KernelRequest& r) {
  return r.node->op->name == "GroupedUpdate" ? r.attributes().integer("count") : 1;
}

Kernel update_kernel(const Card& card, std::string name, std::string op) {
  return {.name = std::move(name),
          .op = std::move(op),
          .refuse = refuse_update,
          .propose = [](const KernelRequest& r) { return propose_update(r, count_of(r)); },
          .prepare =
              [card](const KernelRequest& r) {
                std::unique_ptr<PreparedKernel> kernel;
                with_rule(update_kind(*r.node).op, r.attributes(), [&](auto rule) {
                  using Rule = decltype(rule);
                  if constexpr (!Rule::whole_row)
                    kernel = std::make_unique<Update<Rule>>(card, r, count_of(r), rule);
                });
                return kernel;
              }};
}

}  // namespace

void add_element_updates(KernelList& list, const Card& card) {
  for (const UpdateKind& kind : update_kinds()) {
    if (!kind.by_row) list.push_back(update_kernel(card, "cuda." + kind.op, kind.op));
  }
  list.push_back(update_kernel(card, "cuda.grouped_update", "GroupedUpdate"));
}

}  // namespace tandem::cuda
