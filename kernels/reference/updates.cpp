// The updates of single parameters, GroupedUpdate, ClipScale, LossScale and Accumulate; the
// formulas are those of engine/optimizers.
#include <cmath>

#include "engine/operators/grouped_update.h"
#include "kernels/reference/network_support.h"
#include "kernels/reference/update_support.h"
#include "kernels/shared/loss_scale.h"

namespace tandem::reference {
namespace {

std::vector<Tensors> groups_of(const KernelRequest& r, std::int64_t count) {
  const UpdateGroup sizes = update_group(*r.node);
  std::vector<Tensors> groups;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const std::size_t first = i * sizes.inputs;
    groups.emplace_back(r, first, i * sizes.outputs, sizes);
  }
  return groups;
}

/// Updates of whole tensors: new states lie in the workspace until the sums are known.
template <class R>
std::unique_ptr<PreparedKernel> tensor_updates(const std::vector<Tensors>& groups,
                                               const Scalars& scalars, const R& rule) {
  using T = typename R::Number;
  std::int64_t most = 0;
  for (const Tensors& group : groups) most = std::max(most, group.master.count());
  return prepared(
      [=](const KernelArguments& a) {
        T* const kept = static_cast<T*>(a.workspace);
        for (const Tensors& group : groups) {
          if (scalars.skipped(a, rule)) {
            group.keep<T>(a);
            continue;
          }
          const auto step = scalars.step_of(a, rule);
          double sums[R::Kind::terms] = {};
          T* next = kept;
          group.update<T>(a, [&](T master, T grad, T* states) {
            T terms[R::Kind::terms];
            R::Kind::first(step, master, grad, states, terms);
            for (int k = 0; k < R::Kind::terms; ++k)
              sums[k] += static_cast<double>(terms[k]) * static_cast<double>(terms[k]);
            next = std::copy_n(states, R::states, next);
            return master;
          });
          const T factor = static_cast<T>(R::Kind::factor(
              rule.settings, scalars.rate(a), {sums, group.master.count(), scalars.number(a)}));
          group.update_masters<T>(a, [&](std::int64_t i, T master) {
            return R::Kind::last(step, master, kept + i * R::states, factor);
          });
        }
      },
      static_cast<std::size_t>(most) * R::states * sizeof(T));
}

/// Updates with statistics of rows and columns, which lie in the workspace.
template <class R>
std::unique_ptr<PreparedKernel> factored_updates(const std::vector<Tensors>& groups,
                                                 const Scalars& scalars, const R& rule) {
  using T = typename R::Number;
  using Kind = typename R::Kind;
  constexpr int row_state = state_of_shape<Kind>(StateShape::row_statistics),
                column_state = state_of_shape<Kind>(StateShape::column_statistics),
                vector_state = state_of_shape<Kind>(StateShape::like_vector);
  std::int64_t most = 0;
  for (const Tensors& group : groups)
    most = std::max(most, group.axes.count * (group.axes.rows + group.axes.columns + 1));
  return prepared(
      [=](const KernelArguments& a) {
        for (const Tensors& group : groups) {
          const Matrices& m = group.axes;
          const int of_columns = m.is_vector ? vector_state : column_state;
          T* const rows = static_cast<T*>(a.workspace);
          T* const columns = rows + m.count * m.rows;
          T* const means = columns + m.count * m.columns;  // means of the rows of each matrix
          if (!m.is_vector) group.read_state<T>(a, row_state, rows);
          group.read_state<T>(a, of_columns, columns);
          const auto write_states = [&] {
            if (!m.is_vector) group.write_state<T>(a, row_state, rows);
            group.write_state<T>(a, of_columns, columns);
          };
          // No elements have no means.
          if (scalars.skipped(a, rule) || m.elements() == 0) {
            group.update_masters<T>(a, [](std::int64_t, T master) { return master; });
            write_states();
            continue;
          }
          const auto step = scalars.step_of(a, rule);
          const auto grad = [&](std::int64_t i) {
            return static_cast<T>(group.grad.number(a.inputs[group.input + 1], i));
          };
          // The mean of the statistics of n elements from `first` on, `stride` apart.
          const auto mean = [&](std::int64_t first, std::int64_t n, std::int64_t stride) {
            double sum = 0;
            for (std::int64_t i = 0; i < n; ++i)
              sum += static_cast<double>(Kind::statistic(step, grad(first + i * stride)));
            return static_cast<T>(sum / static_cast<double>(n));
          };
          for (std::int64_t row = 0; row < m.count * m.rows; ++row)
            rows[row] = m.is_vector
                            ? T(1)
                            : Kind::moved(step, rows[row], mean(row * m.columns, m.columns, 1));
          for (std::int64_t i = 0; i < m.count * m.columns; ++i) {
            const std::int64_t first = i / m.columns * m.rows * m.columns + i % m.columns;
            columns[i] = Kind::moved(step, columns[i], mean(first, m.rows, m.columns));
          }
          for (std::int64_t matrix = 0; matrix < m.count; ++matrix) {
            double sum = 0;
            for (std::int64_t k = 0; k < m.rows; ++k)
              sum += static_cast<double>(rows[matrix * m.rows + k]);
            means[matrix] = static_cast<T>(sum / static_cast<double>(m.rows));
          }
          write_states();
          const auto direction = [&](std::int64_t i) {
            const std::int64_t row = i / m.columns, matrix = row / m.rows;
            const T of_row = m.is_vector ? T(1) : Kind::row_factor(step, rows[row], means[matrix]);
            return Kind::direction(step, grad(i), of_row,
                                   columns[matrix * m.columns + i % m.columns]);
          };
          double sums[R::Kind::terms] = {};
          for (std::int64_t i = 0; i < m.elements(); ++i) {
            const T terms[] = {group.master_at<T>(a, i), direction(i)};
            for (int k = 0; k < R::Kind::terms; ++k)
              sums[k] += static_cast<double>(terms[k]) * static_cast<double>(terms[k]);
          }
          const T factor = static_cast<T>(Kind::factor(rule.settings, scalars.rate(a),
                                                       {sums, m.elements(), scalars.number(a)}));
          group.update_masters<T>(a, [&](std::int64_t i, T master) {
            return Kind::last(step, master, direction(i), factor);
          });
        }
      },
      static_cast<std::size_t>(most) * sizeof(T));
}

/// `count` updates of one kind whose tensors lie one group after the other.
template <class T>
std::unique_ptr<PreparedKernel> updates(const KernelRequest& r, std::int64_t count) {
  const std::vector<Tensors> groups = groups_of(r, count);
  const Scalars scalars(r, first_scalar(*r.node));
  const std::string& op = update_kind(*r.node).op;
  const auto prepare = [&](const auto& rule) -> std::unique_ptr<PreparedKernel> {
    using R = std::decay_t<decltype(rule)>;
    if constexpr (R::whole_row) {
      fail_update(op, "has no rule for single elements");
    } else if constexpr (R::factored) {
      return factored_updates(groups, scalars, rule);
    } else if constexpr (R::whole_tensor) {
      return tensor_updates(groups, scalars, rule);
    } else {
      return prepared([=](const KernelArguments& a) {
        const auto step = scalars.step_of(a, rule);
        for (const Tensors& group : groups) {
          if (scalars.skipped(a, rule)) {
            group.keep<T>(a);
          } else {
            group.update<T>(a, [&](T master, T grad, T* states) {
              return R::element(step, master, grad, states);
            });
          }
        }
      });
    }
  };
  return with_rule<T>(op, r.attributes(), prepare);
}

constexpr auto clip_scale = []<class T>(const KernelRequest& r, T) {
  const std::size_t count = r.inputs.size();
  const double max_norm = r.attributes().number("max_norm");
  return prepared([=](const KernelArguments& a) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      sum += static_cast<double>(*static_cast<const T*>(a.inputs[i]));
    }
    const double norm = std::sqrt(sum);
    const double ratio = max_norm / (norm + 1e-6);
    // A norm that is not a number stays one: the comparison is false for it.
    if (a.outputs[0] != nullptr) *static_cast<T*>(a.outputs[0]) = rounded<T>(ratio > 1 ? 1 : ratio);
    if (a.outputs[1] != nullptr) *static_cast<T*>(a.outputs[1]) = rounded<T>(norm);
  });
};

constexpr auto loss_scale = []<class T>(const KernelRequest& r, T) {
  const std::size_t count = r.inputs.size();
  const LossScaleSettings settings = loss_scale_settings(r.attributes());
  return prepared([=](const KernelArguments& a) {
    double squares = 0;
    for (std::size_t i = 4; i < count; ++i) {
      squares += static_cast<double>(*static_cast<const T*>(a.inputs[i]));
    }
    loss_scale_step(settings, LossScaleOperands<T>(a.inputs, a.outputs), squares);
  });
};

constexpr auto accumulate = []<class T>(const KernelRequest& r, T) {
  const Places sum(r.inputs[0]), new_sum(r.outputs[0]);
  const Reader grad(r.inputs[1]);
  const bool first = r.attributes().flag("first");
  return prepared([=](const KernelArguments& a) {
    for (std::int64_t i = 0; i < sum.count(); ++i) {
      const double before =
          first ? 0.0 : static_cast<double>(static_cast<const T*>(a.inputs[0])[sum(i)]);
      static_cast<T*>(a.outputs[0])[new_sum(i)] = rounded<T>(before + grad.number(a.inputs[1], i));
    }
  });
};

}  // namespace

void add_updates(KernelList& list) {
  for (const UpdateKind& kind : update_kinds()) {
    if (!kind.may_be_grouped() || kind.compose != nullptr) continue;
    list.push_back(float_kernel(
        "reference." + kind.op, kind.op,
        [](const KernelRequest& r, auto tag) { return updates<decltype(tag)>(r, 1); }));
  }
  list.push_back(float_kernel("reference.grouped_update", "GroupedUpdate",
                              [](const KernelRequest& r, auto tag) {
                                return updates<decltype(tag)>(r, r.attributes().integer("count"));
                              }));
  list.push_back(float_kernel("reference.clip_scale", "ClipScale", clip_scale));
  list.push_back(float_kernel("reference.loss_scale", "LossScale", loss_scale));
  list.push_back(float_kernel("reference.accumulate", "Accumulate", accumulate));
}

}  // namespace tandem::reference
