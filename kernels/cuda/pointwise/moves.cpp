// Copy, Assign, Concat and Split: elements of any type from one strided place to another.
#include "engine/operators/operator.h"
#include "kernels/cuda/pointwise/axes.h"
#include "kernels/cuda/pointwise/copies.h"
#include "kernels/cuda/pointwise/pointwise.h"

namespace tandem::cuda {
namespace {

using Strides = std::vector<std::int64_t>;

StridedCopy copy_of(const Gpu& gpu, const TensorType& type, const Strides& from, const Strides& to,
                    std::int64_t from_offset = 0, std::int64_t to_offset = 0) {
  return StridedCopy(type.shape, from, to, size_of(type.dtype), gpu->properties.multiprocessors,
                     from_offset, to_offset);
}

template <std::size_t input>
std::unique_ptr<PreparedKernel> prepare_copy(const KernelRequest& request, const Gpu& gpu) {
  const Operand &x = request.inputs[input], &y = request.outputs[0];
  return prepared([gpu, copy = copy_of(gpu, y.type, x.layout.strides, y.layout.strides)](
                      const KernelArguments& a) {
    CopyBatch batch(*gpu, a.queue);
    batch.add(copy, a.inputs[input], a.outputs[0]);
    batch.flush();
  });
}

std::unique_ptr<PreparedKernel> prepare_concat(const KernelRequest& request, const Gpu& gpu) {
  const Operand& y = request.outputs[0];
  const auto axis = static_cast<std::size_t>(request.attributes().integer("axis"));
  std::vector<StridedCopy> copies;
  std::int64_t offset = 0;
  for (const Operand& x : request.inputs) {
    copies.push_back(copy_of(gpu, x.type, x.layout.strides, y.layout.strides, 0, offset));
    offset += x.type.shape[axis] * y.layout.strides[axis];
  }
  return prepared([gpu, copies = std::move(copies)](const KernelArguments& a) {
    CopyBatch batch(*gpu, a.queue);
    for (std::size_t i = 0; i < copies.size(); ++i) batch.add(copies[i], a.inputs[i], a.outputs[0]);
    batch.flush();
  });
}

std::unique_ptr<PreparedKernel> prepare_split(const KernelRequest& request, const Gpu& gpu) {
  const Operand& x = request.inputs[0];
  const auto axis = static_cast<std::size_t>(request.attributes().integer("axis"));
  std::vector<StridedCopy> copies;
  std::int64_t offset = 0;
  for (const Operand& y : request.outputs) {
    // An output that is not read may come without a layout.
    const Strides to = y.present ? y.layout.strides : row_major(y.type.shape).strides;
    copies.push_back(copy_of(gpu, y.type, x.layout.strides, to, offset, 0));
    offset += y.type.shape[axis] * x.layout.strides[axis];
  }
  return prepared([gpu, copies = std::move(copies)](const KernelArguments& a) {
    CopyBatch batch(*gpu, a.queue);
    for (std::size_t i = 0; i < copies.size(); ++i) {
      if (a.outputs[i] != nullptr) batch.add(copies[i], a.inputs[0], a.outputs[i]);
    }
    batch.flush();
  });
}

}  // namespace

void add_move_kernels(KernelList& list, const Gpu& gpu) {
  using Prepare = std::unique_ptr<PreparedKernel> (*)(const KernelRequest&, const Gpu&);
  const auto add = [&](const char* name, const char* op, Prepare prepare) {
    list.push_back(
        {name, op,
         [](const KernelRequest& request) { return refuse_axes(request.inputs[0].type.shape); },
         propose_any_strides, on(gpu, prepare)});
  };
  add("cuda.copy", "Copy", prepare_copy<0>);
  add("cuda.assign", "Assign", prepare_copy<1>);
  add("cuda.concat", "Concat", prepare_concat);
  add("cuda.split", "Split", prepare_split);
}

}  // namespace tandem::cuda
