// Updates of single elements and many of them as one GroupedUpdate; Accumulate, ClipScale and
// LossScale.
// An update is a stream of memory: one plain loop, cut into equal parts before it starts.
#include <bit>
#include <cmath>

#include "engine/device/kernel_forms.h"
#include "engine/device/update_proposal.h"
#include "engine/operators/operator.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided.h"
#include "kernels/cpu/strided_copy.h"
#include "kernels/cpu/updates.h"
#include "kernels/reference/scalar_operators.h"
#include "kernels/shared/loss_scale.h"

namespace tandem {
namespace {

// Updates of the kinds that treat each element independently of the others.
class ElementUpdate final : public DenseUpdate {
 public:
  explicit ElementUpdate(const KernelRequest& r) : DenseUpdate(r) {
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < update_count(r); ++i) {
      starts_.push_back(total);
      total += r.inputs[static_cast<std::size_t>(i) * sizes_.inputs].type.elements();
    }
    starts_.push_back(total);
    // Master and states are read and written, the gradient is read.
    const std::int64_t bytes = 12 + 8 * std::popcount(rule_.layout().kept);
    parts_ = parts_for(r.facts->threads, total * bytes, grain_bytes);
  }

  void run(const KernelArguments& a) noexcept override {
    const std::optional<RowStep> step = rule_.step(a.inputs + scalars_);
    parallel_parts(parts_, [&](int part) {
      const Range range = part_of(starts_.back(), part, parts_, 1024);
      // The group in which the range begins, then all that it reaches.
      std::size_t group = static_cast<std::size_t>(
          std::upper_bound(starts_.begin(), starts_.end(), range.begin) - starts_.begin() - 1);
      for (std::int64_t at = range.begin; at < range.end; ++group) {
        const std::int64_t end = std::min(range.end, starts_[group + 1]);
        if (end > at) run_range(a, group, at - starts_[group], end - at, step);
        at = std::max(at, end);
      }
    });
  }

 private:
  void run_range(const KernelArguments& a, std::size_t group, std::int64_t begin, std::int64_t n,
                 const std::optional<RowStep>& step) const {
    if (!half_grad_ && !sizes_.weight) {
      run_floats(a, group, begin, n, step, gradient(a, group, begin, n, nullptr));
      return;
    }
    // 16-bit operands are converted in tiles that stay in the first cache.
    alignas(64) float wide[tile];
    for (const std::int64_t end = begin + n; begin < end; begin += tile) {
      const std::int64_t part = std::min(end - begin, tile);
      run_floats(a, group, begin, part, step,
                 step ? gradient(a, group, begin, part, wide) : nullptr);
      write_weight(a, group, begin, part);
    }
  }

  void run_floats(const KernelArguments& a, std::size_t group, std::int64_t begin, std::int64_t n,
                  const std::optional<RowStep>& step, const float* grad) const {
    float* states[most_states] = {};
    keep_master(a, group, begin, n);
    for (int k = 0; k < most_states; ++k) {
      if (!rule_.layout().has(k)) continue;
      keep_state(a, group, k, begin, n);
      states[k] = state(a, group, k) + begin;
    }
    if (step) update_elements(*step, output(a, group, 0) + begin, states, grad, n, isa_);
  }

  static constexpr std::int64_t tile = 1024;

  std::vector<std::int64_t> starts_;  // the first element of each group
};

std::optional<std::string> refuse_update(const KernelRequest& r) {
  const UpdateKind& kind = update_kind(*r.node);
  if (!kind.elementwise()) return "updates of kind " + kind.op;
  return refuse_update_operands(r);
}

Kernel update_kernel(std::string name, std::string op) {
  return {std::move(name), std::move(op), refuse_update, propose_update, makes<ElementUpdate>()};
}

std::unique_ptr<PreparedKernel> prepare_accumulate(const KernelRequest& r) {
  const bool first = r.attributes().flag("first");
  const std::int64_t count = r.inputs[0].type.elements();
  return prepared([=, threads = r.facts->threads,
                   &functions = vector_functions(r)](const KernelArguments& a) {
    const TileFunction add = functions.tile[static_cast<int>(first ? TileOp::copy : TileOp::add)];
    const float *sum = static_cast<const float*>(a.inputs[0]),
                *grad = static_cast<const float*>(a.inputs[1]);
    float* y = static_cast<float*>(a.outputs[0]);
    parallel_ranges(
        threads, count, count * 12,
        [&](std::int64_t begin, std::int64_t end) {
          add({grad + begin, sum + begin, nullptr, y + begin, end - begin, 0, 0});
        },
        1024);
  });
}

std::unique_ptr<PreparedKernel> prepare_clip_scale(const KernelRequest& r) {
  const std::size_t count = r.inputs.size();
  const double max_norm = r.attributes().number("max_norm");
  return prepared([=](const KernelArguments& a) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i)
      sum += static_cast<double>(*static_cast<const float*>(a.inputs[i]));
    const double norm = std::sqrt(sum), ratio = max_norm / (norm + 1e-6);
    // A norm that is not a number stays one: the comparison is false for it.
    if (a.outputs[0] != nullptr)
      *static_cast<float*>(a.outputs[0]) = static_cast<float>(ratio > 1 ? 1 : ratio);
    if (a.outputs[1] != nullptr) *static_cast<float*>(a.outputs[1]) = static_cast<float>(norm);
  });
}

std::unique_ptr<PreparedKernel> prepare_loss_scale(const KernelRequest& r) {
  const std::size_t count = r.inputs.size();
  return prepared([=, settings = loss_scale_settings(r.attributes())](const KernelArguments& a) {
    double squares = 0;
    for (std::size_t i = 4; i < count; ++i)
      squares += static_cast<double>(*static_cast<const float*>(a.inputs[i]));
    loss_scale_step(settings, LossScaleOperands<float>(a.inputs, a.outputs), squares);
  });
}

std::vector<Proposal> propose_accumulate(const KernelRequest& r) {
  Proposal proposal;
  LayoutConstraint constraint{LayoutConstraint::Kind::row_major, {}};
  const Operand& sum = r.inputs[0];
  if (is_dense(sum.layout, sum.type.shape))
    constraint = {LayoutConstraint::Kind::exact, sum.layout};
  proposal.inputs = {constraint, constraint};
  proposal.outputs = {constraint};
  return {proposal};
}

}  // namespace

DenseUpdate::DenseUpdate(const KernelRequest& r)
    : rule_(r),
      sizes_(update_group(*r.node)),
      functions_(vector_functions(r)),
      isa_(isa_of(*r.facts)),
      scalars_(first_scalar(*r.node)) {
  const DType grad = r.inputs[1].type.dtype;
  half_grad_ = grad != DType::float32;
  widen_ = grad == DType::float16 ? functions_.widen_float16 : functions_.widen;
  const bool float16 = r.attributes().text("weight") == "float16";
  narrow_ = float16 ? functions_.narrow_float16 : functions_.narrow;
}

const float* DenseUpdate::gradient(const KernelArguments& a, std::size_t group, std::int64_t first,
                                   std::int64_t n, float* room) const {
  const void* const grad = input(a, group, 1);
  if (!half_grad_) return static_cast<const float*>(grad) + first;
  widen_(static_cast<const std::uint16_t*>(grad) + first, room, n);
  return room;
}

void DenseUpdate::keep(const void* from, float* to, std::int64_t first, std::int64_t n) const {
  if (from == to || n == 0) return;
  const float* const before = static_cast<const float*>(from) + first;
  functions_.tile[static_cast<int>(TileOp::copy)]({before, nullptr, nullptr, to + first, n, 0, 0});
}

void DenseUpdate::write_weight(const KernelArguments& a, std::size_t group, std::int64_t first,
                               std::int64_t n) const {
  void* const weight = sizes_.weight ? a.outputs[group * sizes_.outputs + sizes_.results] : nullptr;
  if (weight == nullptr) return;
  narrow_(output(a, group, 0) + first, static_cast<std::uint16_t*>(weight) + first, n);
}

std::optional<std::string> refuse_update_operands(const KernelRequest& r) {
  const UpdateKind& kind = update_kind(*r.node);
  const std::size_t scalars = first_scalar(*r.node);
  const UpdateGroup sizes = update_group(*r.node);
  for (std::size_t i = 0; i < scalars; ++i) {
    const std::size_t k = i % sizes.inputs;
    const DType dtype = r.inputs[i].type.dtype;
    if (!r.inputs[i].present || dtype == DType::float32 || k == sizes.tensors) continue;
    const bool half = dtype == DType::bfloat16 || dtype == DType::float16;
    if (k == 1 && half && r.inputs[1].type.dtype == dtype) continue;
    return refused_type(dtype);
  }
  for (std::size_t i = 1; i < scalars; i += sizes.inputs) {
    if (r.inputs[i].type.dtype != r.inputs[1].type.dtype) return "gradients of several types";
  }
  for (std::size_t i : {scalars, scalars + 2}) {
    if (r.inputs[i].type.dtype != DType::float32) return "scalars that are not float32";
  }
  for (std::size_t i = 0; i < r.outputs.size(); ++i) {
    // A state that these settings do not need has an empty output, which is not read.
    const std::size_t k = i % sizes.outputs;
    const Shape& master = r.inputs[i / sizes.outputs * sizes.inputs].type.shape;
    const bool made =
        k == 0 || (k < sizes.results && kind.keeps_state(k - 1, r.attributes(), master));
    if (!r.outputs[i].present && made) return "a result that nothing reads";
  }
  return std::nullopt;
}

std::string update_kernel_name(const UpdateKind& kind, const std::string& prefix) {
  return "cpu." + prefix + kernel_name(kind.op);
}

void add_kernels_of_kind(KernelList& list, const UpdateKind& kind,
                         decltype(Kernel::propose) propose, decltype(Kernel::prepare) prepare) {
  const auto add = [&](const std::string& prefix, std::string op) {
    list.push_back({update_kernel_name(kind, prefix), std::move(op),
                    [wanted = kind.op](const KernelRequest& r) -> std::optional<std::string> {
                      const std::string& own = update_kind(*r.node).op;
                      if (own != wanted) return "updates of kind " + own;
                      return refuse_update_operands(r);
                    },
                    propose, prepare});
  };
  add("", kind.op);
  add("grouped_", "GroupedUpdate");
}

void add_update_kernels(KernelList& list) {
  for (const UpdateKind& kind : update_kinds()) {
    if (kind.elementwise()) list.push_back(update_kernel(update_kernel_name(kind), kind.op));
  }
  list.push_back(update_kernel("cpu.grouped_update", "GroupedUpdate"));
  list.push_back({"cpu.accumulate", "Accumulate", only_float32({0, 1}), propose_accumulate,
                  prepare_accumulate});
  add_row_major(list, "cpu.clip_scale", "ClipScale", only_float32({0}), prepare_clip_scale);
  add_row_major(list, "cpu.loss_scale", "LossScale", only_float32({0}), prepare_loss_scale);
}

}  // namespace tandem
