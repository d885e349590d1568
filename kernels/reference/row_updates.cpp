// RowsUpdate, RowsSumOfSquares and RowsSum; updates of whole rows whose gradient is dense.
#include <algorithm>
#include <cstring>

#include "engine/graph/split_float.h"
#include "engine/operators/tables/rows.h"
#include "kernels/reference/update_support.h"
#include "kernels/shared/scalar.h"

namespace tandem::reference {
namespace {

/// The gradients of all lookups of a table as one list of rows of `columns` elements.
struct Gradients {
  std::vector<LookupGradient> lookups;
  std::vector<Reader> dy, weights;
  std::vector<std::int64_t> starts;  // first position of each
  std::int64_t columns;

  Gradients(const KernelRequest& r, std::size_t first, std::int64_t row_elements)
      : lookups(lookup_gradients(*r.node, first)), columns(row_elements) {
    std::int64_t at = 0;
    for (const LookupGradient& lookup : lookups) {
      dy.emplace_back(r.inputs[lookup.dy]);
      weights.push_back(lookup.weights == 0 ? Reader() : Reader(r.inputs[lookup.weights]));
      starts.push_back(at);
      at += r.inputs[lookup.dy].type.elements() / std::max<std::int64_t>(columns, 1) * lookup.bag;
    }
  }

  double at(const KernelArguments& a, std::int64_t position, std::int64_t column) const {
    const auto next = std::upper_bound(starts.begin(), starts.end(), position);
    const auto k = static_cast<std::size_t>(next - starts.begin() - 1);
    const std::int64_t own = position - starts[k];
    const LookupGradient& lookup = lookups[k];
    const double x = dy[k].number(a.inputs[lookup.dy], own / lookup.bag * columns + column);
    return lookup.weights == 0 ? x : x * weights[k].number(a.inputs[lookup.weights], own);
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
template <class R, class T>
void update_row(const typename R::Step& step, T* w, const T* grad, T** states,
                std::int64_t columns) {
  const auto with_states = [&](std::int64_t c, auto f) {
    T own[most_states] = {};
    for (int k = 0; k < R::states; ++k) {
      if (R::has(k)) own[k] = states[k][c];
    }
    const T result = f(own);
    for (int k = 0; k < R::states; ++k) {
      if (R::has(k)) states[k][c] = own[k];
    }
    return result;
  };
  using Kind = typename R::Kind;
  if constexpr (R::whole_row) {
    T sum = 0, none = 0;
    for (std::int64_t c = 0; c < columns; ++c)
      sum += with_states(c, [&](T* own) { return Kind::first(step, w[c], grad[c], own); });
    const T factor =
        Kind::factor(step, sum, T(columns),
                     R::row_state < 0 ? none : states[R::row_state < 0 ? 0 : R::row_state][0]);
    for (std::int64_t c = 0; c < columns; ++c)
      w[c] = with_states(c, [&](T* own) { return Kind::last(step, w[c], grad[c], own, factor); });
  } else {
    for (std::int64_t c = 0; c < columns; ++c)
      w[c] = with_states(c, [&](T* own) { return R::element(step, w[c], grad[c], own); });
  }
}

/// Master and states of an update, which lie row-major; each row's part of them. The tail of a
/// split master is input and output `tail`.
struct RowTensors {
  std::size_t count = 1;  // master and states
  std::size_t tail = 0;   // 0: none
  std::int64_t rows, columns;
  std::int64_t state_columns[most_states] = {};  // 1 where a state is by row
  std::vector<std::size_t> bytes;

  RowTensors(const KernelRequest& r, std::size_t first_state) {
    const std::vector<UpdateState>& states = update_kind(*r.node).states;
    const Shape& shape = r.inputs[0].type.shape;
    rows = shape.empty() ? 1 : shape[0];
    columns = r.inputs[0].type.elements() / std::max<std::int64_t>(rows, 1);
    bytes.push_back(r.inputs[0].type.bytes());
    for (std::size_t k = 0; k < states.size(); ++k, ++count) {
      const bool kept = r.is_present(first_state + k);
      state_columns[k] = states[k].shape == StateShape::one_per_row ? 1 : columns;
      bytes.push_back(kept ? r.inputs[first_state + k].type.bytes() : 0);
    }
  }

  /// Outputs begin as what was there before; in place nothing moves.
  void begin(const KernelArguments& a, std::size_t first_state) const {
    for (std::size_t k = 0; k < count; ++k) {
      const void* before = a.inputs[k == 0 ? 0 : first_state + k - 1];
      if (before != a.outputs[k] && bytes[k] > 0) std::memcpy(a.outputs[k], before, bytes[k]);
    }
    if (tail > 0 && a.inputs[tail] != a.outputs[tail])
      std::memcpy(a.outputs[tail], a.inputs[tail], bytes[0]);
  }

  /// `whole` has room for a row of a split master.
  template <class R, class T>
  void update(const KernelArguments& a, const typename R::Step& step, std::int64_t row,
              const T* grad, T* whole = nullptr) const {
    T* states[most_states] = {};
    for (std::size_t k = 1; k < count; ++k) {
      if (bytes[k] > 0) states[k - 1] = static_cast<T*>(a.outputs[k]) + row * state_columns[k - 1];
    }
    if (tail == 0) {
      update_row<R>(step, static_cast<T*>(a.outputs[0]) + row * columns, grad, states, columns);
      return;
    }
    auto* tops = static_cast<std::uint16_t*>(a.outputs[0]) + row * columns;
    auto* tails = static_cast<std::int16_t*>(a.outputs[tail]) + row * columns;
    for (std::int64_t c = 0; c < columns; ++c)
      whole[c] = static_cast<T>(join_float(tops[c], tails[c]));
    update_row<R>(step, whole, grad, states, columns);
    for (std::int64_t c = 0; c < columns; ++c) {
      const SplitFloat halves = split_float(static_cast<float>(whole[c]));
      tops[c] = halves.top;
      tails[c] = halves.tail;
    }
  }
};

constexpr auto rows_update = []<class T>(const KernelRequest& r, T) {
  const RowsOperands at(*r.node);
  RowTensors tensors(r, 1);
  if (at.split) tensors.tail = at.tail();
  const Gradients gradients(r, at.gradients(), tensors.columns);
  const Scalars scalars(r, at.scalars());
  const bool lazy = r.attributes().flag("lazy");
  const auto bytes = 2 * static_cast<std::size_t>(tensors.columns) * sizeof(T);
  const auto prepare = [&](const auto& rule) -> std::unique_ptr<PreparedKernel> {
    using R = std::decay_t<decltype(rule)>;
    if constexpr (R::whole_tensor) {
      fail_update(R::Kind::op, "has no rule for rows");
    } else
      return prepared(
          [=](const KernelArguments& a) {
            tensors.begin(a, 1);
            if (scalars.skipped(a, rule)) return;
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
              for (; !lazy && row < stop; ++row) tensors.update<R>(a, step, row, grad, whole);
              if (u == count) break;
              for (std::int64_t c = 0; c < tensors.columns; ++c) {
                grad[c] = gradients.sum<T>(a, order, offsets[u], offsets[u + 1], c);
              }
              tensors.update<R>(a, step, stop, grad, whole);
              row = stop + 1;
            }
          },
          bytes);
  };
  return with_rule<T>(update_kind(*r.node).op, r.attributes(), prepare);
};

/// An update by rows whose gradient is dense.
constexpr auto dense_rows_update = []<class T>(const KernelRequest& r, T) {
  const UpdateKind& kind = update_kind(*r.node);
  const RowTensors tensors(r, 2);
  const Scalars scalars(r, 2 + kind.states.size());
  const Reader gradient(r.inputs[1]);
  const auto bytes = static_cast<std::size_t>(tensors.columns) * sizeof(T);
  const auto prepare = [&](const auto& rule) -> std::unique_ptr<PreparedKernel> {
    using R = std::decay_t<decltype(rule)>;
    if constexpr (!R::whole_row) {
      fail_update(R::Kind::op, "has no rule for rows");
    } else
      return prepared(
          [=](const KernelArguments& a) {
            tensors.begin(a, 2);
            if (scalars.skipped(a, rule)) return;
            const auto step = scalars.step_of(a, rule);
            T* grad = static_cast<T*>(a.workspace);
            for (std::int64_t row = 0; row < tensors.rows; ++row) {
              for (std::int64_t c = 0; c < tensors.columns; ++c) {
                grad[c] = static_cast<T>(gradient.number(a.inputs[1], row * tensors.columns + c));
              }
              tensors.update<R>(a, step, row, grad);
            }
          },
          bytes);
  };
  return with_rule<T>(kind.op, r.attributes(), prepare);
};

constexpr auto rows_sum_of_squares = []<class T>(const KernelRequest& r, T) {
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
};

constexpr auto rows_sum = []<class T>(const KernelRequest& r, T) {
  const Shape& shape = r.outputs[0].type.shape;
  const std::int64_t columns = element_count(Shape(shape.begin() + 1, shape.end()));
  return prepared([gradients = Gradients(r, 3, columns), dx = Writer(r.outputs[0]),
                   columns](const KernelArguments& a) {
    const auto* order = static_cast<const std::int32_t*>(a.inputs[0]);
    const auto* offsets = static_cast<const std::int32_t*>(a.inputs[1]);
    const std::int32_t count = *static_cast<const std::int32_t*>(a.inputs[2]);
    for (std::int32_t u = 0; u < count; ++u) {
      for (std::int64_t c = 0; c < columns; ++c)
        dx(a.outputs[0], u * columns + c,
           gradients.sum<double>(a, order, offsets[u], offsets[u + 1], c));
    }
  });
};

}  // namespace

// Groups are read as plain arrays, so everything is row-major.
void add_row_updates(KernelList& list) {
  const std::size_t first = list.size();
  list.push_back(float_kernel("reference.rows_update", "RowsUpdate", rows_update));
  list.push_back(
      kernel_for<BFloat16>("reference.split_rows_update", "RowsUpdate",
                           [](const KernelRequest& r, auto) { return rows_update(r, 0.0f); }));
  list.push_back(any_float_kernel("reference.rows_sum_of_squares", "RowsSumOfSquares",
                                  rows_sum_of_squares, 3));
  list.push_back(any_float_kernel("reference.rows_sum", "RowsSum", rows_sum, 3));
  for (const UpdateKind& kind : update_kinds()) {
    if (!kind.whole_row) continue;
    list.push_back(float_kernel("reference." + kind.op, kind.op, dense_rows_update));
  }
  for (std::size_t i = first; i < list.size(); ++i) {
    list[i].propose = propose_row_major;
  }
}

}  // namespace tandem::reference
