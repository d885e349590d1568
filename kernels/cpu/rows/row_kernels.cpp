// Lookups in float32 and bfloat16 tables, UniqueIndices, RowsSumOfSquares
// and RowsSum.
#include "engine/device/kernel_forms.h"
#include "engine/operators/tables/rows.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows/outside_ids.h"
#include "kernels/cpu/rows/row_gradients.h"

namespace tandem {
namespace {

std::size_t padded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

std::unique_ptr<PreparedKernel> prepare_gather_rows(const KernelRequest& r) {
  const Shape& table = r.inputs[0].type.shape;
  RowLookup lookup;
  lookup.table_rows = table[0];
  lookup.columns = lookup.stride = row_elements(table);
  lookup.ids.count = r.inputs[1].type.elements();
  lookup.ids.wide = r.inputs[1].type.dtype == DType::int64;
  lookup.bfloat16 = r.inputs[0].type.dtype == DType::bfloat16;
  lookup.widen = lookup.bfloat16 && r.outputs[0].type.dtype == DType::float32;
  return prepared([=, isa = isa_of(*r.facts), threads = r.facts->threads,
                   node = r.node_index](const KernelArguments& a) {
    RowLookup now = lookup;
    now.table = a.inputs[0];
    now.ids.data = a.inputs[1];
    now.y = a.outputs[0];
    if (!gather_rows(now, isa, threads)) report_first_outside(a, now.ids, now.table_rows, node);
  });
}

// float32, or bfloat16 that may become float32.
std::optional<std::string> refuse_table(const KernelRequest& r) {
  const DType table = r.inputs[0].type.dtype, y = r.outputs[0].type.dtype;
  const bool known = y == DType::float32 || y == DType::bfloat16;
  if (known && (table == y || table == DType::bfloat16)) return std::nullopt;
  return refused_type(table);
}

std::optional<std::string> refuse_gather_rows(const KernelRequest& r) {
  if (r.attributes().integer("axis") != 0) return "not along the first axis";
  if (r.inputs[0].type.shape[0] == 0) return "a table without rows";
  return refuse_table(r);
}

// The rows that occur, packed.
std::unique_ptr<PreparedKernel> prepare_packed_rows(const KernelRequest& r) {
  const Shape& table = r.inputs[0].type.shape;
  return prepared([rows = table[0], columns = row_elements(table),
                   bfloat16 = r.inputs[0].type.dtype == DType::bfloat16, isa = isa_of(*r.facts),
                   threads = r.facts->threads](const KernelArguments& a) {
    RowLookup lookup;
    lookup.table = a.inputs[0];
    lookup.table_rows = rows;
    lookup.columns = lookup.stride = columns;
    lookup.ids = {a.inputs[1], *static_cast<const std::int32_t*>(a.inputs[2]), true};
    lookup.y = a.outputs[0];
    lookup.bfloat16 = bfloat16;
    gather_rows(lookup, isa, threads);
  });
}

// Results that are not read go into the workspace.
class UniqueKernel final : public PreparedKernel {
 public:
  explicit UniqueKernel(const KernelRequest& r)
      : rows_(r.attributes().integer("rows")),
        threads_(r.facts->threads),
        node_(r.node_index),
        quiet_(r.attributes().flag("quiet")) {
    for (const Operand& operand : r.inputs) {
      arrays_.push_back({nullptr, operand.type.elements(), operand.type.dtype == DType::int64});
    }
    ids_ = r.outputs[UniqueOutputs::order].type.elements();
    capacity_ = r.outputs[UniqueOutputs::unique].type.elements();
    scratch_ = padded(unique_rows_scratch_bytes(ids_, rows_, threads_));
    workspace_bytes = scratch_ + padded(unique_bytes()) + padded(offset_bytes()) +
                      padded(static_cast<std::size_t>(ids_) * 4);
  }

  void run(const KernelArguments& a) noexcept override {
    for (std::size_t k = 0; k < arrays_.size(); ++k) arrays_[k].data = a.inputs[k];
    char* spare = static_cast<char*>(a.workspace) + scratch_;
    const auto output = [&](std::size_t i, std::size_t bytes) {
      void* own = spare;
      spare += padded(bytes);
      return a.outputs[i] != nullptr ? a.outputs[i] : own;
    };
    auto* unique = static_cast<std::int64_t*>(output(UniqueOutputs::unique, unique_bytes()));
    RowGroups groups;
    groups.rows = unique;
    groups.offsets = static_cast<std::int32_t*>(output(UniqueOutputs::offsets, offset_bytes()));
    groups.order = static_cast<std::int32_t*>(
        output(UniqueOutputs::order, static_cast<std::size_t>(ids_) * 4));
    groups.inverse = static_cast<std::int32_t*>(a.outputs[UniqueOutputs::inverse]);
    if (!quiet_) {  // before grouping, which then finds the ids in a cache
      for (const IdArray& ids : arrays_) report_outside(a, ids, rows_, threads_, node_);
    }
    const std::int64_t count = unique_rows(arrays_.data(), static_cast<int>(arrays_.size()), rows_,
                                           groups, a.workspace, threads_);
    const std::int32_t end = groups.offsets[count];
    parallel_ranges(threads_, capacity_ - count, (capacity_ - count) * 12,
                    [=](std::int64_t from, std::int64_t to) {
                      std::fill(unique + count + from, unique + count + to, std::int64_t{-1});
                      std::fill(groups.offsets + count + 1 + from, groups.offsets + count + 1 + to,
                                end);
                    });
    if (a.outputs[UniqueOutputs::count] != nullptr) {
      *static_cast<std::int32_t*>(a.outputs[UniqueOutputs::count]) =
          static_cast<std::int32_t>(count);
    }
  }

 private:
  std::size_t unique_bytes() const { return static_cast<std::size_t>(capacity_) * 8; }
  std::size_t offset_bytes() const { return static_cast<std::size_t>(capacity_ + 1) * 4; }

  std::int64_t rows_, ids_ = 0, capacity_ = 0;
  int threads_;
  std::int32_t node_;
  bool quiet_;
  std::size_t scratch_ = 0;
  std::vector<IdArray> arrays_;
};

std::unique_ptr<PreparedKernel> prepare_sum_of_squares(const KernelRequest& r) {
  const std::int64_t columns = r.attributes().integer("columns");
  const int threads = r.facts->threads;
  const std::int64_t groups = r.inputs[1].type.elements() - 1;
  return prepared(
      [gradients = GradientOperands(r, 3, columns), isa = isa_of(*r.facts),
       threads](const KernelArguments& a) mutable {
        *static_cast<float*>(a.outputs[0]) = static_cast<float>(
            rows_sum_of_squares(gradients.of(a, 0, 1, 2), a.workspace, isa, threads));
      },
      row_scratch_bytes(groups, columns, threads));
}

std::unique_ptr<PreparedKernel> prepare_sum(const KernelRequest& r) {
  const Shape& shape = r.outputs[0].type.shape;
  const std::int64_t rows = shape[0], columns = row_elements(shape);
  const int threads = r.facts->threads;
  return prepared(
      [gradients = GradientOperands(r, 3, columns), isa = isa_of(*r.facts),
       threads](const KernelArguments& a) mutable {
        segment_sum(gradients.of(a, 0, 1, 2), static_cast<float*>(a.outputs[0]), a.workspace, isa,
                    threads);
      },
      row_scratch_bytes(rows, columns, threads));
}

std::optional<std::string> refuse_sum(const KernelRequest& r) {
  if (r.inputs[3].type.dtype != DType::float32) return "gradients that are not float32";
  return refuse_weights(r, 3);
}

}  // namespace

void add_row_kernels(KernelList& list) {
  add_row_major(list, "cpu.gather_rows", "Gather", refuse_gather_rows, prepare_gather_rows);
  add_row_major(list, "cpu.packed_rows", "GatherRows", refuse_table, prepare_packed_rows);
  add_row_major(list, "cpu.unique_indices", "UniqueIndices", refuse_nothing, makes<UniqueKernel>());
  add_row_major(
      list, "cpu.rows_sum_of_squares", "RowsSumOfSquares",
      [](const KernelRequest& r) {
        const auto reason = refuse_weights(r, 3);
        return reason ? reason : refuse_gradients(r, 3);
      },
      prepare_sum_of_squares);
  add_row_major(list, "cpu.rows_sum", "RowsSum", refuse_sum, prepare_sum);
}

}  // namespace tandem
