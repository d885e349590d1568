// Pad by mirror images, the edge or x again, and the gradient of them: row by row of the innermost
// padded axis, in runs that lie in x and y alike.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "engine/device/kernel_forms.h"
#include "engine/operators/operator.h"
#include "kernels/cpu/maps.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/pointwise/vector_functions.h"
#include "kernels/reference/pad_table.h"

namespace tandem {
namespace {

/// Places of x that follow each other in y, along one axis: x, x + step, … for y, y + 1, …
struct Run {
  std::int64_t y, x, step, count;
};

struct PaddedAxis {
  std::int64_t x_extent = 1, y_extent = 1, x_stride = 0, y_stride = 0;
  Ints sources;  // for each place of y the index in x

  std::vector<Run> runs() const {
    std::vector<Run> list;
    for (std::int64_t i = 0; i < y_extent; ++i) {
      const std::int64_t x = sources[static_cast<std::size_t>(i)];
      Run* last = list.empty() ? nullptr : &list.back();
      if (last != nullptr && last->count == 1 && std::abs(x - last->x) <= 1) {
        last->step = x - last->x;
        last->count = 2;
      } else if (last != nullptr && last->count > 1 && x == last->x + last->step * last->count) {
        ++last->count;
      } else {
        list.push_back({i, x, 1, 1});
      }
    }
    return list;
  }
};

/// Both maps seen as [outer..., row, width]; `row` is the innermost axis with padding.
struct PaddedMap {
  std::vector<PaddedAxis> outer;
  PaddedAxis row;
  std::int64_t width = 1;

  PaddedMap(const Attributes& attributes, const Operand& x, const Operand& y) {
    const Shape &x_shape = x.type.shape, &y_shape = y.type.shape;
    const bool plain = is_map_row_major(x) && is_map_row_major(y);
    const Layout x_layout = plain ? row_major(x_shape) : channels_last(x_shape);
    const Layout y_layout = plain ? row_major(y_shape) : channels_last(y_shape);
    const reference::PadTable table = reference::pad_table(attributes, x_shape);
    std::vector<std::size_t> order(x_shape.size());  // from the innermost axis on
    std::iota(order.rbegin(), order.rend(), std::size_t{0});
    if (!plain) std::rotate(order.begin(), order.end() - 2, order.end() - 1);
    bool found = false;
    for (const std::size_t axis : order) {
      PaddedAxis padded{x_shape[axis], y_shape[axis], x_layout.strides[axis],
                        y_layout.strides[axis], table[axis]};
      if (!found && padded.x_extent == padded.y_extent) {
        width *= padded.x_extent;
      } else if (!found) {
        row = std::move(padded);
        found = true;
      } else {
        outer.push_back(std::move(padded));
      }
    }
    if (!found) row.sources = {0};
  }
};

std::unique_ptr<PreparedKernel> prepare_pad(const KernelRequest& request) {
  const PaddedMap map(request.attributes(), request.inputs[0], request.outputs[0]);
  const std::size_t size = size_of(request.outputs[0].type.dtype);
  std::int64_t rows = 1;
  for (const PaddedAxis& axis : map.outer) rows *= axis.y_extent;
  const std::size_t bytes = request.outputs[0].type.bytes();
  return prepared([map, rows, bytes, runs = map.row.runs(),
                   element = static_cast<std::int64_t>(size),
                   threads = request.facts->threads](const KernelArguments& a) {
    const std::int64_t unit = map.width * element;
    parallel_ranges(
        threads, bytes == 0 ? 0 : rows, 2 * static_cast<std::int64_t>(bytes),
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            const char* x = static_cast<const char*>(a.inputs[0]);
            char* y = static_cast<char*>(a.outputs[0]);
            std::int64_t rest = i;
            for (const PaddedAxis& axis : map.outer) {
              const std::int64_t at = rest % axis.y_extent;
              rest /= axis.y_extent;
              y += at * axis.y_stride * element;
              x += axis.sources[static_cast<std::size_t>(at)] * axis.x_stride * element;
            }
            for (const Run& run : runs) {
              const bool is_whole = run.step == 1;
              const std::int64_t count = is_whole ? 1 : run.count;
              const auto piece = static_cast<std::size_t>(is_whole ? run.count * unit : unit);
              for (std::int64_t k = 0; k < count; ++k) {
                std::memcpy(y + (run.y + k) * unit, x + (run.x + run.step * k) * unit, piece);
              }
            }
          }
        });
  });
}

/// Which places of y each place of x went to.
struct Targets {
  std::vector<std::size_t> firsts;
  Ints places;

  explicit Targets(const PaddedAxis& axis) : firsts(static_cast<std::size_t>(axis.x_extent) + 1) {
    for (const std::int64_t source : axis.sources) ++firsts[static_cast<std::size_t>(source) + 1];
    std::partial_sum(firsts.begin(), firsts.end(), firsts.begin());
    std::vector<std::size_t> next(firsts.begin(), firsts.end() - 1);
    places.resize(axis.sources.size());
    for (std::size_t i = 0; i < axis.sources.size(); ++i) {
      places[next[static_cast<std::size_t>(axis.sources[i])]++] = static_cast<std::int64_t>(i);
    }
  }
};

// A row of dx is the sum of all rows of dy that were taken from it, run by run.
class PadGrad final : public PreparedKernel {
 public:
  explicit PadGrad(const KernelRequest& request)
      : map_(request.attributes(), request.outputs[0], request.inputs[0]),
        runs_(map_.row.runs()),
        add_(vector_functions(request).tile[static_cast<std::size_t>(TileOp::add)]),
        threads_(request.facts->threads) {
    if (request.outputs[0].type.elements() == 0) rows_ = 0;
    for (const PaddedAxis& axis : map_.outer) {
      rows_ *= axis.x_extent;
      targets_.emplace_back(axis);
    }
    bytes_ = static_cast<std::int64_t>(request.inputs[0].type.bytes()) * 3;
  }

  void run(const KernelArguments& a) noexcept override {
    const float* dy = static_cast<const float*>(a.inputs[0]);
    parallel_ranges(threads_, rows_, bytes_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        float* dx = static_cast<float*>(a.outputs[0]);
        std::int64_t rest = i;
        for (const PaddedAxis& axis : map_.outer) {
          dx += rest % axis.x_extent * axis.x_stride;
          rest /= axis.x_extent;
        }
        std::memset(dx, 0,
                    static_cast<std::size_t>(map_.row.x_extent * map_.width) * sizeof(float));
        add_rows(dy, dx, i, 0);
      }
    });
  }

 private:
  /// Adds to dx the rows of dy below those places that the axes before `axis` have chosen.
  void add_rows(const float* dy, float* dx, std::int64_t rest, std::size_t axis) const {
    if (axis == targets_.size()) return add_row(dy, dx);
    const PaddedAxis& padded = map_.outer[axis];
    const Targets& targets = targets_[axis];
    const auto at = static_cast<std::size_t>(rest % padded.x_extent);
    for (std::size_t k = targets.firsts[at]; k < targets.firsts[at + 1]; ++k) {
      add_rows(dy + targets.places[k] * padded.y_stride, dx, rest / padded.x_extent, axis + 1);
    }
  }

  void add_row(const float* dy, float* dx) const {
    const std::int64_t width = map_.width;
    for (const Run& run : runs_) {
      if (run.step == 1) {
        add(dy + run.y * width, dx + run.x * width, run.count * width);
        continue;
      }
      for (std::int64_t k = 0; k < run.count; ++k) {
        add(dy + (run.y + k) * width, dx + (run.x + run.step * k) * width, width);
      }
    }
  }

  void add(const float* from, float* to, std::int64_t n) const {
    if (n < 8) {
      for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
    } else {
      add_({to, from, nullptr, to, n, 0, 0});
    }
  }

  PaddedMap map_;
  std::vector<Run> runs_;
  std::vector<Targets> targets_;
  TileFunction add_;
  int threads_;
  std::int64_t rows_ = 1, bytes_ = 0;
};

std::optional<std::string> refuse_constant_border(const KernelRequest& request) {
  if (request.attributes().text("mode") == "constant") return "a constant border";
  return std::nullopt;
}

}  // namespace

void add_pad_kernels(KernelList& list) {
  list.push_back({.name = "cpu.pad_from_inside",
                  .op = "Pad",
                  .refuse = refuse_constant_border,
                  .propose = propose_map_as_it_comes,
                  .prepare = prepare_pad});
  list.push_back({.name = "cpu.pad_grad",
                  .op = "PadGrad",
                  .refuse = [](const KernelRequest& r) -> std::optional<std::string> {
                    if (auto reason = refuse_constant_border(r)) return reason;
                    return refuse_but_float32(r, {0});
                  },
                  .propose = propose_map_as_it_comes,
                  .prepare = makes<PadGrad>()});
}

}  // namespace tandem
