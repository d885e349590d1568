// Elements from one place to another, whatever their type: views as copies, Split, Concat, Trilu.
#include "kernels/reference/support.h"

namespace tandem::reference {
namespace {

// y's elements in row-major order from those of `source`, of this input.
std::unique_ptr<PreparedKernel> copy_from(const KernelRequest& request, Position source,
                                          std::size_t input = 0) {
  const std::size_t size = size_of(request.outputs[0].type.dtype);
  return prepared([size, input, source = std::move(source),
                   target = walk(request.outputs[0])](const KernelArguments& arguments) mutable {
    copy_elements(arguments.inputs[input], source, arguments.outputs[0], target, size);
  });
}

// Identity, Reshape, Copy, BitCast
std::unique_ptr<PreparedKernel> same_order(const KernelRequest& request) {
  return copy_from(request, walk(request.inputs[0]));
}

// The state's place gets the value.
std::unique_ptr<PreparedKernel> assign(const KernelRequest& request) {
  return copy_from(request, walk(request.inputs[1]), 1);
}

std::unique_ptr<PreparedKernel> transpose(const KernelRequest& request) {
  Ints strides;
  for (std::int64_t axis : request.attributes().integers("perm")) {
    strides.push_back(request.inputs[0].layout.strides[axis]);
  }
  return copy_from(request, Position(request.outputs[0].type.shape, std::move(strides)));
}

// The places that a slice takes from an operand with these strides.
Position sliced(const Attributes& attributes, Ints strides) {
  const Ints& starts = attributes.integers("starts");
  const Ints& steps = attributes.integers("steps");
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    offset += starts[i] * strides[i];
    strides[i] *= steps[i];
  }
  return Position(attributes.integers("sizes"), std::move(strides), offset);
}

std::unique_ptr<PreparedKernel> slice(const KernelRequest& request) {
  return copy_from(request, sliced(request.attributes(), request.inputs[0].layout.strides));
}

std::unique_ptr<PreparedKernel> slice_grad(const KernelRequest& request) {
  const std::size_t size = size_of(request.outputs[0].type.dtype);
  return prepared([size, dy = walk(request.inputs[0]), dx = walk(request.outputs[0]),
                   taken = sliced(request.attributes(), request.outputs[0].layout.strides)](
                      const KernelArguments& arguments) mutable {
    zero_elements(arguments.outputs[0], dx, size);
    copy_elements(arguments.inputs[0], dy, arguments.outputs[0], taken, size);
  });
}

std::unique_ptr<PreparedKernel> expand(const KernelRequest& request) {
  return copy_from(request, walk_broadcast(request.inputs[0], request.outputs[0].type.shape));
}

// Where in `whole` each of `parts` begins along the axis.
std::vector<Position> pieces(const Operand& whole, const std::vector<Operand>& parts,
                             std::int64_t axis) {
  std::vector<Position> places;
  std::int64_t start = 0;
  for (const Operand& part : parts) {
    const Ints& strides = whole.layout.strides;
    places.emplace_back(part.type.shape, strides, start * strides[axis]);
    start += part.type.shape[axis];
  }
  return places;
}

std::unique_ptr<PreparedKernel> split(const KernelRequest& request) {
  const std::size_t size = size_of(request.inputs[0].type.dtype);
  const std::int64_t axis = request.attributes().integer("axis");
  Operand whole = request.inputs[0];
  // An output that is not read may come without a layout.
  std::vector<Operand> parts = request.outputs;
  for (Operand& part : parts) {
    if (!part.present) part.layout = row_major(part.type.shape);
  }
  return prepared([size, from = pieces(whole, parts, axis),
                   to = walks(parts)](const KernelArguments& arguments) mutable {
    for (std::size_t i = 0; i < to.size(); ++i) {
      if (arguments.outputs[i] == nullptr) continue;
      copy_elements(arguments.inputs[0], from[i], arguments.outputs[i], to[i], size);
    }
  });
}

std::unique_ptr<PreparedKernel> concat(const KernelRequest& request) {
  const std::size_t size = size_of(request.outputs[0].type.dtype);
  const std::int64_t axis = request.attributes().integer("axis");
  return prepared(
      [size, from = walks(request.inputs), to = pieces(request.outputs[0], request.inputs, axis)](
          const KernelArguments& arguments) mutable {
        for (std::size_t i = 0; i < to.size(); ++i) {
          copy_elements(arguments.inputs[i], from[i], arguments.outputs[0], to[i], size);
        }
      });
}

std::unique_ptr<PreparedKernel> trilu(const KernelRequest& request) {
  const auto size = static_cast<std::int64_t>(size_of(request.outputs[0].type.dtype));
  const std::size_t rank = request.outputs[0].type.rank();
  const bool upper = request.attributes().flag("upper");
  const std::int64_t k = request.attributes().integer("k");
  return prepared([=, x_walk = walk(request.inputs[0]),
                   y_walk = walk(request.outputs[0])](const KernelArguments& arguments) mutable {
    const char* x = static_cast<const char*>(arguments.inputs[0]);
    char* y = static_cast<char*>(arguments.outputs[0]);
    for (std::int64_t i = 0; i < y_walk.count(); ++i) {
      const std::int64_t diagonal = y_walk.index(rank - 1) - y_walk.index(rank - 2);
      if (upper ? diagonal >= k : diagonal <= k) {
        std::memcpy(y + y_walk.at() * size, x + x_walk.at() * size, static_cast<std::size_t>(size));
      } else {
        std::memset(y + y_walk.at() * size, 0, static_cast<std::size_t>(size));
      }
      x_walk.next();
      y_walk.next();
    }
  });
}

}  // namespace

void add_moves(KernelList& list) {
  const auto add = [&](const char* name, const char* op, Prepare prepare) {
    list.push_back(reference_kernel(name, op, refuse_nothing, prepare));
  };
  add("identity", "Identity", same_order);
  add("stop_gradient", "StopGradient", same_order);
  add("bit_cast", "BitCast", same_order);
  add("reshape", "Reshape", same_order);
  add("copy", "Copy", same_order);
  add("assign", "Assign", assign);
  add("transfer", "Transfer", same_order);
  add("transpose", "Transpose", transpose);
  add("slice", "Slice", slice);
  add("slice_grad", "SliceGrad", slice_grad);
  add("expand", "Expand", expand);
  add("split", "Split", split);
  add("concat", "Concat", concat);
  add("trilu", "Trilu", trilu);
}

}  // namespace tandem::reference
