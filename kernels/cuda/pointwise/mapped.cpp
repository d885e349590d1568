#include "kernels/cuda/pointwise/mapped.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "engine/graph/host_tensor.h"
#include "engine/operators/operator.h"
#include "kernels/cuda/pointwise/axes.h"
#include "kernels/cuda/pointwise/pointwise.h"
#include "kernels/reference/support.h"
#include "kernels/shared/scalar.h"

namespace tandem::cuda {
namespace {

// An axis of a mapped copy or sum: extents of the side that is written and of the other one.
struct MappedAxis {
  std::int64_t written = 1, other = 1;
  std::int64_t from = 0, to = 0;  // strides
  AxisMap map;
  // Which axis of a triangle it is.
  enum class Role : std::uint8_t { any, row, column } role = Role::any;

  bool is_plain() const {
    return role == Role::any && map.kind == AxisMap::Kind::inside && map.start == 0 &&
           map.step == 1 && written == other;
  }
};

// Outermost first as the written side lies in memory; plain neighbours that follow each other in
// both become one.
std::vector<MappedAxis> joined(std::vector<MappedAxis> axes) {
  std::erase_if(axes, [](const MappedAxis& axis) { return axis.written == 1 && axis.is_plain(); });
  const auto place = [](const MappedAxis& axis) {
    return axis.written == 1 ? std::numeric_limits<std::int64_t>::max() : std::abs(axis.to);
  };
  std::stable_sort(axes.begin(), axes.end(),
                   [&](const MappedAxis& a, const MappedAxis& b) { return place(a) > place(b); });
  std::vector<MappedAxis> result;
  for (const MappedAxis& axis : axes) {
    if (!result.empty()) {
      MappedAxis& last = result.back();
      if (last.is_plain() && axis.is_plain() && last.from == axis.from * axis.other &&
          last.to == axis.to * axis.written) {
        last.written *= axis.written;
        last.other = last.map.extent = last.written;
        last.from = axis.from;
        last.to = axis.to;
        continue;
      }
    }
    result.push_back(axis);
  }
  if (result.empty()) result.push_back({});
  return result;
}

template <class Arguments>
void fill_axes(Arguments& arguments, const std::vector<MappedAxis>& axes) {
  arguments.axes = static_cast<int>(axes.size());
  arguments.units = 1;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    arguments.extents[a] = Divisor(axes[a].written);
    arguments.maps[a] = axes[a].map;
    arguments.from_strides[a] = axes[a].from;
    arguments.to_strides[a] = axes[a].to;
    arguments.units *= axes[a].written;
  }
  arguments.large = arguments.units >= most_small_indices;
}

struct MappedVariant {
  MappedCopyArguments arguments;
  LaunchShape shape;
  int word = 0;
};

MappedVariant variant_of(const Gpu& gpu, std::vector<MappedAxis> axes,
                         const MappedCopyArguments& rest, int element_bytes, int word) {
  const int width = word / element_bytes;
  if (width > 1) {
    MappedAxis& last = axes.back();
    last.written /= width;
    last.other = last.map.extent = last.written;
    for (std::size_t a = 0; a + 1 < axes.size(); ++a) {
      axes[a].from /= width;
      axes[a].to /= width;
    }
  }
  MappedVariant variant{rest, {}, word};
  fill_axes(variant.arguments, axes);
  variant.shape = spread(variant.arguments.units, gpu->properties.multiprocessors);
  return variant;
}

// Words of several elements where the innermost axis is copied as it is.
int widest_word(const std::vector<MappedAxis>& axes, int element_bytes) {
  const MappedAxis& last = axes.back();
  if (!last.is_plain() || last.from != 1 || last.to != 1) return element_bytes;
  auto bits = static_cast<std::uint64_t>(last.written);
  for (std::size_t a = 0; a + 1 < axes.size(); ++a) {
    bits |= static_cast<std::uint64_t>(axes[a].from) | static_cast<std::uint64_t>(axes[a].to);
  }
  bits *= static_cast<std::uint64_t>(element_bytes);
  return 1 << std::min(4, std::countr_zero(bits | 16));
}

std::unique_ptr<PreparedKernel> prepare_mapped_copy(const KernelRequest& request, const Gpu& gpu,
                                                    std::vector<MappedAxis> axes,
                                                    MappedCopyArguments rest) {
  const TensorType& type = request.outputs[0].type;
  if (type.elements() == 0) return prepared_nothing();
  const int bytes = static_cast<int>(size_of(type.dtype));
  axes = joined(std::move(axes));
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].role == MappedAxis::Role::row) rest.row_axis = static_cast<int>(a);
    if (axes[a].role == MappedAxis::Role::column) rest.column_axis = static_cast<int>(a);
  }
  return prepared([gpu, narrow = variant_of(gpu, axes, rest, bytes, bytes),
                   wide = variant_of(gpu, axes, rest, bytes, widest_word(axes, bytes))](
                      const KernelArguments& a) {
    const auto word = static_cast<std::size_t>(wide.word);
    const bool aligned = is_aligned(a.inputs[0], word) && is_aligned(a.outputs[0], word);
    const MappedVariant& variant = aligned ? wide : narrow;
    MappedCopyArguments arguments = variant.arguments;
    arguments.from = a.inputs[0];
    arguments.to = a.outputs[0];
    launch_mapped_copy(*gpu, arguments, variant.word, variant.shape, a.queue);
  });
}

std::uint64_t repeated(std::uint64_t bits, std::size_t bytes) {
  for (; bytes < 8; bytes *= 2) bits |= bits << (8 * bytes);
  return bits;
}

std::uint64_t border_bits(DType dtype, double value) {
  return with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    const T number = T(scalar::cast<reference::Computed<T>>(value));
    std::uint64_t bits = 0;
    std::memcpy(&bits, &number, sizeof number);
    return repeated(bits, sizeof number);
  });
}

// One axis for each of the node's: strides, and extents of both sides.
std::vector<MappedAxis> axes_of(const Operand& from, const Operand& to) {
  std::vector<MappedAxis> axes(to.type.rank());
  for (std::size_t a = 0; a < axes.size(); ++a) {
    axes[a].written = to.type.shape[a];
    axes[a].other = axes[a].map.extent = from.type.shape[a];
    axes[a].from = from.layout.strides[a];
    axes[a].to = to.layout.strides[a];
  }
  return axes;
}

AxisMap::Kind kind_of(const std::string& mode) {
  return mode == "edge"      ? AxisMap::Kind::edge
         : mode == "reflect" ? AxisMap::Kind::reflect
         : mode == "wrap"    ? AxisMap::Kind::wrap
                             : AxisMap::Kind::inside;
}

// Axes without a border are plain whatever the mode is.
void map_pads(const KernelRequest& request, std::vector<MappedAxis>& axes) {
  const Ints& pads = request.attributes().integers("pads");
  const AxisMap::Kind kind = kind_of(request.attributes().text("mode"));
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (pads[a] == 0 && pads[axes.size() + a] == 0) continue;
    axes[a].map.kind = kind;
    axes[a].map.start = pads[a];
  }
}

std::unique_ptr<PreparedKernel> prepare_pad(const KernelRequest& request, const Gpu& gpu) {
  std::vector<MappedAxis> axes = axes_of(request.inputs[0], request.outputs[0]);
  map_pads(request, axes);
  MappedCopyArguments rest;
  rest.border = border_bits(request.outputs[0].type.dtype, request.attributes().number("value"));
  return prepare_mapped_copy(request, gpu, std::move(axes), rest);
}

std::unique_ptr<PreparedKernel> prepare_slice_grad(const KernelRequest& request, const Gpu& gpu) {
  std::vector<MappedAxis> axes = axes_of(request.inputs[0], request.outputs[0]);
  const Ints& starts = request.attributes().integers("starts");
  const Ints& steps = request.attributes().integers("steps");
  for (std::size_t a = 0; a < axes.size(); ++a) {
    axes[a].map.start = starts[a];
    axes[a].map.step = steps[a];
  }
  return prepare_mapped_copy(request, gpu, std::move(axes), {});
}

std::unique_ptr<PreparedKernel> prepare_trilu(const KernelRequest& request, const Gpu& gpu) {
  std::vector<MappedAxis> axes = axes_of(request.inputs[0], request.outputs[0]);
  axes[axes.size() - 2].role = MappedAxis::Role::row;
  axes[axes.size() - 1].role = MappedAxis::Role::column;
  MappedCopyArguments rest;
  rest.upper = request.attributes().flag("upper");
  rest.diagonal = request.attributes().integer("k");
  return prepare_mapped_copy(request, gpu, std::move(axes), rest);
}

std::unique_ptr<PreparedKernel> prepare_pad_grad(const KernelRequest& request, const Gpu& gpu) {
  const Operand &dy = request.inputs[0], &dx = request.outputs[0];
  if (dx.type.elements() == 0) return prepared_nothing();
  std::vector<MappedAxis> axes = axes_of(dy, dx);
  map_pads(request, axes);
  for (MappedAxis& axis : axes) axis.map.extent = axis.written;  // maps go from dy to dx
  axes = joined(std::move(axes));
  MappedSumArguments arguments;
  fill_axes(arguments, axes);
  for (std::size_t a = 0; a < axes.size(); ++a) arguments.wholes[a] = axes[a].other;
  const LaunchShape shape = spread(arguments.units, gpu->properties.multiprocessors);
  return prepared([gpu, arguments, shape, dtype = dx.type.dtype](const KernelArguments& a) {
    MappedSumArguments own = arguments;
    own.from = a.inputs[0];
    own.to = a.outputs[0];
    launch_mapped_sum(*gpu, own, dtype, shape, a.queue);
  });
}

// Axes of one element count as well where they are padded, or a triangle's.
std::optional<std::string> refuse(const KernelRequest& request) {
  const Shape &x = request.inputs[0].type.shape, &y = request.outputs[0].type.shape;
  const bool triangle = request.node->op->name == "Trilu";
  Shape counted;
  for (std::size_t a = 0; a < x.size(); ++a) {
    const bool kept = triangle && a + 2 >= x.size();
    counted.push_back(x[a] == 1 && y[a] == 1 && !kept ? 1 : 2);
  }
  return refuse_axes(counted);
}

}  // namespace

void add_mapped_kernels(KernelList& list, const Gpu& gpu) {
  using Prepare = std::unique_ptr<PreparedKernel> (*)(const KernelRequest&, const Gpu&);
  const auto add = [&](const char* name, const char* op, Prepare prepare) {
    list.push_back({name, op, refuse, propose_any_strides, on(gpu, prepare)});
  };
  add("cuda.pad", "Pad", prepare_pad);
  add("cuda.pad_grad", "PadGrad", prepare_pad_grad);
  add("cuda.slice_grad", "SliceGrad", prepare_slice_grad);
  add("cuda.trilu", "Trilu", prepare_trilu);
}

}  // namespace tandem::cuda
