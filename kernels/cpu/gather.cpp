// Rows looked up by index, and their gradient. Each thread owns rows of the result, so that sums
// are made in the order of the indices whatever the number of threads.
#include <algorithm>
#include <cstring>

#include "engine/operators/operator.h"
#include "engine/operators/tables/rows.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/pointwise/vector_functions.h"

namespace tandem {
namespace {

struct Lookup {
  std::int64_t outer = 1, rows = 1, inner = 1;  // x is [outer, rows, inner]
  std::int64_t count = 0;                       // indices
  std::int64_t absent = 0;                      // the index of no row
  bool wide = false;                            // int64
  std::int32_t node = -1;

  Lookup(const KernelRequest& request, const Shape& x, const TensorType& indices)
      : count(indices.elements()),
        absent(absent_id_of(indices.dtype)),
        wide(indices.dtype == DType::int64),
        node(request.node_index) {
    const auto axis = static_cast<std::size_t>(request.attributes().integer("axis"));
    for (std::size_t i = 0; i < axis; ++i) outer *= x[i];
    rows = x[axis];
    for (std::size_t i = axis + 1; i < x.size(); ++i) inner *= x[i];
  }

  /// Index i, counted from the start and clamped; -1 where it is absent.
  std::int64_t at(const void* indices, std::int64_t i, const KernelArguments& a) const {
    const std::int64_t raw = wide ? static_cast<const std::int64_t*>(indices)[i]
                                  : static_cast<const std::int32_t*>(indices)[i];
    if (raw == absent) return -1;
    const std::int64_t row = raw < 0 ? raw + rows : raw;
    if (row >= 0 && row < rows) return row;
    if (a.context != nullptr && a.context->error != nullptr) {
      a.context->error->report(ErrorWord::index_out_of_range, node, raw);
    }
    return row < 0 ? 0 : rows - 1;
  }
};

std::unique_ptr<PreparedKernel> prepare_gather(const KernelRequest& request) {
  const Lookup lookup(request, request.inputs[0].type.shape, request.inputs[1].type);
  const auto element = static_cast<std::int64_t>(size_of(request.inputs[0].type.dtype));
  return prepared([lookup, bytes = lookup.inner * element,
                   threads = request.facts->threads](const KernelArguments& a) {
    const char* x = static_cast<const char*>(a.inputs[0]);
    char* y = static_cast<char*>(a.outputs[0]);
    const std::int64_t total = lookup.outer * lookup.count;
    parallel_ranges(
        threads, total, total * (bytes * 2 + 32), [&](std::int64_t begin, std::int64_t end) {
          constexpr std::int64_t ahead = 8;
          if (bytes == 0) return;
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t block = i / lookup.count, k = i % lookup.count;
            if (k + ahead < lookup.count && bytes >= 64) {
              const std::int64_t raw =
                  lookup.wide ? static_cast<const std::int64_t*>(a.inputs[1])[k + ahead]
                              : static_cast<const std::int32_t*>(a.inputs[1])[k + ahead];
              if (raw >= 0 && raw < lookup.rows) {
                const char* next = x + (block * lookup.rows + raw) * bytes;
                for (std::int64_t line = 0; line < std::min<std::int64_t>(bytes, 1024);
                     line += 64) {
                  __builtin_prefetch(next + line);
                }
              }
            }
            const std::int64_t row = lookup.at(a.inputs[1], k, a);
            const auto size = static_cast<std::size_t>(bytes);
            if (row < 0)
              std::memset(y + i * bytes, 0, size);
            else
              std::memcpy(y + i * bytes, x + (block * lookup.rows + row) * bytes, size);
          }
        });
  });
}

std::unique_ptr<PreparedKernel> prepare_gather_grad(const KernelRequest& request) {
  const Lookup lookup(request, request.outputs[0].type.shape, request.inputs[1].type);
  const int threads = request.facts->threads;
  return prepared(
      [lookup, threads, &functions = vector_functions(request)](const KernelArguments& a) {
        const float* dy = static_cast<const float*>(a.inputs[0]);
        float* dx = static_cast<float*>(a.outputs[0]);
        const std::int64_t inner = lookup.inner;
        const std::int64_t bytes = 4 * inner * lookup.outer * (lookup.rows + 3 * lookup.count);
        parallel_ranges(threads, lookup.rows, bytes, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t block = 0; block < lookup.outer; ++block) {
            float* to = dx + block * lookup.rows * inner;
            const float* from = dy + block * lookup.count * inner;
            std::fill(to + begin * inner, to + end * inner, 0.0f);
            for (std::int64_t i = 0; i < lookup.count; ++i) {
              const std::int64_t row = lookup.at(a.inputs[1], i, a);
              if (row < begin || row >= end) continue;  // an absent one among them
              if (inner == 1) {
                to[row] += from[i];
              } else {
                functions.add_rows(from + i * inner, 1, inner, inner, to + row * inner);
              }
            }
          }
        });
      });
}

}  // namespace

void add_gather_kernels(KernelList& list) {
  add_row_major(
      list, "cpu.gather", "Gather",
      [](const KernelRequest& r) -> std::optional<std::string> {
        if (r.inputs[0].type.dtype != r.outputs[0].type.dtype) return "another type";
        return std::nullopt;
      },
      prepare_gather);
  add_row_major(list, "cpu.gather_grad", "GatherGrad", only_float32({0}), prepare_gather_grad);
}

}  // namespace tandem
