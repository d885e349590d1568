// RowsUpdate: the sums of a table's gradients by row and the update of these rows in one; and the
// updates by rows whose gradient is dense.
#include <algorithm>
#include <memory>
#include <utility>

#include "engine/operators/grouped_update.h"
#include "kernels/cuda/rows/row_lists.h"
#include "kernels/cuda/rows/row_updates.h"

namespace tandem::cuda {
namespace {

/// Master and states of an update; the tail of a split master is input and output `tail`.
class TableOperands {
 public:
  TableOperands(const KernelRequest& r, std::size_t first_state, std::size_t tail = 0)
      : first_state_(first_state), tail_(tail) {
    const TensorType& master = r.inputs[0].type;
    rows_ = master.rank() < 1 ? 1 : master.shape[0];
    columns_ = rows_ == 0 ? 0 : master.elements() / rows_;
    bytes_.push_back(master.bytes());
    const std::vector<UpdateState>& states = update_kind(*r.node).states;
    for (std::size_t k = 0; k < states.size(); ++k) {
      const bool kept = r.is_present(first_state + k);
      by_row_.push_back(states[k].shape == StateShape::one_per_row);
      kept_.push_back(kept);
      bytes_.push_back(kept ? r.inputs[first_state + k].type.bytes() : 0);
    }
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }

  /// The outputs, which begin as what was there before; in place nothing moves.
  RowTable of(GpuContext& gpu, const KernelArguments& a) const {
    for (std::size_t k = 0; k < bytes_.size(); ++k) {
      const std::size_t input = k == 0 ? 0 : first_state_ + k - 1;
      if (k == 0 || kept_[k - 1])
        copy_bytes(gpu, a.outputs[k], a.inputs[input], bytes_[k], a.queue);
    }
    RowTable table{};
    table.columns = columns_;
    if (tail_ == 0) {
      table.master = static_cast<float*>(a.outputs[0]);
    } else {
      copy_bytes(gpu, a.outputs[tail_], a.inputs[tail_], bytes_[0], a.queue);
      table.tops = static_cast<std::uint16_t*>(a.outputs[0]);
      table.tails = static_cast<std::int16_t*>(a.outputs[tail_]);
    }
    for (std::size_t k = 0; k < by_row_.size(); ++k) {
      if (!kept_[k]) continue;
      auto* const state = static_cast<float*>(a.outputs[1 + k]);
      (by_row_[k] ? table.row_state : table.states[k]) = state;
    }
    return table;
  }

 private:
  std::size_t first_state_, tail_;  // tail_ 0: none
  std::int64_t rows_ = 0, columns_ = 0;
  std::vector<std::size_t> bytes_;
  std::vector<bool> by_row_, kept_;  // by state
};

template <int... parts>
RowUpdater updater_of(const KernelRequest& r, std::integer_sequence<int, parts...>) {
  RowUpdater updater;
  const auto try_part = [&](RowUpdater found) {
    if (found) updater = std::move(found);
  };
  (try_part(row_updater_of_part<parts>(update_kind(*r.node).op, r.attributes())), ...);
  if (!updater) fail_update(update_kind(*r.node).op, "has no rule for rows");
  return updater;
}
RowUpdater updater_of(const KernelRequest& r) {
  return updater_of(r, std::make_integer_sequence<int, rule_parts>{});
}

std::unique_ptr<PreparedKernel> rows_update(const KernelRequest& r, const Gpu& gpu) {
  const RowsOperands at(*r.node);
  const TableOperands tensors(r, 1, at.split ? at.tail() : 0);
  const GradientOperands gradients(r, at.gradients(), tensors.columns());
  const WalkPlan plan{gradients.positions(), tensors.columns(), update_kind(*r.node).whole_row};
  return prepared(
      [=, update = updater_of(r), lazy = r.attributes().flag("lazy"),
       capacity = r.inputs[at.unique()].type.elements()](const KernelArguments& a) {
        RowUpdateCall call;
        call.plan = plan;
        call.scalars = StepScalars(a, at.scalars());
        call.table = tensors.of(*gpu, a);
        call.rows = tensors.rows();
        call.lazy = lazy;
        call.gradients = gradients.of(a, at.order());
        call.groups = {static_cast<const std::int64_t*>(a.inputs[at.unique()]),
                       static_cast<const std::int32_t*>(a.inputs[at.offsets()]),
                       static_cast<const std::int32_t*>(a.inputs[at.count()]), capacity};
        call.workspace = a.workspace;
        if (tensors.rows() > 0 && tensors.columns() > 0) update(*gpu, call, a.queue);
      },
      plan.workspace_bytes());
}

/// A dense update: row i has only gradient row i.
std::unique_ptr<PreparedKernel> dense_update(const KernelRequest& r, const Gpu& gpu) {
  const TableOperands tensors(r, 2);
  PositionGradients gradients{};
  gradients.count = 1;
  gradients.type = *floats_of(r.inputs[1].type.dtype);
  gradients.columns = tensors.columns();
  gradients.lookups[0].bag = 1;
  const WalkPlan plan{0, tensors.columns(),
                      update_kind(*r.node).whole_row};  // no row has two positions
  return prepared(
      [=, update = updater_of(r), scalars = first_scalar(*r.node)](const KernelArguments& a) {
        RowUpdateCall call;
        call.plan = plan;
        call.scalars = StepScalars(a, scalars);
        call.table = tensors.of(*gpu, a);
        call.gradients = gradients;
        call.gradients.lookups[0].dy = a.inputs[1];
        call.groups = {nullptr, nullptr, nullptr, tensors.rows()};
        if (tensors.rows() > 0 && tensors.columns() > 0) update(*gpu, call, a.queue);
      });
}

// What all updates by rows need of master, states and scalars.
std::optional<std::string> refuse_tensors(const KernelRequest& r, std::size_t first_state,
                                          std::size_t scalars, bool split) {
  const DType master = r.inputs[0].type.dtype;
  if (master != (split ? DType::bfloat16 : DType::float32)) return refused_type(master);
  const std::size_t states = update_kind(*r.node).states.size();
  for (std::size_t k = 0; k <= states; ++k) {
    const bool used = k == 0 || r.is_present(first_state + k - 1);
    if (used && !r.outputs[k].present) return "a result that nothing reads";
    if (k > 0 && used && r.inputs[first_state + k - 1].type.dtype != DType::float32)
      return refused_type(r.inputs[first_state + k - 1].type.dtype);
  }
  return refuse_scalars(r, scalars);
}

std::optional<std::string> refuse_rows_update(const KernelRequest& r) {
  const RowsOperands at(*r.node);
  if (auto reason = refuse_tensors(r, 1, at.scalars(), at.split)) return reason;
  if (at.split && !r.outputs[at.tail()].present) return "a result that nothing reads";
  return refuse_gradients(r, at.gradients());
}

std::optional<std::string> refuse_dense_update(const KernelRequest& r) {
  const DType gradient = r.inputs[1].type.dtype;
  if (!floats_of(gradient)) return "a gradient of " + std::string(name_of(gradient));
  return refuse_tensors(r, 2, first_scalar(*r.node), false);
}

}  // namespace

void add_row_updates(KernelList& list, const Gpu& gpu) {
  add_row_major(list, "cuda.rows_update", "RowsUpdate", refuse_rows_update, on(gpu, rows_update));
  for (const UpdateKind& kind : update_kinds()) {
    if (!kind.whole_row) continue;
    add_row_major(list, "cuda." + kind.op, kind.op, refuse_dense_update, on(gpu, dense_update));
  }
}

}  // namespace tandem::cuda
