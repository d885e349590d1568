#include "kernels/cpu/convolution/pooling.h"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <vector>

#include "engine/device/kernel_forms.h"
#include "engine/operators/operator.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/products/products.h"

namespace tandem {
namespace {

PoolingKind kind_of(std::string_view op) {
  if (op == "MaxPool") return PoolingKind::maximum;
  if (op == "MaxPoolGrad") return PoolingKind::maximum_gradient;
  if (op == "AveragePool") return PoolingKind::average;
  return PoolingKind::average_gradient;
}

bool is_gradient(PoolingKind kind) {
  return kind == PoolingKind::maximum_gradient || kind == PoolingKind::average_gradient;
}

/// The operand that has y's shape, and the one that has x's.
const Operand& small_map(const KernelRequest& request, PoolingKind kind) {
  if (kind == PoolingKind::maximum_gradient) return request.inputs[1];
  return kind == PoolingKind::average_gradient ? request.inputs[0] : request.outputs[0];
}
const Operand& large_map(const KernelRequest& request, PoolingKind kind) {
  return kind == PoolingKind::average_gradient ? request.outputs[0] : request.inputs[0];
}

/// All maps are checked, since a map of one position is row-major as well.
bool is_all_channels_last(const KernelRequest& request) {
  const auto is_last = [](const Operand& map) {
    return !map.present || is_channels_last(map.layout, map.type.shape);
  };
  return std::all_of(request.inputs.begin(), request.inputs.end(), is_last) &&
         is_last(request.outputs[0]);
}

std::optional<std::string> refuse(const KernelRequest& request) {
  const PoolingKind kind = kind_of(request.node->op->name);
  if (kind == PoolingKind::maximum && request.outputs.size() > 1 && request.outputs[1].present) {
    return "writes no indices";
  }
  if (auto reason = refuse_unless_float32(request, 0, 2)) return reason;
  const std::size_t rank = large_map(request, kind).type.rank();
  if (rank < 3 || rank > 5) return "takes 1 to 3 spatial axes";
  return std::nullopt;
}

std::vector<Proposal> propose(const KernelRequest& request) {
  std::vector<Proposal> proposals;
  for (const auto kind :
       {LayoutConstraint::Kind::channels_last, LayoutConstraint::Kind::row_major}) {
    const LayoutConstraint map{.kind = kind, .layout = {}};
    proposals.push_back(
        {.inputs = std::vector<LayoutConstraint>(request.inputs.size(), map),
         .outputs = {map, {.kind = LayoutConstraint::Kind::row_major, .layout = {}}}});
    proposals.back().outputs.resize(request.outputs.size());
  }
  return proposals;
}

/// [N, C, space...] or [N, space..., C].
std::vector<PoolingAxis> axes_in_memory(const Attributes& attributes, const Shape& x,
                                        const Shape& y, bool channels_last) {
  const std::size_t spatial = x.size() - 2;
  std::vector<PoolingAxis> axes;
  for (std::size_t i = 0; i < spatial; ++i) {
    axes.push_back({.in = x[i + 2],
                    .out = y[i + 2],
                    .window = attributes.integers("kernel_shape")[i],
                    .stride = attributes.integers("strides")[i],
                    .dilation = attributes.integers("dilations")[i],
                    .pad_begin = attributes.integers("pads")[i],
                    .pad_end = attributes.integers("pads")[i + spatial]});
  }
  axes.insert(axes.begin(), {.in = x[0], .out = x[0]});
  axes.insert(channels_last ? axes.end() : axes.begin() + 1, {.in = x[1], .out = x[1]});
  return axes;
}

/// Whether pooling along the axis leaves each position as it is.
bool is_whole(const PoolingAxis& axis) {
  return axis.in == axis.out && axis.window == 1 && axis.stride == 1 && axis.pad_begin == 0 &&
         axis.pad_end == 0;
}

class PoolingKernel final : public PreparedKernel {
 public:
  explicit PoolingKernel(const KernelRequest& request)
      : threads_(request.facts->threads), isa_(isa_of(*request.facts)) {
    Pooling& p = pooling_;
    p.kind = kind_of(request.node->op->name);
    const Operand& large = large_map(request, p.kind);
    const Shape& y = small_map(request, p.kind).type.shape;
    const Attributes& attributes = request.attributes();
    p.count_padding = (p.kind == PoolingKind::average || p.kind == PoolingKind::average_gradient) &&
                      attributes.flag("count_include_pad");
    const std::vector<PoolingAxis> axes =
        axes_in_memory(attributes, large.type.shape, y, is_all_channels_last(request));
    // Axes that windows do not reach along: the innermost ones are lanes, the outermost ones maps.
    std::size_t begin = 0, end = axes.size();
    for (; end > begin && is_whole(axes[end - 1]); --end) p.lanes *= axes[end - 1].in;
    for (; begin < end && is_whole(axes[begin]); ++begin) maps_ *= axes[begin].in;
    PoolingAxis* const places[] = {&p.depth, &p.rows, &p.columns};
    assert(end - begin <= 3 && "N and C are whole and lie outside of space");
    for (std::size_t i = begin; i < end; ++i) *places[3 - (end - i)] = axes[i];
    p.is_deep = end - begin == 3;
    x_map_ = p.depth.in * p.rows.in * p.columns.in * p.lanes;
    y_map_ = p.depth.out * p.rows.out * p.columns.out * p.lanes;
    // Few images: the channels of each are shared among the threads too.
    pieces_ = maps_ >= threads_ ? 1 : std::clamp<std::int64_t>(p.lanes / 16, 1, threads_);
    bytes_ = 4 * maps_ * (x_map_ + y_map_) * (is_gradient(p.kind) ? 2 : 1);
  }

  void run(const KernelArguments& x) noexcept override {
    parallel_ranges(threads_, maps_ * pieces_, bytes_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Range lanes =
            part_of(pooling_.lanes, static_cast<int>(i % pieces_), static_cast<int>(pieces_), 16);
        if (lanes.size() > 0) run_map(x, i / pieces_, lanes);
      }
    });
  }

 private:
  void run_map(const KernelArguments& arguments, std::int64_t index, const Range& lanes) const {
    const std::int64_t x_at = index * x_map_ + lanes.begin, y_at = index * y_map_ + lanes.begin;
    const auto input = [&](int i, std::int64_t at) {
      return static_cast<const float*>(arguments.inputs[i]) + at;
    };
    PoolingMap map{.pooling = &pooling_, .count = lanes.size()};
    float* const out = static_cast<float*>(arguments.outputs[0]);
    switch (pooling_.kind) {
      case PoolingKind::maximum:
      case PoolingKind::average:
        map.x = input(0, x_at);
        map.y = out + y_at;
        break;
      case PoolingKind::maximum_gradient:
        map.x = input(0, x_at);
        map.y_read = input(1, y_at);
        map.dy = input(2, y_at);
        map.dx = out + x_at;
        break;
      case PoolingKind::average_gradient:
        map.dy = input(0, y_at);
        map.dx = out + x_at;
        break;
    }
    if (isa_ == Isa::avx512) {
      pool_map_avx512(map);
    } else {
      pool_map_avx2(map);
    }
  }

  Pooling pooling_;
  int threads_;
  Isa isa_;
  std::int64_t maps_ = 1, pieces_ = 1, x_map_ = 0, y_map_ = 0, bytes_ = 0;
};

}  // namespace

void add_pooling_kernels(KernelList& list) {
  for (const char* op : {"MaxPool", "MaxPoolGrad", "AveragePool", "AveragePoolGrad"}) {
    list.push_back({"simd.pool", op, refuse, propose, makes<PoolingKernel>()});
  }
}

}  // namespace tandem
