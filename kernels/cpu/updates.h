// What the CPU's kernels for updates of dense states share.
#pragma once

#include <optional>
#include <string>

#include "engine/device/kernel.h"
#include "engine/operators/grouped_update.h"
#include "engine/operators/update_kind.h"
#include "kernels/cpu/pointwise/vector_functions.h"
#include "kernels/cpu/rows/row_rule.h"

namespace tandem {

/// An update of one dense parameter, or of many as a GroupedUpdate. Group i reads inputs
/// [i * inputs, ...) and writes outputs [i * outputs, ...).
class DenseUpdate : public PreparedKernel {
 protected:
  explicit DenseUpdate(const KernelRequest& r);

  const void* input(const KernelArguments& a, std::size_t group, std::size_t i) const {
    return a.inputs[group * sizes_.inputs + i];
  }
  float* output(const KernelArguments& a, std::size_t group, std::size_t i) const {
    return static_cast<float*>(a.outputs[group * sizes_.outputs + i]);
  }
  float* state(const KernelArguments& a, std::size_t group, int k) const {
    return output(a, group, 1 + static_cast<std::size_t>(k));
  }
  /// Elements [first, first + n) in float32; `room` is for those of 16 bits.
  const float* gradient(const KernelArguments& a, std::size_t group, std::int64_t first,
                        std::int64_t n, float* room) const;
  /// The outputs begin as what was there before; in place nothing moves. These elements of the
  /// master, or of state k.
  void keep_master(const KernelArguments& a, std::size_t group, std::int64_t first,
                   std::int64_t n) const {
    keep(input(a, group, 0), output(a, group, 0), first, n);
  }
  void keep_state(const KernelArguments& a, std::size_t group, int k, std::int64_t first,
                  std::int64_t n) const {
    keep(input(a, group, 2 + static_cast<std::size_t>(k)), state(a, group, k), first, n);
  }
  /// Writes these elements of the master as the weight of 16 bits, where there is one.
  void write_weight(const KernelArguments& a, std::size_t group, std::int64_t first,
                    std::int64_t n) const;

  RowRule rule_;
  UpdateGroup sizes_;
  const VectorFunctions& functions_;
  Isa isa_;
  std::size_t scalars_;
  bool half_grad_ = false;
  int parts_ = 1;

 private:
  void keep(const void* from, float* to, std::int64_t first, std::int64_t n) const;

  void (*widen_)(const std::uint16_t* x, float* y, std::int64_t n);   // for gradients
  void (*narrow_)(const float* x, std::uint16_t* y, std::int64_t n);  // for weights
};

/// A reason where the operands of an update, or of many grouped, are not what vector code takes:
/// float32, gradients of one type, which may be of 16 bits, and all results wanted.
std::optional<std::string> refuse_update_operands(const KernelRequest& r);

/// "cpu.adam_update": the name of a kernel for one parameter; with a prefix "cpu.grouped_…".
std::string update_kernel_name(const UpdateKind& kind, const std::string& prefix = "");

/// The kernels of one kind: for one parameter, and for many grouped, which refuses other kinds.
void add_kernels_of_kind(KernelList& list, const UpdateKind& kind,
                         decltype(Kernel::propose) propose, decltype(Kernel::prepare) prepare);

}  // namespace tandem
