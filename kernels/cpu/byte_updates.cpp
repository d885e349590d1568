// Updates of kinds whose states are bytes (engine/optimizers/adam8bit.h): block by block, the
// states are decoded into the first cache, take the step of the formula's own loops, and are
// encoded again.
#include <cstring>

#include "engine/device/kernel_forms.h"
#include "engine/operators/operator.h"
#include "engine/optimizers/dynamic_map.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/updates.h"

namespace tandem {
namespace {

class ByteUpdate final : public DenseUpdate {
 public:
  explicit ByteUpdate(const KernelRequest& r)
      : DenseUpdate(r),
        elements_(r.inputs[0].type.elements()),
        blocks_((elements_ + state_block - 1) / state_block) {
    const UpdateKind& kind = update_kind(*r.node);
    states_ = kind.states.size() / 2;
    for (std::size_t k = 0; k < states_; ++k)
      codes_.push_back(&DynamicCodes::of(kind.states[k].form));
    // Decoding and encoding take about as long as 24 bytes of memory for each element.
    parts_ = parts_for(r.facts->threads, elements_ * (12 + 26 * static_cast<std::int64_t>(states_)),
                       grain_bytes);
  }

  void run(const KernelArguments& a) noexcept override {
    const std::optional<RowStep> step = rule_.step(a.inputs + scalars_);
    parallel_parts(parts_, [&](int part) {
      const Range range = part_of(blocks_, part, parts_);
      for (std::int64_t block = range.begin; block < range.end; ++block) run_block(a, block, step);
    });
  }

 private:
  struct Bytes {
    const std::uint8_t* before;
    std::uint8_t* after;
    const float* scale_before;
    float* scale_after;
  };
  Bytes bytes(const KernelArguments& a, std::size_t k, std::int64_t first) const {
    const std::int64_t block = first / state_block;
    return {static_cast<const std::uint8_t*>(a.inputs[2 + k]) + first,
            static_cast<std::uint8_t*>(a.outputs[1 + k]) + first,
            static_cast<const float*>(a.inputs[2 + k + states_]) + block,
            static_cast<float*>(a.outputs[1 + k + states_]) + block};
  }

  void run_block(const KernelArguments& a, std::int64_t block,
                 const std::optional<RowStep>& step) const {
    const std::int64_t first = block * state_block, n = std::min(state_block, elements_ - first);
    keep_master(a, 0, first, n);
    if (step) {
      take_step(a, first, n, *step);
    } else {
      for (std::size_t k = 0; k < states_; ++k) {
        const Bytes own = bytes(a, k, first);
        if (own.after != own.before)
          std::memcpy(own.after, own.before, static_cast<std::size_t>(n));
        *own.scale_after = *own.scale_before;
      }
    }
    write_weight(a, 0, first, n);
  }

  void take_step(const KernelArguments& a, std::int64_t first, std::int64_t n,
                 const RowStep& step) const {
    alignas(64) float numbers[most_states][state_block], wide[state_block];
    float* states[most_states] = {};
    for (std::size_t k = 0; k < states_; ++k) {
      const Bytes own = bytes(a, k, first);
      codes_[k]->decode(own.before, *own.scale_before, numbers[k], n);
      states[k] = numbers[k];
    }
    update_elements(step, output(a, 0, 0) + first, states, gradient(a, 0, first, n, wide), n, isa_);
    for (std::size_t k = 0; k < states_; ++k) {
      const Bytes own = bytes(a, k, first);
      *own.scale_after = codes_[k]->encode(numbers[k], own.after, n);
    }
  }

  std::int64_t elements_, blocks_;
  std::size_t states_ = 0;
  std::vector<const DynamicCodes*> codes_;
};

std::optional<std::string> refuse_byte_update(const KernelRequest& r) {
  const std::size_t scalars = first_scalar(*r.node);
  const std::size_t states = update_kind(*r.node).states.size() / 2;
  for (std::size_t i = 0; i < scalars; ++i) {
    const DType dtype = r.inputs[i].type.dtype;
    const bool is_bytes = i >= 2 && i < 2 + states;
    if (!is_bytes && dtype != DType::float32 && !(i == 1 && is_short_float(dtype)))
      return refused_type(dtype);
  }
  for (std::size_t i : {scalars, scalars + 2}) {
    if (r.inputs[i].type.dtype != DType::float32) return refused_type(r.inputs[i].type.dtype);
  }
  for (std::size_t k = 0; k <= 2 * states; ++k) {
    if (!r.outputs[k].present) return "a result that nothing reads";
  }
  return std::nullopt;
}

}  // namespace

void add_byte_update_kernels(KernelList& list) {
  for (const UpdateKind& kind : update_kinds()) {
    if (!kind.keeps_bytes()) continue;
    add_row_major(list, update_kernel_name(kind), kind.op, refuse_byte_update, makes<ByteUpdate>());
  }
}

}  // namespace tandem
