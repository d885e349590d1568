#include "kernels/cuda/pointwise/fused/fused_plan.h"

#include <algorithm>
#include <limits>

namespace tandem::cuda {
namespace {

using Strides = std::vector<std::int64_t>;

constexpr int kept_group = 0, reduced_group = 1;

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// A power of 2, at least n and at least 1.
std::int64_t power_above(std::int64_t n) {
  std::int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

class Planner {
 public:
  Planner(const KernelRequest& request, const FusedBody& body, int multiprocessors)
      : request_(request),
        body_(body),
        multiprocessors_(std::max(multiprocessors, 1)),
        inputs_(request.inputs.size()),
        operands_(inputs_ + request.outputs.size()) {}

  FusedPlan run() {
    plan_.elements = element_count(body_.space);
    if (plan_.elements == 0) {
      plan_empty();
      return std::move(plan_);
    }
    read_strides();
    order_axes();
    share_places();
    plan_.source = fused_source(request_, body_, layout_);
    plan_.wide.possible = takes_wide();
    fill(plan_.narrow, 1);
    if (plan_.wide.possible) fill(plan_.wide, layout_.width);
    return std::move(plan_);
  }

 private:
  const Operand& operand(std::size_t k) const {
    return k < inputs_ ? request_.inputs[k] : request_.outputs[k - inputs_];
  }
  bool is_result(std::size_t k) const {
    return body_.reduction && k == inputs_ + static_cast<std::size_t>(body_.reduction->output);
  }
  bool is_used(std::size_t k) const {
    if (k < inputs_) return body_.input_used[k] != 0;
    return is_result(k) || (body_.outputs[k - inputs_] >= 0 && operand(k).present);
  }

  // Strides of the reduced output over the whole space; 0 on the reduced axes.
  Strides result_strides() const {
    const FusedReduction& reduction = *body_.reduction;
    const Operand& y = request_.outputs[static_cast<std::size_t>(reduction.output)];
    Strides strides(body_.space.size(), 0);
    if (!y.present) return strides;
    const bool keepdims = y.type.rank() == body_.space.size();
    std::size_t own = 0;
    for (std::size_t i = 0; i < strides.size(); ++i) {
      if (!reduction.axes[i] && body_.space[i] != 1) strides[i] = y.layout.strides[own];
      if (keepdims || !reduction.axes[i]) ++own;
    }
    return strides;
  }

  void read_strides() {
    for (std::size_t k = 0; k < operands_; ++k) {
      if (is_result(k))
        strides_.push_back(result_strides());
      else if (is_used(k))
        strides_.push_back(strides_over(operand(k), body_.space));
      else
        strides_.emplace_back(body_.space.size(), 0);
    }
  }

  // Outermost first as the first dense output, else input, lies in memory.
  std::vector<int> memory_order_of_key() const {
    const LayoutConstraint dense{LayoutConstraint::Kind::dense, {}};
    const auto is_key = [&](std::size_t k) {
      return is_used(k) && !is_result(k) && operand(k).type.shape == body_.space &&
             satisfies(dense, operand(k).layout, body_.space);
    };
    for (std::size_t k = inputs_; k < operands_; ++k) {
      if (is_key(k)) return memory_order(strides_[k], body_.space);
    }
    for (std::size_t k = 0; k < inputs_; ++k) {
      if (is_key(k)) return memory_order(strides_[k], body_.space);
    }
    return memory_order(row_major(body_.space).strides, body_.space);
  }

  void order_axes() {
    const std::vector<int> order = memory_order_of_key();
    if (!body_.reduction) {
      axes_ = plan_axes(body_.space, order, strides_);
      return;
    }
    std::vector<int> by_group[2];
    for (int axis : order) by_group[body_.reduction->axes[axis] ? 1 : 0].push_back(axis);
    const bool inner_reduced = order.empty() || body_.reduction->axes[order.back()] != 0;
    layout_.form = inner_reduced ? FusedForm::rows : FusedForm::columns;
    std::vector<int> both = by_group[kept_group];
    both.insert(both.end(), by_group[reduced_group].begin(), by_group[reduced_group].end());
    std::vector<int> groups(by_group[kept_group].size(), kept_group);
    groups.resize(both.size(), reduced_group);
    axes_ = plan_axes(body_.space, both, strides_, groups);
  }

  // The axis along which a unit's elements lie.
  int inner_axis() const {
    return layout_.form == FusedForm::columns ? axes_.axes_of(kept_group) - 1 : axes_.axes() - 1;
  }

  std::int64_t inner_stride(std::size_t k) const { return axes_.strides[k][inner_axis()]; }

  void share_places() {
    layout_.width = fused_width(request_, body_);
    layout_.place_of.assign(operands_, 0);
    layout_.access.assign(operands_, FusedAccess::unused);
    for (std::size_t k = 0; k < operands_; ++k) {
      if (!is_used(k)) continue;
      const auto same =
          std::find_if(operand_of_.begin(), operand_of_.end(),
                       [&](std::size_t other) { return axes_.strides[other] == axes_.strides[k]; });
      layout_.place_of[k] = static_cast<int>(same - operand_of_.begin());
      if (same == operand_of_.end()) operand_of_.push_back(k);
      layout_.access[k] = inner_stride(k) == 1   ? FusedAccess::following
                          : inner_stride(k) == 0 ? FusedAccess::same
                                                 : FusedAccess::strided;
    }
    if (operand_of_.empty()) operand_of_.push_back(0);
    layout_.places = static_cast<int>(operand_of_.size());
  }

  bool takes_wide() {
    const int width = layout_.width, inner = inner_axis();
    const bool whole = body_.reduction || axes_.axes() > 1;
    if (whole && axes_.extents[inner] % width != 0) return false;
    plan_.alignment.assign(operands_, 1);
    for (std::size_t k = 0; k < operands_; ++k) {
      if (!is_used(k) || is_result(k)) continue;
      if (inner_stride(k) != 1) {
        if (k >= inputs_) return false;
        continue;
      }
      for (int a = 0; a < axes_.axes(); ++a) {
        if (a != inner && axes_.strides[k][a] % width != 0) return false;
      }
      const std::size_t bytes = size_of(operand(k).type.dtype) * static_cast<std::size_t>(width);
      plan_.alignment[k] = std::min<std::size_t>(bytes, 16);
    }
    return true;
  }

  void fill(FusedPlan::Way& way, int width) {
    FusedArguments& p = way.arguments;
    if (!body_.reduction) {
      p.space = make_space<most_fused_operands>(axes_, operand_of_, width);
      way.shape = spread(p.space.units, multiprocessors_, fused_threads);
      return;
    }
    p.space.width = width;
    p.space.walk = make_walk<most_fused_operands>(axes_, operand_of_, 1);
    const int inner = inner_axis();
    p.space.walk.extents[inner] = Divisor(axes_.extents[inner] / width);
    for (std::size_t place = 0; place < operand_of_.size(); ++place)
      p.space.inner[place] = inner_stride(operand_of_[place]);
    p.kept_axes = axes_.axes_of(kept_group);
    p.kept = p.kept_elements = axes_.elements_of(kept_group);
    p.reduced = axes_.elements_of(reduced_group);
    if (body_.reduction->kind == FusedReduction::Kind::mean)
      p.scale = 1 / static_cast<double>(p.reduced);
    if (layout_.form == FusedForm::rows)
      plan_rows(way, width);
    else
      plan_columns(way, width);
    plan_.finish.parts = p.part < p.reduced ? way.shape.blocks_y : 0;
    if (plan_.finish.parts > 0) {
      plan_.finish.elements = p.kept_elements;
      plan_.finish.scale = p.scale;
      plan_finish();
    }
  }

  void plan_rows(FusedPlan::Way& way, int width) {
    FusedArguments& p = way.arguments;
    // Both ways cut rows alike.
    const std::int64_t elements = p.reduced, units = elements / width;
    p.lanes = static_cast<int>(
        std::clamp<std::int64_t>(power_above(divided_up(elements, 16)),
                                 std::min<std::int64_t>(power_above(elements), 8), fused_threads));
    const std::int64_t rows = fused_threads / p.lanes, blocks = divided_up(p.kept, rows);
    const std::int64_t part = part_of(elements, blocks, std::int64_t{p.lanes} * 16, layout_.width);
    p.reduced = units;
    p.part = part / width;
    cut(way, blocks, divided_up(elements, part));
    way.shape.shared_bytes = sizeof(double) * fused_threads;
  }

  void plan_columns(FusedPlan::Way& way, int width) {
    FusedArguments& p = way.arguments;
    const std::int64_t blocks = divided_up(divided_up(p.kept, layout_.width), column_lanes);
    p.kept /= width;
    p.part = part_of(p.reduced, blocks, 4 * fused_threads / column_lanes, 1);
    cut(way, divided_up(p.kept, column_lanes), divided_up(p.reduced, p.part));
    way.shape.shared_bytes = sizeof(double) * fused_threads * static_cast<std::size_t>(width);
  }

  // Elements of a part, so that `blocks` blocks times parts fill the GPU; at least `least`, and a
  // multiple of `step`.
  std::int64_t part_of(std::int64_t elements, std::int64_t blocks, std::int64_t least,
                       std::int64_t step) const {
    const std::int64_t wanted = std::int64_t{4} * multiprocessors_;
    if (blocks * 2 >= wanted || elements <= least) return divided_up(elements, step) * step;
    const std::int64_t parts = std::min<std::int64_t>(
        {divided_up(wanted, blocks), divided_up(elements, least), std::int64_t{65535}});
    return divided_up(divided_up(elements, parts), step) * step;
  }

  void cut(FusedPlan::Way& way, std::int64_t blocks, std::int64_t parts) const {
    const std::int64_t most = std::int64_t{8} * multiprocessors_;
    way.shape.threads = fused_threads;
    way.shape.blocks = static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, most));
    way.shape.blocks_y = static_cast<unsigned>(parts);
  }

  // Kept elements in the order of the walk.
  void plan_finish() {
    FinishArguments& finish = plan_.finish;
    finish.maximum = body_.reduction->kind == FusedReduction::Kind::maximum;
    const std::size_t result = inputs_ + static_cast<std::size_t>(body_.reduction->output);
    finish.walk.axes = std::max(axes_.axes_of(kept_group), 1);
    finish.walk.large = finish.elements >= most_small_indices;
    for (int a = 0; a < axes_.axes_of(kept_group); ++a) {
      finish.walk.extents[a] = Divisor(axes_.extents[a]);
      finish.walk.strides[0][a] = axes_.strides[result][a];
    }
  }

  // A sum of nothing is 0, a mean NaN, a maximum -infinity; results exist where no kept axis is
  // empty.
  void plan_empty() {
    if (!body_.reduction) return;
    FinishArguments& finish = plan_.finish;
    const FusedReduction& reduction = *body_.reduction;
    finish.elements = 1;
    for (std::size_t i = 0; i < body_.space.size(); ++i) {
      if (!reduction.axes[i]) finish.elements *= body_.space[i];
    }
    finish.maximum = reduction.kind == FusedReduction::Kind::maximum;
    if (reduction.kind == FusedReduction::Kind::mean)
      finish.scale = std::numeric_limits<double>::quiet_NaN();
    finish.walk.axes = 1;  // the result is row-major
    finish.walk.extents[0] = Divisor(finish.elements);
    finish.walk.strides[0][0] = 1;
  }

  const KernelRequest& request_;
  const FusedBody& body_;
  const int multiprocessors_;
  const std::size_t inputs_, operands_;
  std::vector<Strides> strides_;  // per operand, over the space
  AxisPlan axes_;
  std::vector<std::size_t> operand_of_;  // per place
  FusedLayout layout_;
  FusedPlan plan_;
};

}  // namespace

FusedPlan plan_fused(const KernelRequest& request, const FusedBody& body, int multiprocessors) {
  return Planner(request, body, multiprocessors).run();
}

}  // namespace tandem::cuda
