// Resize along one axis and its gradient: rows of what lies inside the axis in memory as weighted
// sums of rows; along the innermost axis elements as sums of elements.
#include "engine/operators/resize.h"

#include <algorithm>

#include "engine/operators/operator.h"
#include "kernels/cpu/maps.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/pointwise/vector_functions.h"

namespace tandem {
namespace {

struct Tap {
  std::int64_t source;
  float weight;
};

/// A dense map as [outer, length, inner] in the order of its elements.
struct MapLines {
  std::int64_t outer, length, inner;

  MapLines(const Shape& shape, const Layout& dense, std::size_t axis)
      : length(shape[axis]), inner(dense.strides[axis]) {
    const std::int64_t count = element_count(shape);
    outer = count == 0 ? 0 : count / length / inner;
  }
};

std::unique_ptr<PreparedKernel> weighted_sums(const KernelRequest& request,
                                              const ResizeTaps& taps) {
  const auto axis = static_cast<std::size_t>(request.attributes().integer("axis"));
  const bool plain = is_map_row_major(request.inputs[0]) && is_map_row_major(request.outputs[0]);
  const auto lines = [&](const Operand& map) {
    const Shape& shape = map.type.shape;
    return MapLines(shape, plain ? row_major(shape) : channels_last(shape), axis);
  };
  const MapLines from = lines(request.inputs[0]), to = lines(request.outputs[0]);
  std::vector<Tap> list;
  for (std::size_t k = 0; k < taps.sources.size(); ++k) {
    list.push_back({taps.sources[k], static_cast<float>(taps.weights[k])});
  }
  const VectorFunctions& functions = vector_functions(request);
  const TileFunction multiply = functions.tile[static_cast<std::size_t>(TileOp::multiply_number)];
  const TileFunction add = functions.tile[static_cast<std::size_t>(TileOp::scaled_add)];
  const std::int64_t bytes = 4 * to.inner * to.outer * static_cast<std::int64_t>(list.size());
  return prepared([from, to, bytes, multiply, add, list = std::move(list), firsts = taps.firsts,
                   threads = request.facts->threads](const KernelArguments& a) {
    const float* x = static_cast<const float*>(a.inputs[0]);
    float* y = static_cast<float*>(a.outputs[0]);
    const std::int64_t n = to.inner;
    parallel_ranges(
        threads, to.outer * to.length, bytes, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            const auto o = static_cast<std::size_t>(i % to.length);
            const float* block = x + i / to.length * from.length * n;
            const Tap* tap = list.data() + firsts[o];
            const Tap* last = list.data() + firsts[o + 1];
            if (n == 1) {
              float sum = 0;
              for (; tap != last; ++tap) sum += tap->weight * block[tap->source];
              y[i] = sum;
              continue;
            }
            float* row = y + i * n;
            if (tap == last) {
              std::fill(row, row + n, 0.0f);
              continue;
            }
            multiply({block + tap->source * n, nullptr, nullptr, row, n, tap->weight, 0});
            for (++tap; tap != last; ++tap) {
              add({block + tap->source * n, row, nullptr, row, n, tap->weight, 0});
            }
          }
        });
  });
}

std::unique_ptr<PreparedKernel> prepare_resize(const KernelRequest& request) {
  const auto axis = static_cast<std::size_t>(request.attributes().integer("axis"));
  return weighted_sums(request,
                       resize_taps(request.attributes(), request.inputs[0].type.shape[axis]));
}

std::unique_ptr<PreparedKernel> prepare_resize_grad(const KernelRequest& request) {
  const auto axis = static_cast<std::size_t>(request.attributes().integer("axis"));
  const std::int64_t extent = request.outputs[0].type.shape[axis];
  return weighted_sums(request, transposed(resize_taps(request.attributes(), extent), extent));
}

}  // namespace

void add_resize_kernels(KernelList& list) {
  const auto add = [&](const char* name, const char* op, auto prepare) {
    list.push_back({.name = name,
                    .op = op,
                    .refuse = only_float32({0}),
                    .propose = propose_map_as_it_comes,
                    .prepare = prepare});
  };
  add("cpu.resize", "Resize", prepare_resize);
  add("cpu.resize_grad", "ResizeGrad", prepare_resize_grad);
}

}  // namespace tandem
