// EmbeddingBag over float32 and bfloat16 tables, and its dense gradient.
#include <cstring>

#include "engine/device/kernel_forms.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/pointwise/vector_functions.h"
#include "kernels/cpu/rows/outside_ids.h"
#include "kernels/cpu/rows/row_gradients.h"

namespace tandem {
namespace {

RowBags bags_of(const KernelRequest& r, const Shape& table) {
  RowBags bags;
  bags.rows.table_rows = table[0];
  bags.rows.columns = bags.rows.stride = row_elements(table);
  bags.rows.ids = {nullptr, r.inputs[1].type.elements(), r.inputs[1].type.dtype == DType::int64};
  bags.length = r.inputs[1].type.shape.back();
  return bags;
}

std::unique_ptr<PreparedKernel> prepare_embedding_bag(const KernelRequest& r) {
  RowBags bags = bags_of(r, r.inputs[0].type.shape);
  bags.rows.bfloat16 = r.inputs[0].type.dtype == DType::bfloat16;
  return prepared([bags, weighted = r.is_present(2), isa = isa_of(*r.facts),
                   threads = r.facts->threads, node = r.node_index](const KernelArguments& a) {
    RowBags now = bags;
    now.rows.table = a.inputs[0];
    now.rows.ids.data = a.inputs[1];
    now.rows.y = a.outputs[0];
    if (weighted) now.weights = static_cast<const float*>(a.inputs[2]);
    if (!sum_bags(now, isa, threads))
      report_first_outside(a, now.rows.ids, now.rows.table_rows, node);
  });
}

// Each thread owns rows of the table, so that sums are made in the order of the ids whatever the
// number of threads.
std::unique_ptr<PreparedKernel> prepare_embedding_bag_grad(const KernelRequest& r) {
  return prepared([bags = bags_of(r, r.outputs[0].type.shape), weighted = r.is_present(2),
                   threads = r.facts->threads, node = r.node_index,
                   &functions = vector_functions(r)](const KernelArguments& a) {
    const auto* dy = static_cast<const float*>(a.inputs[0]);
    const auto* weights = weighted ? static_cast<const float*>(a.inputs[2]) : nullptr;
    auto* dx = static_cast<float*>(a.outputs[0]);
    IdArray ids = bags.rows.ids;
    ids.data = a.inputs[1];
    const std::int64_t rows = bags.rows.table_rows, n = bags.rows.columns;
    report_outside(a, ids, rows, threads, node);
    const std::int64_t absent = absent_id_of(ids.wide ? DType::int64 : DType::int32);
    const auto row_of = [&](std::int64_t position) {
      const std::int64_t id = ids.wide ? static_cast<const std::int64_t*>(ids.data)[position]
                                       : static_cast<const std::int32_t*>(ids.data)[position];
      if (id == absent) return std::int64_t{-1};
      return std::clamp<std::int64_t>(id < 0 ? id + rows : id, 0, rows - 1);
    };
    parallel_ranges(threads, rows, 4 * n * (rows + 2 * ids.count),
                    [&](std::int64_t begin, std::int64_t end) {
                      std::memset(dx + begin * n, 0,
                                  static_cast<std::size_t>((end - begin) * n) * sizeof(float));
                      const float* from = dy;
                      for (std::int64_t i = 0; i < ids.count; from += n) {
                        for (std::int64_t l = 0; l < bags.length; ++l, ++i) {
                          const std::int64_t row = row_of(i);
                          if (row < begin || row >= end) continue;  // absent ones among them
                          float* to = dx + row * n;
                          if (weights == nullptr) {
                            functions.add_rows(from, 1, n, n, to);
                            continue;
                          }
                          for (std::int64_t c = 0; c < n; ++c) to[c] += weights[i] * from[c];
                        }
                      }
                    });
  });
}

}  // namespace

void add_bag_kernels(KernelList& list) {
  add_row_major(
      list, "cpu.embedding_bag", "EmbeddingBag",
      [](const KernelRequest& r) -> std::optional<std::string> {
        if (r.inputs[0].type.shape[0] == 0) return "a table without rows";
        if (r.outputs[0].type.dtype != DType::float32) return "sums in 16 bits";
        const bool split = r.inputs[0].type.dtype == DType::bfloat16;
        return split ? refuse_but_float32(r, {2}) : refuse_but_float32(r, {0, 2});
      },
      prepare_embedding_bag);
  add_row_major(list, "cpu.embedding_bag_grad", "EmbeddingBagGrad", only_float32({0, 2}),
                prepare_embedding_bag_grad);
}

}  // namespace tandem
