// Copy, BitCast, Assign, Concat, Pad with a constant, SliceGrad, and views that became copies:
// elements of any type, any strides.
#include "engine/graph/host_tensor.h"
#include "engine/operators/operator.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/strided_copy.h"

namespace tandem {
namespace {

StridedCopy copy_of(const KernelRequest& request, const Shape& shape,
                    const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to,
                    std::int64_t from_offset, std::int64_t to_offset) {
  return StridedCopy(shape, from, to, size_of(request.outputs[0].type.dtype),
                     vector_functions(request), request.facts->threads, from_offset, to_offset);
}

template <std::size_t input>
std::unique_ptr<PreparedKernel> prepare_copy(const KernelRequest& request) {
  const Operand &x = request.inputs[input], &y = request.outputs[0];
  return prepared([copy = copy_of(request, y.type.shape, x.layout.strides, y.layout.strides, 0, 0)](
                      const KernelArguments& a) { copy.run(a.inputs[input], a.outputs[0]); });
}

std::unique_ptr<PreparedKernel> prepare_concat(const KernelRequest& request) {
  const Operand& y = request.outputs[0];
  const auto axis = static_cast<std::size_t>(request.attributes().integer("axis"));
  std::vector<StridedCopy> copies;
  std::int64_t offset = 0;
  for (const Operand& x : request.inputs) {
    copies.push_back(copy_of(request, x.type.shape, x.layout.strides, y.layout.strides, 0, offset));
    offset += x.type.shape[axis] * y.layout.strides[axis];
  }
  return prepared([copies = std::move(copies)](const KernelArguments& a) {
    for (std::size_t i = 0; i < copies.size(); ++i) copies[i].run(a.inputs[i], a.outputs[0]);
  });
}

// Fills all of y with one element, then copies x to its place in it.
std::unique_ptr<PreparedKernel> fill_and_copy(const KernelRequest& request, double value,
                                              const std::vector<std::int64_t>& inside,
                                              std::int64_t offset) {
  const Operand &x = request.inputs[0], &y = request.outputs[0];
  const std::vector<std::int64_t> nothing(y.type.rank(), 0);
  HostTensor element(TensorType{y.type.dtype, {}});
  with_type(y.type.dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
      element.as<T>()[0] = T(static_cast<float>(value));
    } else {
      element.as<T>()[0] = static_cast<T>(value);
    }
  });
  return prepared([element, fill = copy_of(request, y.type.shape, nothing, y.layout.strides, 0, 0),
                   copy = copy_of(request, x.type.shape, x.layout.strides, inside, 0, offset)](
                      const KernelArguments& a) {
    if (fill.elements() != copy.elements()) fill.run(element.data(), a.outputs[0]);
    copy.run(a.inputs[0], a.outputs[0]);
  });
}

std::optional<std::string> refuse_pad(const KernelRequest& request) {
  if (request.attributes().text("mode") != "constant")
    return "mode " + request.attributes().text("mode");
  return std::nullopt;
}

std::unique_ptr<PreparedKernel> prepare_pad(const KernelRequest& request) {
  const Layout& y = request.outputs[0].layout;
  const Ints& pads = request.attributes().integers("pads");
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < y.strides.size(); ++i) offset += pads[i] * y.strides[i];
  return fill_and_copy(request, request.attributes().number("value"), y.strides, offset);
}

std::unique_ptr<PreparedKernel> prepare_slice_grad(const KernelRequest& request) {
  const Layout& y = request.outputs[0].layout;
  const Ints& starts = request.attributes().integers("starts");
  const Ints& steps = request.attributes().integers("steps");
  std::vector<std::int64_t> inside(y.strides.size());
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    inside[i] = y.strides[i] * steps[i];
    offset += starts[i] * y.strides[i];
  }
  return fill_and_copy(request, 0, inside, offset);
}

std::optional<std::string> refuse_axes(const KernelRequest& request) {
  if (request.outputs[0].type.rank() > 10) return "more than 10 axes";
  return std::nullopt;
}

}  // namespace

void add_move_kernels(KernelList& list) {
  const auto add = [&](const char* name, const char* op, auto prepare) {
    list.push_back({name, op, refuse_axes, propose_any_strides, prepare});
  };
  add("cpu.copy", "Copy", prepare_copy<0>);
  add("cpu.bit_cast", "BitCast", prepare_copy<0>);
  add("cpu.assign", "Assign", prepare_copy<1>);
  add("cpu.concat", "Concat", prepare_concat);
  add("cpu.slice_grad", "SliceGrad", prepare_slice_grad);
  list.push_back({"cpu.pad", "Pad", refuse_pad, propose_any_strides, prepare_pad});
}

}  // namespace tandem
