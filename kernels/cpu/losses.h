// What the kernels of losses over labels share.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/device/kernel.h"
#include "kernels/shared/cross_entropy_operands.h"

namespace tandem {

struct Label {
  std::int64_t at = 0;  // inside the classes
  float weight = 1;
};

struct Labels {
  std::size_t input = 0, weight_input = 0;
  bool wide = false, weighted = false;
  std::int32_t node = -1;

  Labels(const KernelRequest& request, std::size_t labels, std::size_t weights)
      : input(labels),
        weight_input(weights),
        wide(request.inputs[labels].type.dtype == DType::int64),
        weighted(request.is_present(weights)),
        node(request.node_index) {}

  std::int64_t raw(const KernelArguments& a, std::int64_t i) const {
    return wide ? static_cast<const std::int64_t*>(a.inputs[input])[i]
                : static_cast<const std::int32_t*>(a.inputs[input])[i];
  }
  std::int64_t inside(const KernelArguments& a, std::int64_t value, std::int64_t classes,
                      bool counts) const {
    if (value >= 0 && value < classes) return value;
    if (counts && a.context != nullptr && a.context->error != nullptr) {
      a.context->error->report(ErrorWord::bad_label, node, value);
    }
    return value < 0 ? 0 : classes - 1;
  }
  Label get(const KernelArguments& a, std::int64_t i, std::int64_t classes) const {
    Label label;
    if (weighted) label.weight = static_cast<const float*>(a.inputs[weight_input])[i];
    label.at = inside(a, raw(a, i), classes, label.weight != 0);
    return label;
  }
};

/// With at least that many neighbouring labels cross-entropy is computed by columns.
constexpr std::int64_t fewest_columns = 8;

/// Losses and gradient, of which an operator makes one or both, where the classes lie apart:
/// logits [outer, classes, columns].
std::unique_ptr<PreparedKernel> prepare_cross_entropy_columns(const KernelRequest& request,
                                                              const CrossEntropyOperands& at);

}  // namespace tandem
