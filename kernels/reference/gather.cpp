// Gather in every type, and into wider floats; its gradient.
#include "kernels/reference/checked_index.h"
#include "kernels/reference/network_support.h"
#include "kernels/shared/scalar.h"

namespace tandem::reference {
namespace {

/// Walks over y's shape: in y, in x without the gathered axis, and in indices.
struct GatherWalk {
  Position y, x, indices;
  std::int64_t extent = 0, stride = 0;  // extent and stride of x's gathered axis
  DType dtype = DType::int64;           // type of indices
  std::int32_t node = -1;

  void next() {
    y.next();
    x.next();
    indices.next();
  }

  /// The index in [0, extent) that y's element comes from, -1 for an absent one; reports one that
  /// is out of range.
  std::int64_t index(const void* data, const StepContext* context) const {
    return checked_index(data, indices.at(), dtype, extent, node, context);
  }
};

/// `x` is the operand that is gathered from (or its gradient), `y` what is gathered.
GatherWalk gather_walk(const KernelRequest& request, const Operand& x, const Operand& y) {
  const Operand& indices = request.inputs[1];
  const auto axis = static_cast<std::size_t>(request.attributes().integer("axis"));
  const std::size_t inner = axis + indices.type.rank();
  Ints x_strides(y.type.rank(), 0), index_strides(y.type.rank(), 0);
  for (std::size_t i = 0; i < y.type.rank(); ++i) {
    if (i < axis) {
      x_strides[i] = x.layout.strides[i];
    } else if (i < inner) {
      index_strides[i] = indices.layout.strides[i - axis];
    } else {
      x_strides[i] = x.layout.strides[i - inner + axis + 1];
    }
  }
  GatherWalk w;
  w.y = walk(y);
  w.x = Position(y.type.shape, std::move(x_strides));
  w.indices = Position(y.type.shape, std::move(index_strides));
  w.extent = x.type.shape[axis];
  w.stride = x.layout.strides[axis];
  w.dtype = indices.type.dtype;
  w.node = request.node_index;
  return w;
}

/// Duplicates are added in y's row-major order.
constexpr auto prepare_gather_grad = []<class T>(const KernelRequest& request, T) {
  return prepared([w = gather_walk(request, request.outputs[0], request.inputs[0]),
                   dx_walk = walk(request.outputs[0])](const KernelArguments& arguments) mutable {
    const T* dy = static_cast<const T*>(arguments.inputs[0]);
    T* dx = static_cast<T*>(arguments.outputs[0]);
    zero_elements(dx, dx_walk, sizeof(T));
    for (std::int64_t i = 0; i < w.y.count(); ++i, w.next()) {
      const std::int64_t index = w.index(arguments.inputs[1], arguments.context);
      if (index < 0) continue;
      T& sum = dx[w.x.at() + index * w.stride];
      sum = stored<T>(scalar::add<Computed<T>>(static_cast<Computed<T>>(sum), dy[w.y.at()]));
    }
  });
};

std::unique_ptr<PreparedKernel> gather(const KernelRequest& request) {
  const std::size_t size = size_of(request.outputs[0].type.dtype);
  return prepared([size, w = gather_walk(request, request.inputs[0], request.outputs[0])](
                      const KernelArguments& arguments) mutable {
    const char* x = static_cast<const char*>(arguments.inputs[0]);
    char* y = static_cast<char*>(arguments.outputs[0]);
    const auto bytes = static_cast<std::int64_t>(size);
    for (std::int64_t i = 0; i < w.y.count(); ++i, w.next()) {
      const std::int64_t index = w.index(arguments.inputs[1], arguments.context);
      char* to = y + w.y.at() * bytes;
      if (index < 0)
        std::memset(to, 0, size);
      else
        std::memcpy(to, x + (w.x.at() + index * w.stride) * bytes, size);
    }
  });
}

// y is a wider float than x.
std::unique_ptr<PreparedKernel> gather_widened(const KernelRequest& request) {
  return prepared([w = gather_walk(request, request.inputs[0], request.outputs[0]),
                   from = request.inputs[0].type.dtype,
                   to = request.outputs[0].type.dtype](const KernelArguments& arguments) mutable {
    for (std::int64_t i = 0; i < w.y.count(); ++i, w.next()) {
      const std::int64_t index = w.index(arguments.inputs[1], arguments.context);
      const double x = index < 0 ? 0.0 : with_type(from, [&](auto tag) {
        const auto* values = static_cast<const decltype(tag)*>(arguments.inputs[0]);
        return static_cast<double>(values[w.x.at() + index * w.stride]);
      });
      with_main_type(to, [&](auto tag) {
        using T = decltype(tag);
        static_cast<T*>(arguments.outputs[0])[w.y.at()] = static_cast<T>(x);
      });
    }
  });
}

std::optional<std::string> refuse_other_result(const KernelRequest& request) {
  if (request.inputs[0].type.dtype == request.outputs[0].type.dtype) return std::nullopt;
  return "a result of another type";
}

std::optional<std::string> refuse_narrow_result(const KernelRequest& request) {
  const DType to = request.outputs[0].type.dtype;
  if (to == DType::float32 || to == DType::float64) return std::nullopt;
  return "a result of " + std::string(name_of(to));
}

}  // namespace

void add_gather(KernelList& list) {
  list.push_back(reference_kernel("gather", "Gather", refuse_other_result, gather));
  list.push_back(
      reference_kernel("gather_widened", "Gather", refuse_narrow_result, gather_widened));
  list.push_back(number_kernel("reference.gather_grad", "GatherGrad", prepare_gather_grad));
}

}  // namespace tandem::reference
