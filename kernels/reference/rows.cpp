// UniqueIndices, RowsUpdate and RowsSumOfSquares; updates of whole rows.
#include <algorithm>
#include <cstring>

#include "engine/graph/split_float.h"
#include "engine/operators/rows.h"
#include "kernels/reference/network_list.h"
#include "kernels/reference/update_support.h"
#include "kernels/shared/scalar.h"
#include "kernels/shared/update_rules.h"

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
          if (a.context != nullptr && a.context->error != nullptr) {
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
          marks[row] = true;  // the look-up reports the others
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

/// The gradients of all look-ups of a table as one list of rows of `columns` elements.
struct Gradients {
  std::vector<LookUpGradient> look_ups;
  std::vector<Reader> dy, weights;
  std::vector<std::int64_t> starts;  // first position of each
  std::int64_t columns;

  Gradients(const KernelRequest& r, std::size_t first, std::int64_t row_elements)
      : look_ups(look_up_gradients(*r.node, first)), columns(row_elements) {
    std::int64_t at = 0;
    for (const LookUpGradient& look_up : look_ups) {
      dy.emplace_back(r.inputs[look_up.dy]);
      weights.push_back(look_up.weights == 0 ? Reader() : Reader(r.inputs[look_up.weights]));
      starts.push_back(at);
      at += r.inputs[look_up.dy].type.elements() / std::max<std::int64_t>(columns, 1) * look_up.bag;
    }
  }

  double at(const KernelArguments& a, std::int64_t position, std::int64_t column) const {
    const auto next = std::upper_bound(starts.begin(), starts.end(), position);
    const auto k = static_cast<std::size_t>(next - starts.begin() - 1);
    const std::int64_t own = position - starts[k];
    const LookUpGradient& look_up = look_ups[k];
    const double x = dy[k].number(a.inputs[look_up.dy], own / look_up.bag * columns + column);
    return look_up.weights == 0 ? x : x * weights[k].number(a.inputs[look_up.weights], own);
  }

  /// The sum over the positions order[begin, end).
  template <class T>
  T sum(const KernelArguments& a, const std::int32_t* order, std::int32_t begin, std::int32_t end,
        std::int64_t column) const {
    T total = 0;
    for (std::int32_t i = begin; i < end; ++i) total += static_cast<T>(at(a, order[i], column));
    return total;
  }
};

/// Replaces a row of the master and its states, which are as long, or one element where a state is
/// by row.
template <class Rule, class T>
void update_row(const typename Rule::Step& step, T* w, const T* grad, T** states,
                std::int64_t columns) {
  const auto with_states = [&](std::int64_t c, auto f) {
    T own[2] = {};
    for (int k = 0; k < Rule::states; ++k) own[k] = states[k][c];
    const T result = f(own);
    for (int k = 0; k < Rule::states; ++k) states[k][c] = own[k];
    return result;
  };
  if constexpr (Rule::whole_row) {
    T sum = 0, none = 0;
    for (std::int64_t c = 0; c < columns; ++c)
      sum += with_states(c, [&](T* own) { return Rule::first(step, w[c], grad[c], own); });
    const T factor = Rule::factor(step, sum, T(columns), Rule::has_row_state ? states[0][0] : none);
    for (std::int64_t c = 0; c < columns; ++c)
      w[c] = with_states(c, [&](T* own) { return Rule::last(step, w[c], grad[c], own, factor); });
  } else {
    for (std::int64_t c = 0; c < columns; ++c)
      w[c] = with_states(c, [&](T* own) { return Rule::element(step, w[c], grad[c], own); });
  }
}

/// Master and states of an update, which lie row-major; each row's part of them. The tail of a
/// split master is input and output `tail`.
struct RowTensors {
  std::size_t count = 1;  // master and states
  std::size_t tail = 0;   // 0: none
  std::int64_t rows, columns;
  std::int64_t state_columns[2] = {};  // 1 where a state is by row
  std::vector<std::size_t> bytes;

  RowTensors(const KernelRequest& r, std::size_t first_state) {
    const std::vector<UpdateState>& states = update_kind(*r.node).states;
    const Shape& shape = r.inputs[0].type.shape;
    rows = shape.empty() ? 1 : shape[0];
    columns = r.inputs[0].type.elements() / std::max<std::int64_t>(rows, 1);
    bytes.push_back(r.inputs[0].type.bytes());
    for (std::size_t k = 0; k < states.size() && given(r, first_state + k); ++k, ++count) {
      state_columns[k] = states[k].by_row ? 1 : columns;
      bytes.push_back(r.inputs[first_state + k].type.bytes());
    }
  }

  /// Outputs begin as what was there before; in place nothing moves.
  void begin(const KernelArguments& a, std::size_t first_state) const {
    for (std::size_t k = 0; k < count; ++k) {
      const void* before = a.inputs[k == 0 ? 0 : first_state + k - 1];
      if (before != a.outputs[k]) std::memcpy(a.outputs[k], before, bytes[k]);
    }
    if (tail > 0 && a.inputs[tail] != a.outputs[tail])
      std::memcpy(a.outputs[tail], a.inputs[tail], bytes[0]);
  }

  /// `whole` has room for a row of a split master.
  template <class Rule, class T>
  void update(const KernelArguments& a, const typename Rule::Step& step, std::int64_t row,
              const T* grad, T* whole = nullptr) const {
    T* states[2] = {};
    for (std::size_t k = 1; k < count; ++k) {
      states[k - 1] = static_cast<T*>(a.outputs[k]) + row * state_columns[k - 1];
    }
    if (tail == 0) {
      update_row<Rule>(step, static_cast<T*>(a.outputs[0]) + row * columns, grad, states, columns);
      return;
    }
    auto* tops = static_cast<std::uint16_t*>(a.outputs[0]) + row * columns;
    auto* tails = static_cast<std::int16_t*>(a.outputs[tail]) + row * columns;
    for (std::int64_t c = 0; c < columns; ++c)
      whole[c] = static_cast<T>(join_float(tops[c], tails[c]));
    update_row<Rule>(step, whole, grad, states, columns);
    for (std::int64_t c = 0; c < columns; ++c) {
      const SplitFloat halves = split_float(static_cast<float>(whole[c]));
      tops[c] = halves.top;
      tails[c] = halves.tail;
    }
  }
};

template <class T>
std::unique_ptr<PreparedKernel> rows_update(const KernelRequest& r, T) {
  const RowsOperands at(*r.node);
  RowTensors tensors(r, 1);
  if (at.split) tensors.tail = at.tail();
  const Gradients gradients(r, at.gradients(), tensors.columns);
  const Scalars scalars(r, at.scalars());
  const bool lazy = r.attributes().flag("lazy");
  const auto bytes = 2 * static_cast<std::size_t>(tensors.columns) * sizeof(T);
  return with_rule<T>(update_kind(*r.node).op, r.attributes(), [&](auto rule) {
    return prepared(
        [=](const KernelArguments& a) {
          tensors.begin(a, 1);
          if (scalars.skipped(a)) return;
          const auto step = scalars.step_of(a, rule);
          T *grad = static_cast<T*>(a.workspace), *whole = grad + tensors.columns;
          const auto* unique = static_cast<const std::int64_t*>(a.inputs[at.unique()]);
          const auto* order = static_cast<const std::int32_t*>(a.inputs[at.order()]);
          const auto* offsets = static_cast<const std::int32_t*>(a.inputs[at.offsets()]);
          const std::int32_t count = *static_cast<const std::int32_t*>(a.inputs[at.count()]);
          std::int64_t row = 0;
          for (std::int32_t u = 0; u <= count; ++u) {
            const std::int64_t stop = u < count ? unique[u] : tensors.rows;
            std::fill(grad, grad + tensors.columns, T(0));
            for (; !lazy && row < stop; ++row)
              tensors.update<decltype(rule)>(a, step, row, grad, whole);
            if (u == count) break;
            for (std::int64_t c = 0; c < tensors.columns; ++c) {
              grad[c] = gradients.sum<T>(a, order, offsets[u], offsets[u + 1], c);
            }
            tensors.update<decltype(rule)>(a, step, stop, grad, whole);
            row = stop + 1;
          }
        },
        bytes);
  });
}

/// An update by rows whose gradient is dense.
template <class T>
std::unique_ptr<PreparedKernel> dense_rows_update(const KernelRequest& r, T) {
  const UpdateKind& kind = update_kind(*r.node);
  const RowTensors tensors(r, 2);
  const Scalars scalars(r, 2 + kind.states.size());
  const Reader gradient(r.inputs[1]);
  const auto bytes = static_cast<std::size_t>(tensors.columns) * sizeof(T);
  return with_rule<T>(kind.op, r.attributes(), [&](auto rule) {
    return prepared(
        [=](const KernelArguments& a) {
          tensors.begin(a, 2);
          if (scalars.skipped(a)) return;
          const auto step = scalars.step_of(a, rule);
          T* grad = static_cast<T*>(a.workspace);
          for (std::int64_t row = 0; row < tensors.rows; ++row) {
            for (std::int64_t c = 0; c < tensors.columns; ++c) {
              grad[c] = static_cast<T>(gradient.number(a.inputs[1], row * tensors.columns + c));
            }
            tensors.update<decltype(rule)>(a, step, row, grad);
          }
        },
        bytes);
  });
}

template <class T>
std::unique_ptr<PreparedKernel> rows_sum_of_squares(const KernelRequest& r, T) {
  const std::int64_t columns = r.attributes().integer("columns");
  return prepared([gradients = Gradients(r, 3, columns), y = Writer(r.outputs[0]),
                   columns](const KernelArguments& a) {
    const auto* order = static_cast<const std::int32_t*>(a.inputs[0]);
    const auto* offsets = static_cast<const std::int32_t*>(a.inputs[1]);
    const std::int32_t count = *static_cast<const std::int32_t*>(a.inputs[2]);
    double total = 0;
    for (std::int32_t u = 0; u < count; ++u) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const double sum = gradients.sum<double>(a, order, offsets[u], offsets[u + 1], c);
        total += sum * sum;
      }
    }
    y(a.outputs[0], 0, total);
  });
}

}  // namespace

// Groups are read as plain arrays, so everything is row-major.
void add_row_kernels(KernelList& list) {
  const std::size_t first = list.size();
  list.push_back(untyped_kernel("reference.unique_indices", "UniqueIndices", unique_indices));
  list.push_back(untyped_kernel("reference.gather_rows", "GatherRows", gather_rows));
  list.push_back(untyped_kernel("reference.mark_rows", "MarkRows", mark_rows));
  list.push_back(untyped_kernel("reference.touched_rows", "TouchedRows", touched_rows));
  list.push_back(
      float_kernel("reference.rows_update", "RowsUpdate",
                   [](const KernelRequest& r, auto tag) { return rows_update(r, tag); }));
  list.push_back(
      kernel_for<BFloat16>("reference.split_rows_update", "RowsUpdate",
                           [](const KernelRequest& r, auto) { return rows_update(r, 0.0f); }));
  list.push_back(any_float_kernel(
      "reference.rows_sum_of_squares", "RowsSumOfSquares",
      [](const KernelRequest& r, auto tag) { return rows_sum_of_squares(r, tag); }, 3));
  for (const UpdateKind& kind : update_kinds()) {
    if (!kind.by_row) continue;
    list.push_back(
        float_kernel("reference." + kind.op, kind.op,
                     [](const KernelRequest& r, auto tag) { return dense_rows_update(r, tag); }));
  }
  for (std::size_t i = first; i < list.size(); ++i) {
    list[i].propose = [](const KernelRequest&) { return std::vector<Proposal>{Proposal{}}; };
  }
}

}  // namespace tandem::reference
