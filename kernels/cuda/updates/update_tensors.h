// Many tensors of one kind of update in a launch: what each reads and writes, and how their chunks
// are dealt to blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/operators/grouped_update.h"
#include "engine/optimizers/states.h"
#include "kernels/cuda/launching.h"
#include "kernels/cuda/updates/floats.h"

namespace tandem::cuda {

inline constexpr int update_threads = 256;
inline constexpr std::int64_t chunk_elements = 16 * update_threads;
/// A parameter with what its update reads and writes, all dense and in the same order.
struct UpdateTensor {
  float* master;
  float* states[most_states];  // null where the rule does not keep it
  const void* grad;
  void* weight;  // the new master in 16 bits; null where there is none
  std::int64_t elements;
  std::int64_t first_chunk;  // how many the tensors before it have
};

/// As many as fit a launch: its arguments are at most 4 KiB, of which the others leave this.
inline constexpr int most_tensors = static_cast<int>((4096 - 512) / sizeof(UpdateTensor));

/// The tensors travel with the launch. In a captured graph the launch and with it their addresses
/// stay as they are.
template <int capacity>
struct UpdateTensors {
  std::int64_t chunks;
  int count;
  Floats grads, weights;
  UpdateTensor tensors[capacity];

  struct Chunk {
    int tensor;
    std::int64_t begin, end;  // elements of the tensor
  };
  TANDEM_HOST_DEVICE Chunk chunk(std::int64_t number) const {
    int k = 0;
    for (int above = count; above - k > 1;) {
      const int middle = (k + above) / 2;
      (tensors[middle].first_chunk <= number ? k : above) = middle;
    }
    const std::int64_t begin = (number - tensors[k].first_chunk) * chunk_elements;
    const std::int64_t left = tensors[k].elements - begin;
    return {k, begin, begin + (left < chunk_elements ? left : chunk_elements)};
  }
  TANDEM_HOST_DEVICE std::int64_t end_of(int tensor) const {
    return tensor + 1 < count ? tensors[tensor + 1].first_chunk : chunks;
  }

  /// Whether four elements of all that the update touches are one access.
  TANDEM_HOST_DEVICE bool is_vector(const UpdateTensor& tensor) const {
    bool aligned = is_aligned(tensor.master, 16) && is_aligned(tensor.weight, 8) &&
                   is_aligned(tensor.grad, grads == Floats::float32 ? 16 : 8);
    for (int s = 0; s < most_states; ++s) aligned = aligned && is_aligned(tensor.states[s], 16);
    return aligned;
  }
};

/// The operands of an update or of a GroupedUpdate of `count`. Group i reads inputs [i * inputs,
/// ...) and writes outputs [i * outputs, ...).
class UpdateOperands {
 public:
  /// `kept`: the states, as bits.
  UpdateOperands(Gpu gpu, const KernelRequest& r, std::int64_t count, unsigned kept);

  std::size_t count() const { return elements_.size(); }
  std::size_t scalars() const { return scalars_; }  // the input that is the first
  static std::int64_t chunks_of(std::int64_t elements) {
    return (elements + chunk_elements - 1) / chunk_elements;
  }
  /// The number of chunks of the tensors [first, first + n).
  std::int64_t chunks(std::size_t first, std::size_t n) const;

  /// The tensors [first, first + n) that have elements. Results that do not lie where their
  /// operands were begin as copies of these.
  template <int capacity>
  UpdateTensors<capacity> tensors(const KernelArguments& a, std::size_t first,
                                  std::size_t n) const {
    UpdateTensors<capacity> all{};
    all.grads = grads_;
    all.weights = weights_;
    for (std::size_t k = first; k < first + n; ++k) {
      if (elements_[k] == 0) continue;
      all.tensors[all.count] = tensor(a, k);
      all.tensors[all.count++].first_chunk = all.chunks;
      all.chunks += chunks_of(elements_[k]);
    }
    return all;
  }

 private:
  UpdateTensor tensor(const KernelArguments& a, std::size_t k) const;
  float* in_place(const KernelArguments& a, std::size_t k, std::size_t input,
                  std::size_t output) const;

  Gpu gpu_;
  UpdateGroup sizes_;
  std::size_t scalars_;
  unsigned kept_;
  Floats grads_, weights_ = Floats::bfloat16;
  std::vector<std::int64_t> elements_;  // by group
};

/// A reason where the operands of one or many updates are not float32 with gradients of one type.
std::optional<std::string> refuse_update(const KernelRequest& r);

}  // namespace tandem::cuda
