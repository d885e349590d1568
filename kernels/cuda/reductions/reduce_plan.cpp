#include "kernels/cuda/reductions/reduce_plan.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/cuda/reductions/columns.h"

namespace tandem::cuda::reductions {
namespace {

struct Axis {
  WalkAxis walk;
  bool reduced = false;
};

// From the outermost to the innermost in x's memory; repeated ones are outermost.
std::vector<Axis> axes_in_memory(const KernelRequest& request) {
  const Operand& x = request.inputs[0];
  const Ints& reduced = request.attributes().integers("axes");
  const bool keepdims = request.attributes().flag("keepdims");
  std::vector<Axis> axes;
  std::size_t y_axis = 0;
  for (std::size_t i = 0; i < x.type.rank(); ++i) {
    Axis axis;
    axis.reduced =
        std::find(reduced.begin(), reduced.end(), static_cast<std::int64_t>(i)) != reduced.end();
    axis.walk = {x.type.shape[i], x.layout.strides[i], 0};
    if (!axis.reduced) axis.walk.other = request.outputs[0].layout.strides[y_axis];
    if (!axis.reduced || keepdims) ++y_axis;
    if (axis.walk.extent != 1) axes.push_back(axis);
  }
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    const std::int64_t p = std::abs(a.walk.stride), q = std::abs(b.walk.stride);
    if (p == 0 || q == 0) return p == 0 && q != 0;
    return p > q;
  });
  return axes;
}

// Neighbours that are one axis for both operands become one.
std::vector<WalkAxis> merged(const std::vector<Axis>& axes, bool reduced) {
  std::vector<WalkAxis> result;
  for (const Axis& axis : axes) {
    if (axis.reduced != reduced) continue;
    const WalkAxis& a = axis.walk;
    if (!result.empty() && result.back().stride == a.stride * a.extent &&
        result.back().other == a.other * a.extent) {
      result.back() = {result.back().extent * a.extent, a.stride, a.other};
    } else {
      result.push_back(a);
    }
  }
  return result;
}

std::int64_t count_of(const std::vector<WalkAxis>& axes) {
  std::int64_t count = 1;
  for (const WalkAxis& axis : axes) count *= axis.extent;
  return count;
}

bool all_divisible(const std::vector<WalkAxis>& axes, std::int64_t by) {
  return std::all_of(axes.begin(), axes.end(),
                     [&](const WalkAxis& axis) { return axis.stride % by == 0; });
}

// Packs along the last of `inner`, whose neighbours are `outer` and the others of `inner`.
bool takes_packs_along(std::vector<WalkAxis> inner, const std::vector<WalkAxis>& outer, int wide) {
  if (inner.empty() || inner.back().stride != 1 || inner.back().extent % wide != 0) return false;
  inner.pop_back();
  return all_divisible(inner, wide) && all_divisible(outer, wide);
}

// In memory the parts of each result are contiguous (`rows`), or the results of each part.
Reduction second_stage(const Reduction& first, std::vector<WalkAxis> kept, bool rows) {
  Reduction second = first;
  std::int64_t stride = rows ? first.parts : 1;
  for (std::size_t i = kept.size(); i-- > 0;) {
    kept[i].stride = stride;
    stride *= kept[i].extent;
  }
  second.kept = Walk(kept);
  second.reduced = Walk({{first.parts, rows ? 1 : first.results, 0}});
  second.count = first.parts;
  second.parts = 1;
  return second;
}

}  // namespace

ReductionPlan plan_reduction(const KernelRequest& request, const ReductionAsk& ask) {
  const std::vector<Axis> all = axes_in_memory(request);
  const std::vector<WalkAxis> kept = merged(all, false), reduced = merged(all, true);
  ReductionPlan plan;
  Reduction& first = plan.first;
  first.results = count_of(kept);
  first.count = count_of(reduced);
  first.mean_of = ask.mean ? first.count : -1;
  if (first.results == 0) return plan;
  first.kept = Walk(kept);
  if (first.count > 0) first.reduced = Walk(reduced);
  plan.rows = all.empty() || all.back().reduced;
  if (first.count == 0) return plan;

  const std::vector<WalkAxis>& inner = plan.rows ? reduced : kept;
  const std::vector<WalkAxis>& outer = plan.rows ? kept : reduced;
  if (ask.wide > 1 && takes_packs_along(inner, outer, ask.wide)) plan.pack = ask.wide;
  if (!ask.parted) return plan;
  if (plan.rows) {
    const std::int64_t step = static_cast<std::int64_t>(column_threads) * plan.pack;
    if (first.count > most_of_group)
      first.parts =
          parts_of((first.count + step - 1) / step, first.results, ask.multiprocessors, 8);
  } else {
    const std::int64_t packs = first.results / plan.pack;
    const int width = width_of_columns(packs, first.count), lanes = column_threads / width;
    first.parts = parts_of((first.count + lanes - 1) / lanes, (packs + width - 1) / width,
                           ask.multiprocessors, 4);
  }
  if (first.parts > 1) plan.second = second_stage(first, kept, plan.rows);
  return plan;
}

}  // namespace tandem::cuda::reductions
