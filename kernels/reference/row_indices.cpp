// Which rows of a table a step touches, and those rows: UniqueIndices, GatherRows, MarkRows and
// TouchedRows.
#include <algorithm>
#include <cstring>

#include "engine/operators/tables/rows.h"
#include "kernels/reference/network_support.h"

namespace tandem::reference {
namespace {

struct PlacedId {
  std::int64_t row = 0;
  std::int32_t position = 0;
  auto operator<=>(const PlacedId&) const = default;
};

std::unique_ptr<PreparedKernel> unique_indices(const KernelRequest& r) {
  std::vector<Reader> ids;
  std::vector<std::int64_t> counts, absent;
  for (const Operand& operand : r.inputs) {
    ids.emplace_back(operand);
    counts.push_back(operand.type.elements());
    absent.push_back(absent_id_of(operand.type.dtype));
  }
  const std::int64_t rows = r.attributes().integer("rows");
  const std::int64_t capacity = r.outputs[UniqueOutputs::unique].type.elements();
  std::vector<PlacedId> sorted(
      static_cast<std::size_t>(r.outputs[UniqueOutputs::order].type.elements()));
  const bool quiet = r.attributes().flag("quiet");
  return prepared([=, node = r.node_index](const KernelArguments& a) mutable {
    auto* unique = static_cast<std::int64_t*>(a.outputs[UniqueOutputs::unique]);
    auto* order = static_cast<std::int32_t*>(a.outputs[UniqueOutputs::order]);
    auto* offsets = static_cast<std::int32_t*>(a.outputs[UniqueOutputs::offsets]);
    auto* count = static_cast<std::int32_t*>(a.outputs[UniqueOutputs::count]);
    auto* inverse = static_cast<std::int32_t*>(a.outputs[UniqueOutputs::inverse]);
    std::size_t n = 0;  // ids that are not absent
    std::int32_t position = 0;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      for (std::int64_t i = 0; i < counts[k]; ++i, ++position) {
        const std::int64_t given = ids[k].integer(a.inputs[k], i);
        if (given == absent[k]) {
          if (inverse != nullptr) inverse[position] = absent_id<std::int32_t>;
          continue;
        }
        std::int64_t row = given < 0 ? given + rows : given;
        if (row < 0 || row >= rows) {
          if (!quiet && a.context != nullptr && a.context->error != nullptr) {
            a.context->error->report(ErrorWord::index_out_of_range, node, given);
          }
          row = row < 0 ? 0 : rows - 1;
        }
        sorted[n++] = {row, position};
      }
    }
    std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(n));
    std::int32_t found = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (i == 0 || sorted[i].row != sorted[i - 1].row) {
        if (unique != nullptr) unique[found] = sorted[i].row;
        if (offsets != nullptr) offsets[found] = static_cast<std::int32_t>(i);
        ++found;
      }
      if (order != nullptr) order[i] = sorted[i].position;
      if (inverse != nullptr) inverse[sorted[i].position] = found - 1;
    }
    for (std::size_t i = n; order != nullptr && i < sorted.size(); ++i) order[i] = -1;
    for (std::int64_t u = found; u < capacity; ++u) {
      if (unique != nullptr) unique[u] = -1;
      if (offsets != nullptr) offsets[u] = static_cast<std::int32_t>(n);
    }
    if (offsets != nullptr) offsets[capacity] = static_cast<std::int32_t>(n);
    if (count != nullptr) *count = found;
  });
}

std::unique_ptr<PreparedKernel> gather_rows(const KernelRequest& r) {
  const Shape& table = r.inputs[0].type.shape;
  const std::size_t bytes =
      r.inputs[0].type.bytes() / static_cast<std::size_t>(std::max<std::int64_t>(table[0], 1));
  return prepared([=](const KernelArguments& a) {
    const auto* unique = static_cast<const std::int64_t*>(a.inputs[1]);
    const std::int32_t count = *static_cast<const std::int32_t*>(a.inputs[2]);
    for (std::int32_t i = 0; i < count; ++i) {
      std::memcpy(
          static_cast<char*>(a.outputs[0]) + static_cast<std::size_t>(i) * bytes,
          static_cast<const char*>(a.inputs[0]) + static_cast<std::size_t>(unique[i]) * bytes,
          bytes);
    }
  });
}

std::unique_ptr<PreparedKernel> mark_rows(const KernelRequest& r) {
  const std::int64_t rows = r.inputs[0].type.elements();
  const bool first = r.attributes().flag("first");
  std::vector<Reader> ids;
  std::vector<std::int64_t> counts, absent;
  for (std::size_t i = 1; i < r.inputs.size(); ++i) {
    ids.emplace_back(r.inputs[i]);
    counts.push_back(r.inputs[i].type.elements());
    absent.push_back(absent_id_of(r.inputs[i].type.dtype));
  }
  return prepared([=](const KernelArguments& a) {
    auto* marks = static_cast<bool*>(a.outputs[0]);
    if (first) {
      std::fill(marks, marks + rows, false);
    } else if (a.inputs[0] != a.outputs[0]) {
      std::memcpy(marks, a.inputs[0], static_cast<std::size_t>(rows));
    }
    for (std::size_t k = 0; k < ids.size(); ++k) {
      for (std::int64_t i = 0; i < counts[k]; ++i) {
        const std::int64_t id = ids[k].integer(a.inputs[1 + k], i);
        const std::int64_t row = id < 0 ? id + rows : id;
        if (id != absent[k] && row >= 0 && row < rows)
          marks[row] = true;  // the lookup reports the others
      }
    }
  });
}

std::unique_ptr<PreparedKernel> touched_rows(const KernelRequest& r) {
  const std::int64_t rows = r.inputs[0].type.elements();
  return prepared([rows](const KernelArguments& a) {
    const auto* marks = static_cast<const bool*>(a.inputs[0]);
    auto* unique = static_cast<std::int64_t*>(a.outputs[UniqueOutputs::unique]);
    auto* order = static_cast<std::int32_t*>(a.outputs[UniqueOutputs::order]);
    auto* offsets = static_cast<std::int32_t*>(a.outputs[UniqueOutputs::offsets]);
    auto* count = static_cast<std::int32_t*>(a.outputs[UniqueOutputs::count]);
    std::int32_t found = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      if (!marks[row]) continue;
      if (unique != nullptr) unique[found] = row;
      if (order != nullptr) order[found] = static_cast<std::int32_t>(row);
      ++found;
    }
    for (std::int64_t i = found; i < rows; ++i) {
      if (unique != nullptr) unique[i] = -1;
      if (order != nullptr) order[i] = -1;
    }
    for (std::int64_t i = 0; offsets != nullptr && i <= rows; ++i) {
      offsets[i] = static_cast<std::int32_t>(std::min<std::int64_t>(i, found));
    }
    if (count != nullptr) *count = found;
  });
}

}  // namespace

void add_row_indices(KernelList& list) {
  const auto add = [&](const char* name, const char* op, auto prepare) {
    list.push_back(untyped_kernel(name, op, prepare));
    list.back().propose = propose_row_major;
  };
  add("reference.unique_indices", "UniqueIndices", unique_indices);
  add("reference.gather_rows", "GatherRows", gather_rows);
  add("reference.mark_rows", "MarkRows", mark_rows);
  add("reference.touched_rows", "TouchedRows", touched_rows);
}

}  // namespace tandem::reference
