// Choosing a kernel by facts, and checking layouts against those that a kernel asks for.
#include "engine/device/kernel.h"

#include <algorithm>

#include "engine/operators/operator.h"

namespace tandem {
namespace {

// Without axes of extent 1: a stride of 1 somewhere and no broadcasting.
bool has_unit_stride(const Layout& layout, const Shape& shape) {
  bool unit = false, single = true;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] <= 1) continue;
    single = false;
    if (layout.strides[i] == 0) return false;
    unit |= layout.strides[i] == 1;
  }
  return unit || single;
}

bool is_dense(const Layout& layout, const Shape& shape) {
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] > 1) axes.push_back(i);
  }
  std::sort(axes.begin(), axes.end(),
            [&](std::size_t a, std::size_t b) { return layout.strides[a] < layout.strides[b]; });
  std::int64_t expected = 1;
  for (std::size_t axis : axes) {
    if (layout.strides[axis] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

}  // namespace

bool DeviceFacts::has(std::string_view feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

bool satisfies(const LayoutConstraint& constraint, const Layout& layout, const Shape& shape) {
  using Kind = LayoutConstraint::Kind;
  if (constraint.kind == Kind::exact) {
    Layout wanted = constraint.layout;
    wanted.offset = layout.offset;  // kernels get a pointer that includes the offset
    return same_places(wanted, layout, shape);
  }
  if (!layout.is_strided()) return false;
  if (constraint.kind == Kind::any || element_count(shape) == 0) return true;
  switch (constraint.kind) {
    case Kind::unit_stride:
      return has_unit_stride(layout, shape);
    case Kind::dense:
      return is_dense(layout, shape);
    case Kind::row_major:
      return is_row_major(layout, shape);
    case Kind::channels_last:
      return is_channels_last(layout, shape);
    default:
      return true;
  }
}

const Kernel* choose_kernel(const KernelList& kernels, const KernelRequest& request,
                            std::vector<std::string>* refusals) {
  for (const Kernel& kernel : kernels) {
    if (kernel.op != request.node->op->name) continue;
    std::optional<std::string> reason;
    if (request.deterministic && !kernel.deterministic) {
      reason = "not deterministic";
    } else if (kernel.refuse) {
      reason = kernel.refuse(request);
    }
    if (!reason) return &kernel;
    if (refusals != nullptr) refusals->push_back(kernel.name + ": " + *reason);
  }
  return nullptr;
}

}  // namespace tandem
