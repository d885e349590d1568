// RowsUpdate, and dense updates of the kinds that work on whole rows.
#include <cstring>
#include <optional>

#include "engine/device/kernel_forms.h"
#include "engine/operators/grouped_update.h"
#include "engine/operators/tables/rows.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows/row_gradients.h"
#include "kernels/cpu/rows/row_rule.h"
#include "kernels/cpu/updates.h"

namespace tandem {
namespace {

/// Master and states of an update; the tail of a split master is input and output `tail`.
class RowTensors {
 public:
  RowTensors(const KernelRequest& r, std::size_t first_state, std::size_t tail = 0)
      : first_state_(first_state), tail_(tail) {
    bytes_.push_back(r.inputs[0].type.bytes());
    for (std::size_t k = 0; k < update_kind(*r.node).states.size(); ++k) {
      const bool kept = r.is_present(first_state + k);
      bytes_.push_back(kept ? r.inputs[first_state + k].type.bytes() : 0);
    }
  }

  /// The outputs, which begin as what was there before; in place nothing moves.
  RowTable of(const KernelArguments& a) const {
    for (std::size_t k = 0; k < bytes_.size(); ++k) {
      const void* before = a.inputs[k == 0 ? 0 : first_state_ + k - 1];
      if (before != a.outputs[k] && bytes_[k] > 0) std::memcpy(a.outputs[k], before, bytes_[k]);
    }
    RowTable table;
    if (tail_ > 0) {
      if (a.inputs[tail_] != a.outputs[tail_])
        std::memcpy(a.outputs[tail_], a.inputs[tail_], bytes_[0]);
      table.tops = static_cast<std::uint16_t*>(a.outputs[0]);
      table.tails = static_cast<std::int16_t*>(a.outputs[tail_]);
    } else {
      table.weights = static_cast<float*>(a.outputs[0]);
    }
    for (std::size_t k = 1; k < bytes_.size(); ++k)
      table.states[k - 1] = static_cast<float*>(a.outputs[k]);  // not read where it is not kept
    return table;
  }

 private:
  std::size_t first_state_, tail_;  // tail_ 0: none
  std::vector<std::size_t> bytes_;
};

class RowsUpdateKernel final : public PreparedKernel {
 public:
  explicit RowsUpdateKernel(const KernelRequest& r)
      : at_(*r.node),
        rule_(r),
        tensors_(r, 1, at_.split ? at_.tail() : 0),
        lazy_(r.attributes().flag("lazy")),
        isa_(isa_of(*r.facts)),
        threads_(r.facts->threads),
        gradients_(r, at_.gradients(), row_elements(r.inputs[0].type.shape)),
        table_rows_(r.inputs[0].type.shape[0]) {
    workspace_bytes =
        row_scratch_bytes(r.inputs[at_.unique()].type.elements(), gradients_.columns(), threads_);
  }

  void run(const KernelArguments& a) noexcept override {
    RowTable table = tensors_.of(a);
    const std::optional<RowStep> step = rule_.step(a.inputs + at_.scalars());
    if (!step) return;
    table.rows = a.inputs[at_.unique()];
    const RowGradients& gradients = gradients_.of(a, at_.order(), at_.offsets(), at_.count());
    update_rows(*step, table, gradients, a.workspace, isa_, threads_);
    if (!lazy_) update_rest(*step, table, gradients.groups);
  }

 private:
  // The step of a gradient of zeros for the rows between those of the groups.
  void update_rest(const RowStep& step, const RowTable& table, std::int64_t groups) const {
    const auto* rows = static_cast<const std::int64_t*>(table.rows);
    const std::int64_t columns = gradients_.columns();
    parallel_ranges(threads_, table_rows_, table_rows_ * columns * 24,
                    [&](std::int64_t begin, std::int64_t end) {
                      const std::int64_t* next = std::lower_bound(rows, rows + groups, begin);
                      for (std::int64_t row = begin; row < end; ++next) {
                        const std::int64_t stop =
                            next == rows + groups ? end : std::min(*next, end);
                        update_range(step, table, row * columns, stop * columns);
                        row = stop + 1;
                      }
                    });
  }

  void update_range(const RowStep& step, const RowTable& table, std::int64_t begin,
                    std::int64_t end) const {
    alignas(64) static constexpr float zeros[tile] = {};
    alignas(64) float whole[tile];  // part of a split table
    const bool split = table.tops != nullptr;
    for (; begin < end; begin += tile) {
      const std::int64_t n = std::min(end - begin, tile);
      float* w = split ? whole : table.weights + begin;
      if (split) join_rows(table.tops + begin, table.tails + begin, w, n, isa_);
      float* states[most_states] = {};
      for (int k = 0; k < most_states; ++k) {
        if (step.layout.has(k)) states[k] = table.states[k] + begin;
      }
      update_elements(step, w, states, zeros, n, isa_);
      if (split) split_rows(w, table.tops + begin, table.tails + begin, n, isa_);
    }
  }

  static constexpr std::int64_t tile = 1024;

  RowsOperands at_;
  RowRule rule_;
  RowTensors tensors_;
  bool lazy_;
  Isa isa_;
  int threads_;
  GradientOperands gradients_;
  std::int64_t table_rows_;
};

/// An update of whole rows whose gradient is dense: each row has one gradient row.
class DenseRowsUpdate final : public PreparedKernel {
 public:
  explicit DenseRowsUpdate(const KernelRequest& r)
      : rule_(r),
        tensors_(r, 2),
        scalars_(2 + update_kind(*r.node).states.size()),
        isa_(isa_of(*r.facts)),
        threads_(r.facts->threads) {
    const TensorType& master = r.inputs[0].type;
    const std::int64_t rows = master.shape[0];
    for (std::int64_t row = 0; row < rows; ++row) rows_.push_back(row);
    gradients_.columns = rows == 0 ? 0 : master.elements() / rows;
    gradients_.bfloat16 = r.inputs[1].type.dtype == DType::bfloat16;
    gradients_.arrays = &gradient_;
    gradients_.count = 1;
    gradients_.groups = rows;
    gradient_.rows = rows;
    gradient_.stride = gradients_.columns;
    workspace_bytes = row_scratch_bytes(rows, gradients_.columns, threads_);
  }

  void run(const KernelArguments& a) noexcept override {
    RowTable table = tensors_.of(a);
    const std::optional<RowStep> step = rule_.step(a.inputs + scalars_);
    if (!step) return;
    table.rows = rows_.data();
    gradient_.data = a.inputs[1];
    update_rows(*step, table, gradients_, a.workspace, isa_, threads_);
  }

 private:
  RowRule rule_;
  RowTensors tensors_;
  std::size_t scalars_;
  Isa isa_;
  int threads_;
  std::vector<std::int64_t> rows_;
  GradientArray gradient_;
  RowGradients gradients_;
};

// What all updates by rows need of master, states and scalars.
std::optional<std::string> refuse_tensors(const KernelRequest& r, std::size_t first_state,
                                          std::size_t scalars, bool split = false) {
  for (std::size_t i : {std::size_t{0}, scalars, scalars + 2}) {
    const DType wanted = split && i == 0 ? DType::bfloat16 : DType::float32;
    if (r.inputs[i].type.dtype != wanted) return "an operand that is not float32";
  }
  const std::size_t states = update_kind(*r.node).states.size();
  for (std::size_t k = 0; k <= states; ++k) {
    const bool used = k == 0 || r.is_present(first_state + k - 1);
    if (used && !r.outputs[k].present) return "a result that nothing reads";
  }
  return std::nullopt;
}

std::optional<std::string> refuse_rows_update(const KernelRequest& r) {
  const RowsOperands at(*r.node);
  const UpdateKind& kind = update_kind(*r.node);
  if (!kind.elementwise() && !r.attributes().flag("lazy")) return kind.op + " of every row";
  if (auto reason = refuse_tensors(r, 1, at.scalars(), at.split)) return reason;
  if (at.split && !r.outputs[at.tail()].present) return "a result that nothing reads";
  if (auto reason = refuse_weights(r, at.gradients())) return reason;
  return refuse_gradients(r, at.gradients());
}

std::optional<std::string> refuse_dense_rows(const KernelRequest& r) {
  if (update_group(*r.node).weight) return "a weight in addition to the master";
  if (auto reason = refuse_tensors(r, 2, 2 + update_kind(*r.node).states.size())) return reason;
  return refuse_gradients(r, 1);
}

}  // namespace

void add_row_update_kernels(KernelList& list) {
  add_row_major(list, "cpu.rows_update", "RowsUpdate", refuse_rows_update,
                makes<RowsUpdateKernel>());
  for (const UpdateKind& kind : update_kinds()) {
    if (!kind.whole_row) continue;
    add_row_major(list, update_kernel_name(kind), kind.op, refuse_dense_rows,
                  makes<DenseRowsUpdate>());
  }
}

}  // namespace tandem
