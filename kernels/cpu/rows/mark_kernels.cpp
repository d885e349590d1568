// Which rows of a table got a gradient in the passes of a step: a byte a row is set, and the rows
// that are set are listed.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/operators/rows.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/rows/rows.h"

namespace tandem {
namespace {

static_assert(sizeof(bool) == 1 && std::endian::native == std::endian::little);

// Threads may set the same byte. Frequent rows are set early on: looking first leaves their cache
// lines with all cores. Ids that name no row: the absent one, as a table has fewer than 2^31 rows,
// and those outside of it, which the look-up reports.
template <class Id>
void mark(std::uint8_t* marks, std::int64_t rows, const Id* ids, std::int64_t count, int threads) {
  parallel_ranges(threads, count, count * 16, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto id = static_cast<std::int64_t>(ids[i]);
      const std::int64_t row = id + (id < 0 ? rows : 0);
      if (static_cast<std::uint64_t>(row) >= static_cast<std::uint64_t>(rows)) continue;
      const std::atomic_ref<std::uint8_t> own(marks[row]);
      if (own.load(std::memory_order_relaxed) == 0) own.store(1, std::memory_order_relaxed);
    }
  });
}

std::unique_ptr<PreparedKernel> prepare_mark_rows(const KernelRequest& r) {
  std::vector<IdArray> arrays;
  for (std::size_t i = 1; i < r.inputs.size(); ++i) {
    const TensorType& type = r.inputs[i].type;
    arrays.push_back({nullptr, type.elements(), type.dtype == DType::int64});
  }
  return prepared([arrays = std::move(arrays), rows = r.inputs[0].type.elements(),
                   first = r.attributes().flag("first"),
                   threads = r.facts->threads](const KernelArguments& a) {
    auto* marks = static_cast<std::uint8_t*>(a.outputs[0]);
    const auto* before = static_cast<const std::uint8_t*>(a.inputs[0]);
    if (first || before != marks) {
      parallel_ranges(threads, rows, 2 * rows, [=](std::int64_t begin, std::int64_t end) {
        const auto bytes = static_cast<std::size_t>(end - begin);
        if (first) {
          std::memset(marks + begin, 0, bytes);
        } else {
          std::memcpy(marks + begin, before + begin, bytes);
        }
      });
    }
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      const void* ids = a.inputs[1 + k];
      if (arrays[k].wide) {
        mark(marks, rows, static_cast<const std::int64_t*>(ids), arrays[k].count, threads);
      } else {
        mark(marks, rows, static_cast<const std::int32_t*>(ids), arrays[k].count, threads);
      }
    }
  });
}

/// f(row) for the rows from begin to end that are marked, in order.
template <class F>
void for_marked(const std::uint8_t* marks, std::int64_t begin, std::int64_t end, F f) {
  for (; begin + 8 <= end; begin += 8) {
    std::uint64_t word;
    std::memcpy(&word, marks + begin, sizeof word);
    for (; word != 0; word &= word - 1) f(begin + std::countr_zero(word) / 8);
  }
  for (; begin < end; ++begin) {
    if (marks[begin] != 0) f(begin);
  }
}

// Parts of the rows are counted, then listed behind the rows of the parts before them. Results that
// nobody reads are null.
class TouchedRowsKernel final : public PreparedKernel {
 public:
  explicit TouchedRowsKernel(const KernelRequest& r)
      : rows_(r.inputs[0].type.elements()),
        parts_(parts_for(r.facts->threads, 17 * rows_, grain_bytes)) {
    workspace_bytes = static_cast<std::size_t>(parts_) * sizeof(std::int64_t);
  }

  void run(const KernelArguments& a) noexcept override {
    const auto* marks = static_cast<const std::uint8_t*>(a.inputs[0]);
    auto* unique = static_cast<std::int64_t*>(a.outputs[UniqueOutputs::unique]);
    auto* order = static_cast<std::int32_t*>(a.outputs[UniqueOutputs::order]);
    auto* offsets = static_cast<std::int32_t*>(a.outputs[UniqueOutputs::offsets]);
    auto* count = static_cast<std::int32_t*>(a.outputs[UniqueOutputs::count]);
    auto* starts = static_cast<std::int64_t*>(a.workspace);
    parallel_parts(parts_, [&](int part) {
      const Range range = part_of(rows_, part, parts_, 8);
      std::int64_t found = 0;
      for (std::int64_t row = range.begin; row < range.end; ++row) found += marks[row];
      starts[part] = found;
    });
    std::int64_t all = 0;
    for (int part = 0; part < parts_; ++part) all += std::exchange(starts[part], all);
    if (count != nullptr) *count = static_cast<std::int32_t>(all);
    parallel_parts(parts_, [&](int part) {
      const Range range = part_of(rows_, part, parts_, 8);
      const std::int64_t rest = std::max(range.begin, all);  // beyond the rows that are marked
      if (unique != nullptr) {
        std::int64_t* to = unique + starts[part];
        for_marked(marks, range.begin, range.end, [&](std::int64_t row) { *to++ = row; });
        for (std::int64_t i = rest; i < range.end; ++i) unique[i] = -1;
      }
      if (order != nullptr) {
        std::int32_t* to = order + starts[part];
        for_marked(marks, range.begin, range.end,
                   [&](std::int64_t row) { *to++ = static_cast<std::int32_t>(row); });
        for (std::int64_t i = rest; i < range.end; ++i) order[i] = -1;
      }
      if (offsets == nullptr) return;
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        offsets[i] = static_cast<std::int32_t>(std::min(i, all));
      }
      if (part + 1 == parts_) offsets[rows_] = static_cast<std::int32_t>(all);
    });
  }

 private:
  std::int64_t rows_;
  int parts_;
};

std::optional<std::string> refuse_nothing(const KernelRequest&) { return std::nullopt; }

}  // namespace

void add_mark_kernels(KernelList& list) {
  list.push_back({.name = "cpu.mark_rows",
                  .op = "MarkRows",
                  .refuse = refuse_nothing,
                  .propose = propose_row_major,
                  .prepare = prepare_mark_rows});
  list.push_back({.name = "cpu.touched_rows",
                  .op = "TouchedRows",
                  .refuse = refuse_nothing,
                  .propose = propose_row_major,
                  .prepare = [](const KernelRequest& r) -> std::unique_ptr<PreparedKernel> {
                    return std::make_unique<TouchedRowsKernel>(r);
                  }});
}

}  // namespace tandem
