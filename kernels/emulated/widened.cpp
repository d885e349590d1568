#include "kernels/emulated/widened.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>

#include "engine/graph/half.h"
#include "engine/operators/grouped_update.h"

namespace tandem {
namespace {

bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

Operand in_float(Operand operand) {
  if (!is_half(operand.type.dtype)) return operand;
  operand.type.dtype = DType::float32;
  operand.constant = nullptr;
  return operand;
}

/// The request as the float32 kernel sees it.
KernelRequest in_floats(const KernelRequest& request) {
  KernelRequest wide = request;
  for (Operand& x : wide.inputs) x = in_float(std::move(x));
  for (Operand& y : wide.outputs) y = in_float(std::move(y));
  return wide;
}

bool has_half(const std::vector<Operand>& operands) {
  return std::any_of(operands.begin(), operands.end(),
                     [](const Operand& x) { return x.present && is_half(x.type.dtype); });
}

std::optional<std::string> refuse_widened(const Kernel& kernel, const KernelRequest& request) {
  if (!has_half(request.inputs) && !has_half(request.outputs)) return "no 16-bit operands";
  if (request.node->body) return "a body of its own types";
  const AttributeValue* weight = request.attributes().find("weight");
  if (weight != nullptr) return "an update, which converts by itself";
  if (request.attributes().find("split") != nullptr && request.attributes().flag("split"))
    return "halves of a split table, which are no numbers by themselves";
  return kernel.refuse ? kernel.refuse(in_floats(request)) : std::nullopt;
}

/// Layouts count elements, so that they hold for both types; opaque ones do not.
std::vector<Proposal> propose_widened(const Kernel& kernel, const KernelRequest& request) {
  std::vector<Proposal> proposals = kernel.propose(in_floats(request));
  const auto is_opaque = [](const LayoutConstraint& constraint) {
    return constraint.kind == LayoutConstraint::Kind::exact && !constraint.layout.is_strided();
  };
  std::erase_if(proposals, [&](const Proposal& proposal) {
    return std::any_of(proposal.inputs.begin(), proposal.inputs.end(), is_opaque) ||
           std::any_of(proposal.outputs.begin(), proposal.outputs.end(), is_opaque);
  });
  if (proposals.empty()) proposals.push_back({});  // all row-major
  return proposals;
}

/// Where the elements of an operand lie, in order, and how many places they span. Steps backwards
/// go to places before the first element.
struct Places {
  explicit Places(const Operand& operand) : dtype(operand.type.dtype), shape(operand.type.shape) {
    strides = operand.layout.strides;
    if (operand.type.elements() == 0) return;
    span = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::int64_t reach = (shape[i] - 1) * strides[i];
      span += std::abs(reach);
      if (reach < 0) before -= reach;
    }
    if (span != operand.type.elements() || before != 0) return;
    shape = {span};  // no holes: the order does not matter
    strides = {1};
  }

  /// f(place) for each element.
  template <class F>
  void each(F f) const {
    if (span == 0) return;
    walk(f, 0, 0);
  }
  template <class F>
  void walk(F& f, std::size_t axis, std::int64_t place) const {
    if (axis == shape.size()) {
      f(place);
      return;
    }
    for (std::int64_t i = 0; i < shape[axis]; ++i) walk(f, axis + 1, place + i * strides[axis]);
  }

  void widen(const void* from, float* to) const {
    const auto* half = static_cast<const std::uint16_t*>(from);
    each([&](std::int64_t i) {
      to[i] = dtype == DType::bfloat16 ? bfloat16_to_float(half[i]) : half_to_float(half[i]);
    });
  }
  void narrow(const float* from, void* to) const {
    auto* half = static_cast<std::uint16_t*>(to);
    each([&](std::int64_t i) {
      half[i] = dtype == DType::bfloat16 ? float_to_bfloat16(from[i]) : float_to_half(from[i]);
    });
  }

  DType dtype;
  Shape shape;
  std::vector<std::int64_t> strides;
  std::int64_t span = 0;    // how many, from the lowest to the highest
  std::int64_t before = 0;  // how many lie before the first element
};

class Widened final : public PreparedKernel {
 public:
  Widened(const Kernel& kernel, const KernelRequest& request)
      : inner_(kernel.prepare(in_floats(request))) {
    std::size_t bytes = (inner_->workspace_bytes + 63) / 64 * 64;
    const auto add = [&](const Operand& operand, std::vector<Copy>& copies, std::size_t index) {
      if (!operand.present || !is_half(operand.type.dtype)) return;
      Copy copy{index, bytes, Places(operand)};
      bytes += (static_cast<std::size_t>(copy.places.span) * sizeof(float) + 63) / 64 * 64;
      copies.push_back(std::move(copy));
    };
    for (std::size_t i = 0; i < request.inputs.size(); ++i) add(request.inputs[i], inputs_, i);
    for (std::size_t i = 0; i < request.outputs.size(); ++i) add(request.outputs[i], outputs_, i);
    // An output that overwrites an input does so in floats too: not all of it may be written.
    for (const Alias& alias : aliases_of(*request.node)) {
      for (Copy& y : outputs_) {
        if (y.index != static_cast<std::size_t>(alias.output)) continue;
        for (const Copy& x : inputs_) {
          if (x.index == static_cast<std::size_t>(alias.input)) y.offset = x.offset;
        }
      }
    }
    from_.resize(request.inputs.size());
    to_.resize(request.outputs.size());
    workspace_bytes = bytes;
  }

  void run(const KernelArguments& a) noexcept override {
    char* workspace = static_cast<char*>(a.workspace);
    std::copy_n(a.inputs, from_.size(), from_.begin());
    std::copy_n(a.outputs, to_.size(), to_.begin());
    for (const Copy& x : inputs_) {
      float* wide = x.in(workspace);
      if (a.inputs[x.index] != nullptr) x.places.widen(a.inputs[x.index], wide);
      from_[x.index] = a.inputs[x.index] != nullptr ? wide : nullptr;
    }
    for (const Copy& y : outputs_) {
      if (a.outputs[y.index] != nullptr) to_[y.index] = y.in(workspace);
    }
    inner_->run({from_.data(), to_.data(), workspace, a.context});
    for (const Copy& y : outputs_) {
      if (a.outputs[y.index] == nullptr) continue;
      y.places.narrow(y.in(workspace), a.outputs[y.index]);
    }
  }

 private:
  struct Copy {
    std::size_t index = 0;   // index of the operand
    std::size_t offset = 0;  // in the workspace
    Places places;
    /// The first element.
    float* in(char* workspace) const {
      return reinterpret_cast<float*>(workspace + offset) + places.before;
    }
  };

  std::unique_ptr<PreparedKernel> inner_;
  std::vector<Copy> inputs_, outputs_;
  std::vector<const void*> from_;
  std::vector<void*> to_;
};

Kernel widened(const Kernel& kernel) {
  Kernel result;
  result.name = kernel.name + ".widened";
  result.op = kernel.op;
  result.refuse = [kernel](const KernelRequest& r) { return refuse_widened(kernel, r); };
  result.propose = [kernel](const KernelRequest& r) { return propose_widened(kernel, r); };
  result.prepare = [kernel](const KernelRequest& r) -> std::unique_ptr<PreparedKernel> {
    return std::make_unique<Widened>(kernel, r);
  };
  result.reference = kernel.reference;
  result.deterministic = kernel.deterministic;
  return result;
}

}  // namespace

KernelList with_widened(const KernelList& kernels) {
  KernelList list;
  for (const bool reference : {false, true}) {
    for (const Kernel& kernel : kernels) {
      if (kernel.reference == reference) list.push_back(kernel);
    }
    for (const Kernel& kernel : kernels) {
      if (kernel.reference == reference) list.push_back(widened(kernel));
    }
  }
  return list;
}

}  // namespace tandem
