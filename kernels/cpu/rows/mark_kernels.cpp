// Which rows of a table got a gradient in the micro-batches of a step: a byte a row is set, and the
// rows whose byte is set are listed.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/device/kernel_forms.h"
#include "engine/operators/tables/rows.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rows/rows.h"

namespace tandem {
namespace {

static_assert(sizeof(bool) == 1 && std::endian::native == std::endian::little);

/// f(row) for the ids of part `part` that name a row. Not the absent one, as a table has fewer than
/// 2^31 rows, nor those outside of it, which the lookup reports.
template <class F>
void for_rows(const IdArray& ids, std::int64_t rows, int part, int parts, F f) {
  const auto visit = [&](const auto* data) {
    const Range range = part_of(ids.count, part, parts);
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const auto id = static_cast<std::int64_t>(data[i]);
      const std::int64_t row = id + (id < 0 ? rows : 0);
      if (static_cast<std::uint64_t>(row) < static_cast<std::uint64_t>(rows)) f(row);
    }
  };
  if (ids.wide) {
    visit(static_cast<const std::int64_t*>(ids.data));
  } else {
    visit(static_cast<const std::int32_t*>(ids.data));
  }
}

/// Eight bytes, each 0 or 1, of the eight bits of a byte.
std::uint64_t bytes_of_bits(std::uint8_t bits) {
  constexpr std::uint64_t ones = 0x0101010101010101, own = 0x8040201008040201;
  return (((bits * ones & own) + 0x7f * ones) >> 7) & ones;
}

// Cores that write the same cache lines slow each other down: each part sets bits of its own, which
// are then added to the marks part by part. Where the table is large compared with the ids, lines
// are rarely shared, and the bytes are set at once.
class MarkRowsKernel final : public PreparedKernel {
 public:
  explicit MarkRowsKernel(const KernelRequest& r)
      : rows_(r.inputs[0].type.elements()),
        first_(r.attributes().flag("first")),
        threads_(r.facts->threads) {
    std::int64_t ids = 0;
    for (std::size_t i = 1; i < r.inputs.size(); ++i) {
      const TensorType& type = r.inputs[i].type;
      arrays_.push_back({nullptr, type.elements(), type.dtype == DType::int64});
      ids += type.elements();
    }
    parts_ = parts_for(threads_, ids * 16, grain_bytes);
    bit_bytes_ = static_cast<std::size_t>(rows_ / 512 + 1) * 64;
    by_bits_ = parts_ > 1 && rows_ <= rows_per_id * ids;
    if (by_bits_) workspace_bytes = static_cast<std::size_t>(parts_) * bit_bytes_;
  }

  void run(const KernelArguments& a) noexcept override {
    for (std::size_t k = 0; k < arrays_.size(); ++k) arrays_[k].data = a.inputs[1 + k];
    const auto* before = static_cast<const std::uint8_t*>(a.inputs[0]);
    auto* marks = static_cast<std::uint8_t*>(a.outputs[0]);
    if (by_bits_) {
      mark_by_bits(before, marks, static_cast<std::uint8_t*>(a.workspace));
    } else {
      begin(before, marks);
      mark(marks);
    }
  }

 private:
  static constexpr std::int64_t rows_per_id = 16;

  void begin(const std::uint8_t* before, std::uint8_t* marks) const {
    if (!first_ && before == marks) return;
    parallel_ranges(threads_, rows_, 2 * rows_, [=, this](std::int64_t from, std::int64_t to) {
      const auto bytes = static_cast<std::size_t>(to - from);
      if (first_) {
        std::memset(marks + from, 0, bytes);
      } else {
        std::memcpy(marks + from, before + from, bytes);
      }
    });
  }

  void mark(std::uint8_t* marks) const {
    const bool is_alone = parts_ == 1;
    parallel_parts(parts_, [&](int part) {
      for (const IdArray& ids : arrays_) {
        for_rows(ids, rows_, part, parts_, [=](std::int64_t row) {
          const std::atomic_ref<std::uint8_t> own(marks[row]);
          if (is_alone || own.load(std::memory_order_relaxed) == 0)
            own.store(1, std::memory_order_relaxed);
        });
      }
    });
  }

  void mark_by_bits(const std::uint8_t* before, std::uint8_t* marks, std::uint8_t* bits) const {
    parallel_parts(parts_, [&](int part) {
      std::uint8_t* own = bits + static_cast<std::size_t>(part) * bit_bytes_;
      std::memset(own, 0, bit_bytes_);
      auto* words = reinterpret_cast<std::uint64_t*>(own);
      for (const IdArray& ids : arrays_) {
        for_rows(ids, rows_, part, parts_,
                 [=](std::int64_t row) { words[row >> 6] |= std::uint64_t{1} << (row & 63); });
      }
    });
    parallel_parts(parts_, [&](int part) {
      const Range range = part_of(rows_, part, parts_, 64);
      for (std::int64_t row = range.begin; row < range.end; row += 8) {
        std::uint8_t found = 0;
        for (int p = 0; p < parts_; ++p) {
          found |=
              bits[static_cast<std::size_t>(p) * bit_bytes_ + static_cast<std::size_t>(row / 8)];
        }
        const auto count = static_cast<std::size_t>(std::min<std::int64_t>(8, range.end - row));
        std::uint64_t eight = 0;
        if (!first_) std::memcpy(&eight, before + row, count);
        eight |= bytes_of_bits(found);
        std::memcpy(marks + row, &eight, count);
      }
    });
  }

  std::int64_t rows_;
  bool first_, by_bits_ = false;
  int threads_, parts_ = 1;
  std::size_t bit_bytes_ = 0;  // bytes of one part's bits
  std::vector<IdArray> arrays_;
};

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

// The marked rows of each part are counted, then listed after those of the parts before. Results
// that are not read are null.
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

}  // namespace

void add_mark_kernels(KernelList& list) {
  add_row_major(list, "cpu.mark_rows", "MarkRows", refuse_nothing, makes<MarkRowsKernel>());
  add_row_major(list, "cpu.touched_rows", "TouchedRows", refuse_nothing,
                makes<TouchedRowsKernel>());
}

}  // namespace tandem
