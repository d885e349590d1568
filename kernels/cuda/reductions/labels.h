// Labels of class scores [N, C, d...] and their weights. A label outside the classes is reported
// unless its weight is 0, and the nearest class stands in for it.
#pragma once

#include "kernels/cuda/reductions/columns.h"
#include "kernels/cuda/reductions/reductions.h"
#include "kernels/shared/block/step_context.h"

namespace tandem::cuda::reductions {

struct Label {
  std::int64_t at = 0;  // inside the classes
  float weight = 1;
};

struct Labels {
  Integers labels;
  Floats weights;  // may be none
  std::int64_t classes = 1;
  std::int32_t node = -1;
  const DeviceStepContext* context = nullptr;

  TANDEM_HOST_DEVICE std::int64_t inside(std::int64_t label, bool report) const {
    if (label >= 0 && label < classes) return label;
    if (report && context != nullptr && context->error != nullptr)
      report_error(context->error, ErrorWord::bad_label, node, label);
    return label < 0 ? 0 : classes - 1;
  }
  /// Only one of the threads that share a label has to report.
  TANDEM_HOST_DEVICE Label get(std::int64_t i, bool report) const {
    Label result;
    if (weights) result.weight = weights.get(i);
    result.at = inside(labels.get(i), report && result.weight != 0);
    return result;
  }
};

/// A node's labels and weights without their addresses.
struct LabelInputs {
  std::size_t labels, weights;
  bool wide, weighted;
  DType weight_type = DType::float32;
  std::int64_t classes;
  std::int32_t node;

  LabelInputs(const KernelRequest& request, std::size_t labels_at, std::size_t weights_at,
              std::int64_t class_count)
      : labels(labels_at),
        weights(weights_at),
        wide(request.inputs[labels_at].type.dtype == DType::int64),
        weighted(request.is_present(weights_at)),
        classes(class_count),
        node(request.node_index) {
    if (weighted) weight_type = request.inputs[weights_at].type.dtype;
  }

  Labels of(const KernelArguments& a) const {
    return {{a.inputs[labels], wide},
            weighted ? Floats(a.inputs[weights], weight_type) : Floats(),
            classes,
            node,
            reinterpret_cast<const DeviceStepContext*>(a.context)};
  }
};

}  // namespace tandem::cuda::reductions
