// Gather and GatherGrad on any axis: what the kernels take, and their runs.
#include "kernels/cuda/pointwise/gather.h"

#include <algorithm>
#include <bit>

#include "engine/graph/host_tensor.h"
#include "engine/operators/operator.h"
#include "kernels/cuda/pointwise/axes.h"
#include "kernels/cuda/pointwise/copies.h"
#include "kernels/cuda/pointwise/pointwise.h"
#include "kernels/cuda/rows/group_ids.h"

namespace tandem::cuda {
namespace {

struct Rows {
  std::int64_t outer = 1, inner = 1;
  std::int32_t node = -1;
  Indices indices;

  Rows(const KernelRequest& request, const Shape& x) {
    const TensorType& type = request.inputs[1].type;
    const auto axis = static_cast<std::size_t>(request.attributes().integer("axis"));
    for (std::size_t i = 0; i < axis; ++i) outer *= x[i];
    for (std::size_t i = axis + 1; i < x.size(); ++i) inner *= x[i];
    indices.rows = x[axis];
    indices.count = type.elements();
    indices.ids.wide = type.dtype == DType::int64;
    node = request.node_index;
  }

  Indices of(const KernelArguments& a) const {
    Indices now = indices;
    now.ids.data = a.inputs[1];
    now.report = IdReport(a, node);
    return now;
  }
};

std::optional<std::string> refuse_gather(const KernelRequest& request) {
  const DType from = request.inputs[0].type.dtype, to = request.outputs[0].type.dtype;
  if (from == to) return std::nullopt;
  if (!is_float(from)) return "another type than " + std::string(name_of(from));
  if (to != DType::float32 && to != DType::float64)
    return "a result of " + std::string(name_of(to));
  return std::nullopt;
}

// Arguments for words or elements of `bytes` bytes; `row` of them are a row.
GatherArguments arguments_of(const Rows& rows, std::int64_t row) {
  GatherArguments arguments;
  arguments.indices = rows.indices;
  arguments.inner = Divisor(row);
  arguments.count = Divisor(rows.indices.count);
  arguments.units = rows.outer * rows.indices.count * row;
  arguments.large = arguments.units >= most_small_indices;
  return arguments;
}

std::unique_ptr<PreparedKernel> prepare_gather(const KernelRequest& request, const Gpu& gpu) {
  const Operand &x = request.inputs[0], &y = request.outputs[0];
  if (y.type.elements() == 0) return prepared_nothing();
  const Rows rows(request, x.type.shape);
  const int multiprocessors = gpu->properties.multiprocessors;
  const DType from = x.type.dtype, to = y.type.dtype;
  if (from != to) {
    const GatherArguments arguments = arguments_of(rows, rows.inner);
    return prepared(
        [=, shape = spread(arguments.units, multiprocessors)](const KernelArguments& a) {
          GatherArguments own = arguments;
          own.x = a.inputs[0];
          own.y = a.outputs[0];
          own.indices = rows.of(a);
          launch_gather_converted(*gpu, own, from, to, shape, a.queue);
        });
  }
  const auto bytes = static_cast<std::int64_t>(size_of(from)) * rows.inner;
  const auto most = static_cast<std::uint64_t>(bytes) | 16;
  return prepared([=](const KernelArguments& a) {
    const auto addresses = reinterpret_cast<std::uintptr_t>(a.inputs[0]) |
                           reinterpret_cast<std::uintptr_t>(a.outputs[0]);
    const int word = 1 << std::countr_zero(most | addresses);
    GatherArguments own = arguments_of(rows, bytes / word);
    own.x = a.inputs[0];
    own.y = a.outputs[0];
    own.indices = rows.of(a);
    const LaunchShape shape = spread((own.units + 3) / 4, multiprocessors);
    launch_gather(*gpu, own, word, shape, a.queue);
  });
}

std::optional<std::string> refuse_gather_grad(const KernelRequest& request) {
  const Rows rows(request, request.outputs[0].type.shape);
  if (rows.indices.count >= most_small_indices || rows.indices.rows >= most_small_indices) {
    return "2^31 indices or rows";
  }
  return std::nullopt;
}

class GatherGrad final : public PreparedKernel {
 public:
  GatherGrad(const KernelRequest& request, const Gpu& gpu)
      : gpu_(gpu),
        rows_(request, request.outputs[0].type.shape),
        groups_({{rows_.indices.count, rows_.indices.ids.wide}}, rows_.indices.rows),
        dtype_(request.outputs[0].type.dtype),
        bytes_(request.outputs[0].type.bytes()) {
    const auto width = static_cast<std::int64_t>(16 / size_of(dtype_));
    if (is_short_float(dtype_) && rows_.inner % width == 0) width_ = width;
    grouped_ = rows_.indices.count > most_direct_indices;
    if (!grouped_) return;
    const auto ids = static_cast<std::size_t>(groups_.ids());
    const auto capacity = static_cast<std::size_t>(groups_.capacity());
    const std::size_t parts[] = {8 * capacity, 4 * ids, 4 * (capacity + 1), 4,
                                 groups_.workspace_bytes()};
    for (std::size_t i = 0; i < std::size(parts); ++i) {
      starts_[i] = workspace_bytes;
      workspace_bytes += (parts[i] + 255) / 256 * 256;
    }
  }

  void run(const KernelArguments& a) noexcept override {
    const bool wide = width_ > 1 && is_aligned(a.inputs[0], 16) && is_aligned(a.outputs[0], 16);
    GatherGradArguments p;
    p.dy = a.inputs[0];
    p.dx = a.outputs[0];
    p.outer = rows_.outer;
    p.inner = Divisor(wide ? rows_.inner / width_ : rows_.inner);
    p.indices = rows_.of(a);
    if (!grouped_) {
      launch_gather_grad_direct(*gpu_, p, dtype_, wide, a.queue);
      return;
    }
    zero_bytes(*gpu_, a.outputs[0], bytes_, a.queue);
    char* const workspace = static_cast<char*>(a.workspace);
    GroupOutputs to;
    to.unique = reinterpret_cast<std::int64_t*>(workspace + starts_[0]);
    to.order = reinterpret_cast<std::int32_t*>(workspace + starts_[1]);
    to.offsets = reinterpret_cast<std::int32_t*>(workspace + starts_[2]);
    to.count = reinterpret_cast<std::int32_t*>(workspace + starts_[3]);
    groups_.run(*gpu_, a.inputs + 1, to, workspace + starts_[4], p.indices.report, a.queue);
    p.unique = to.unique;
    p.order = to.order;
    p.offsets = to.offsets;
    p.count = to.count;
    p.capacity = groups_.capacity();
    launch_gather_grad_grouped(*gpu_, p, dtype_, wide, a.queue);
  }

 private:
  Gpu gpu_;
  Rows rows_;
  IdGroups groups_;
  DType dtype_;
  std::size_t bytes_;
  std::size_t starts_[5] = {};  // where the parts of the workspace start
  std::int64_t width_ = 1;
  bool grouped_ = false;
};

std::unique_ptr<PreparedKernel> prepare_gather_grad(const KernelRequest& request, const Gpu& gpu) {
  if (request.outputs[0].type.elements() == 0) return prepared_nothing();
  return std::make_unique<GatherGrad>(request, gpu);
}

}  // namespace

void add_gather_kernels(KernelList& list, const Gpu& gpu) {
  add_row_major(list, "cuda.gather", "Gather", refuse_gather, on(gpu, prepare_gather));
  add_row_major(list, "cuda.gather_grad", "GatherGrad", refuse_gather_grad,
                on(gpu, prepare_gather_grad));
}

}  // namespace tandem::cuda
