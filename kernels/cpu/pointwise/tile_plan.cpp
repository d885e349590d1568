#include "kernels/cpu/pointwise/tile_plan.h"

#include <cassert>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided.h"

namespace tandem {

TilePlan::TilePlan(const KernelRequest& request) {
  [[maybe_unused]] const auto reason = compile_tiles(request, program);
  assert(!reason);
  plan_axes(request);
  plan_tiles();
  plan_operands();
  plan_parts(request);
}

// Groups: 0 = kept (or no reduction), 1 = reduced, 2 = kept and innermost.
void TilePlan::plan_axes(const KernelRequest& request) {
  const Shape& space = program.space;
  elements = element_count(space);
  const int count = program.inputs + program.outputs;
  operands.resize(count);
  std::vector<std::vector<std::int64_t>> strides(count + 1,
                                                 std::vector<std::int64_t>(space.size(), 0));
  int key = -1;
  for (int i = 0; i < count; ++i) {
    const bool output = i >= program.inputs;
    const Operand& operand = output ? request.outputs[i - program.inputs] : request.inputs[i];
    const bool used = output ? program.output_direct[i - program.inputs] : program.input_used[i];
    operands[i].dtype = operand.type.dtype;
    operands[i].bytes = size_of(operand.type.dtype);
    if (!used) continue;
    operands[i].access = TileAccess::direct;
    strides[i] = strides_over(operand, space);
    const bool full = operand.type.shape == space && is_dense(operand.layout, space);
    if (full && (key < 0 || (output && key < program.inputs))) key = i;
  }
  if (program.reduction) strides[count] = strides_of_result(request);
  if (key < 0) {
    for (int i = 0; i < count && key < 0; ++i) {
      if (operands[i].access == TileAccess::direct && strides[i].size() == space.size()) key = i;
    }
  }
  std::vector<int> order;
  if (key >= 0) {
    order = memory_order(Layout{0, strides[key]}, space);
  } else {
    for (std::size_t i = 0; i < space.size(); ++i) order.push_back(static_cast<int>(i));
  }
  std::erase_if(order, [&](int axis) { return space[axis] == 1; });
  const std::vector<int> group_of = order_groups(order);
  std::vector<StridedAxis> joined;
  for (std::size_t i = 0; i < order.size(); ++i) {
    StridedAxis axis{space[order[i]], group_of[i], {}};
    for (const auto& s : strides) axis.strides.push_back(s[order[i]]);
    joined.push_back(std::move(axis));
  }
  joined = collapse(joined);
  if (joined[0].strides.empty()) joined[0].strides.assign(count + 1, 0);
  assert(joined.size() <= max_tile_axes);
  axes = static_cast<int>(joined.size());
  for (int a = 0; a < axes; ++a) {
    extents[a] = joined[a].extent;
    groups[a] = joined[a].group;
    for (int i = 0; i < count; ++i) operands[i].strides[a] = joined[a].strides[i];
    result_strides[a] = joined[a].strides[count];
  }
}

// Strides of the reduced output over the whole space; 0 on the reduced axes.
std::vector<std::int64_t> TilePlan::strides_of_result(const KernelRequest& request) const {
  const TileReduction& reduction = *program.reduction;
  const Operand& y = request.outputs[reduction.output];
  std::vector<std::int64_t> strides(program.space.size(), 0);
  const bool keepdims = y.type.rank() == program.space.size();
  std::size_t own = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    if (!reduction.axes[i]) strides[i] = y.layout.strides[own];
    if (keepdims || !reduction.axes[i]) ++own;
  }
  return strides;
}

// Brings the axes into the order kept, reduced, kept and innermost; returns their groups.
std::vector<int> TilePlan::order_groups(std::vector<int>& order) const {
  if (!program.reduction) return std::vector<int>(order.size(), 0);
  const std::vector<char>& is_reduced = program.reduction->axes;
  std::vector<int> by_group[3];
  std::size_t tail = order.size();
  while (tail > 0 && !is_reduced[order[tail - 1]]) --tail;
  if (tail == 0) tail = order.size();  // nothing is reduced
  for (std::size_t i = 0; i < order.size(); ++i) {
    by_group[is_reduced[order[i]] ? 1 : i >= tail ? 2 : 0].push_back(order[i]);
  }
  std::vector<int> group_of;
  order.clear();
  for (int g = 0; g < 3; ++g) {
    order.insert(order.end(), by_group[g].begin(), by_group[g].end());
    group_of.insert(group_of.end(), by_group[g].size(), g);
  }
  return group_of;
}

void TilePlan::plan_tiles() {
  if (elements == 0) return;
  cut = axes - 1;
  inner = 1;
  while (cut > 0 && inner * extents[cut] <= tile_elements) inner *= extents[cut--];
  if (inner * extents[cut] <= tile_elements) {
    chunk = extents[cut];
  } else {
    chunk = std::min(extents[cut], tile_elements / inner);
  }
  const std::int64_t chunks = (extents[cut] + chunk - 1) / chunk;
  const Digit cut_digit{cut, chunks, chunk};
  std::int64_t kept_inner = 1;
  for (int a = 0; a < axes; ++a) {
    if (groups[a] == 2) kept_inner *= extents[a];
    if (groups[a] == 1) reduced *= extents[a];
  }
  const bool reduces = program.reduction.has_value();
  final_in_tile = reduces && groups[cut] == 0;
  if (!reduces || final_in_tile) {
    for (int a = 0; a < cut; ++a) unit_digits.push_back({a, extents[a], 1});
    unit_digits.push_back(cut_digit);
  } else {
    const auto digits_of = [&](int axis) -> std::vector<Digit>& {
      return groups[axis] == 1 ? step_digits : unit_digits;
    };
    for (int a = 0; a < cut; ++a) digits_of(a).push_back({a, extents[a], 1});
    digits_of(cut).push_back(cut_digit);
  }
  for (const Digit& d : unit_digits) units *= d.count;
  for (const Digit& d : step_digits) steps *= d.count;
  if (reduces) {
    if (groups[cut] == 2) {
      unit_width = inner * chunk;
      row_width = 0;  // the tile itself
    } else {
      unit_width = kept_inner;
      row_width = kept_inner;
    }
  }
}

void TilePlan::plan_operands() {
  staging = program.registers;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    TileOperand& operand = operands[i];
    if (operand.access == TileAccess::unused || elements == 0) continue;
    const bool written = static_cast<int>(i) >= program.inputs;
    operand.convert = !written && operand.dtype == DType::boolean;
    std::int64_t expected = 1;
    bool contiguous = true;
    for (int a = axes - 1; a >= cut; --a) {
      const std::int64_t extent = a == cut ? chunk : extents[a];
      contiguous &= extent == 1 || operand.strides[a] == expected;
      expected *= extent;
    }
    bool constant = operand.strides[cut] == 0 || chunk == extents[cut];
    for (int a = 0; a < cut; ++a) constant &= operand.strides[a] == 0;
    if (contiguous && !operand.convert) continue;
    operand.access = constant && !written ? TileAccess::pattern : TileAccess::staged;
    operand.staging = staging;
    staging += operand.bytes == 8 ? 2 : 1;
  }
  convert_staging = staging++;  // bytes before they become floats
  part_bytes = static_cast<std::size_t>(staging) * register_bytes;
}

void TilePlan::plan_parts(const KernelRequest& request) {
  double bytes = 0;
  for (const Operand& x : request.inputs) bytes += static_cast<double>(x.type.bytes());
  for (const Operand& y : request.outputs) bytes += static_cast<double>(y.type.bytes());
  const double tiles = static_cast<double>(units) * static_cast<double>(steps);
  const double work = bytes / 8 + program.cost * static_cast<double>(elements) / 1024 + 30 * tiles;
  parts = parts_for(request.facts->threads, static_cast<std::int64_t>(work), 8000);
  if (program.reduction && !final_in_tile && units < 2 * parts && units % parts != 0 &&
      steps >= parts) {
    by_steps = true;
  } else {
    parts = static_cast<int>(std::min<std::int64_t>(parts, std::max<std::int64_t>(units, 1)));
  }
  by_steps = by_steps && parts > 1;
}

std::size_t TilePlan::workspace_bytes() const {
  const std::size_t totals = by_steps ? static_cast<std::size_t>(parts * units * unit_width) : 0;
  return part_bytes * static_cast<std::size_t>(parts) + sizeof(double) * totals;
}

}  // namespace tandem
