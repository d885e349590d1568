// Pad and its gradient by a table per axis: which element of x each element of y comes from.
#include "kernels/reference/pad_table.h"

#include "kernels/reference/network_support.h"
#include "kernels/shared/scalar.h"

namespace tandem::reference {
namespace {

std::int64_t wrapped(std::int64_t i, std::int64_t extent) {
  return ((i % extent) + extent) % extent;
}

// The index in [0, extent) of the element that is read for i, relative to x's begin.
std::int64_t source_index(const std::string& mode, std::int64_t i, std::int64_t extent) {
  if (i >= 0 && i < extent) return i;
  if (mode == "edge") return i < 0 ? 0 : extent - 1;
  if (mode == "wrap") return wrapped(i, extent);
  if (mode == "reflect") {
    if (extent == 1) return 0;
    const std::int64_t j = wrapped(i, 2 * (extent - 1));
    return j < extent ? j : 2 * (extent - 1) - j;
  }
  return -1;
}

}  // namespace

PadTable pad_table(const Attributes& attributes, const Shape& x) {
  const Ints& pads = attributes.integers("pads");
  const std::string& mode = attributes.text("mode");
  PadTable table(x.size());
  for (std::size_t axis = 0; axis < x.size(); ++axis) {
    for (std::int64_t i = -pads[axis]; i < x[axis] + pads[x.size() + axis]; ++i) {
      table[axis].push_back(source_index(mode, i, x[axis]));
    }
  }
  return table;
}

namespace {

/// The place in x of the element of y that `y_walk` is at, or nothing in a constant border.
std::optional<std::int64_t> padded_source(const PadTable& table, const Ints& x_strides,
                                          const Position& y_walk) {
  std::int64_t place = 0;
  for (std::size_t axis = 0; axis < table.size(); ++axis) {
    const std::int64_t index = table[axis][y_walk.index(axis)];
    if (index < 0) return std::nullopt;
    place += index * x_strides[axis];
  }
  return place;
}

constexpr auto prepare_pad_grad = []<class T>(const KernelRequest& request, T) {
  return prepared([table = pad_table(request.attributes(), request.outputs[0].type.shape),
                   strides = request.outputs[0].layout.strides, dy_walk = walk(request.inputs[0]),
                   dx_walk = walk(request.outputs[0])](const KernelArguments& arguments) mutable {
    const T* dy = static_cast<const T*>(arguments.inputs[0]);
    T* dx = static_cast<T*>(arguments.outputs[0]);
    zero_elements(dx, dx_walk, sizeof(T));
    for (std::int64_t i = 0; i < dy_walk.count(); ++i, dy_walk.next()) {
      const auto place = padded_source(table, strides, dy_walk);
      if (!place) continue;
      dx[*place] = stored<T>(
          scalar::add<Computed<T>>(static_cast<Computed<T>>(dx[*place]), dy[dy_walk.at()]));
    }
  });
};

template <class T>
std::uint64_t bits_of(double value) {
  const T number = T(scalar::cast<Computed<T>>(value));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof number);
  return bits;
}

std::unique_ptr<PreparedKernel> pad(const KernelRequest& request) {
  const DType dtype = request.outputs[0].type.dtype;
  const std::uint64_t border = with_type(dtype, [&](auto tag) {
    return bits_of<decltype(tag)>(request.attributes().number("value"));
  });
  return prepared([border, size = size_of(dtype),
                   table = pad_table(request.attributes(), request.inputs[0].type.shape),
                   strides = request.inputs[0].layout.strides,
                   y_walk = walk(request.outputs[0])](const KernelArguments& arguments) mutable {
    const char* x = static_cast<const char*>(arguments.inputs[0]);
    char* y = static_cast<char*>(arguments.outputs[0]);
    const auto bytes = static_cast<std::int64_t>(size);
    for (std::int64_t i = 0; i < y_walk.count(); ++i, y_walk.next()) {
      const auto place = padded_source(table, strides, y_walk);
      const void* from = place ? static_cast<const void*>(x + *place * bytes) : &border;
      std::memcpy(y + y_walk.at() * bytes, from, size);
    }
  });
}

}  // namespace

void add_pad(KernelList& list) {
  list.push_back(reference_kernel("pad", "Pad", refuse_nothing, pad));
  list.push_back(number_kernel("reference.pad_grad", "PadGrad", prepare_pad_grad));
}

}  // namespace tandem::reference
