// Every update kind as a function of elements, for kernels that are written once for all kinds.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "engine/graph/error.h"
#include "kernels/shared/optimizer.h"
#include "kernels/shared/row_optimizers.h"

namespace tandem {

inline AdagradSettings adagrad_settings(const Attributes& attributes) {
  return {attributes.number("epsilon"), attributes.number("weight_decay"),
          attributes.number("lr_decay")};
}

inline FtrlSettings ftrl_settings(const Attributes& attributes) {
  FtrlSettings s;
  s.l1 = attributes.number("l1");
  s.l2 = attributes.number("l2");
  s.beta = attributes.number("beta");
  s.l2_shrinkage = attributes.number("l2_shrinkage");
  s.lr_power = attributes.number("lr_power");
  s.l21 = attributes.number("l21");
  const std::string& dialect = attributes.text("dialect");
  s.dialect = dialect == "tensorflow"  ? FtrlDialect::tensorflow
              : dialect == "mindspore" ? FtrlDialect::mindspore
                                       : FtrlDialect::mcmahan;
  return s;
}

/// The kinds and their operators, each of engine/operators/update_kind.h once.
struct RowOptimizerOp {
  RowOptimizer kind;
  std::string_view op;
};
inline constexpr RowOptimizerOp row_optimizer_ops[] = {
    {RowOptimizer::sgd, "SgdUpdate"},
    {RowOptimizer::adam, "AdamUpdate"},
    {RowOptimizer::adagrad, "AdagradUpdate"},
    {RowOptimizer::rowwise_adagrad, "RowwiseAdagradUpdate"},
    {RowOptimizer::ftrl, "FtrlUpdate"},
    {RowOptimizer::group_ftrl, "GroupFtrlUpdate"},
};

/// Our own mistake, which must not become the update of another kind.
[[noreturn]] inline void fail_update(std::string_view op, const char* what) {
  Diagnostic d;
  d.message = "internal error: " + std::string(op) + " " + what;
  throw Error(ErrorKind::runtime, std::move(d));
}

/// Of UpdateKind::op. Throws where the table lacks it.
inline RowOptimizer row_optimizer(std::string_view op) {
  for (const RowOptimizerOp& known : row_optimizer_ops) {
    if (known.op == op) return known.kind;
  }
  fail_update(op, "is missing in row_optimizer_ops");
}

/// Whether a step with this learning rate is none: FTRL divides by it, and a schedule may end at 0.
TANDEM_HOST_DEVICE inline bool is_no_step(RowOptimizer kind, double lr) {
  switch (kind) {
    case RowOptimizer::ftrl:
    case RowOptimizer::group_ftrl:
      return lr == 0;
    case RowOptimizer::sgd:
    case RowOptimizer::adam:
    case RowOptimizer::adagrad:
    case RowOptimizer::rowwise_adagrad:
      break;
  }
  return false;
}

/// Returns f(make), where make(lr, step, scale) gives the step's rule: rule(master, grad, states)
/// returns the new master and replaces the states. T is the master's type. Throws for kinds that
/// need whole rows.
template <class T, class F>
auto with_update_rule(std::string_view op, const Attributes& settings, F f) {
  switch (row_optimizer(op)) {
    case RowOptimizer::sgd:
      if (settings.number("momentum") == 0) {
        return f([s = sgd_settings(settings)](double lr, std::int64_t step, double scale) {
          return [s = sgd_step<T>(s, lr, step, scale)](T master, T grad, T*) {
            return sgd_element(s, master, grad);
          };
        });
      }
      return f([s = sgd_settings(settings)](double lr, std::int64_t step, double scale) {
        return [s = sgd_step<T>(s, lr, step, scale)](T master, T grad, T* states) {
          return sgd_element(s, master, grad, states[0]);
        };
      });
    case RowOptimizer::adam:
      return f([s = adam_settings(settings)](double lr, std::int64_t step, double scale) {
        return [s = adam_step<T>(s, lr, step, scale)](T master, T grad, T* states) {
          return adam_element(s, master, grad, states[0], states[1]);
        };
      });
    case RowOptimizer::adagrad:
      return f([s = adagrad_settings(settings)](double lr, std::int64_t step, double scale) {
        return [s = adagrad_step<T>(s, lr, step, scale)](T master, T grad, T* states) {
          return row_formulas::row_adagrad(s, master, grad, states[0]);
        };
      });
    case RowOptimizer::ftrl:
      return f([s = ftrl_settings(settings)](double lr, std::int64_t, double scale) {
        return [s = ftrl_step<T>(s, lr, scale)](T master, T grad, T* states) {
          return row_formulas::row_ftrl(s, master, grad, states[0], states[1]);
        };
      });
    case RowOptimizer::rowwise_adagrad:
    case RowOptimizer::group_ftrl:
      break;
  }
  fail_update(op, "has no rule for single elements");
}

/// The same for rows: rule(master, grad, states, columns) replaces a row of the master and its
/// states, which are as long, or one element where a state is by row. For all kinds.
template <class T, class F>
auto with_row_rule(std::string_view op, const Attributes& settings, F f) {
  switch (row_optimizer(op)) {
    case RowOptimizer::rowwise_adagrad:
      return f([s = adagrad_settings(settings)](double lr, std::int64_t step, double scale) {
        return [s = adagrad_step<T>(s, lr, step, scale)](T* w, const T* grad, T** states,
                                                         std::int64_t columns) {
          T squares = 0;
          for (std::int64_t c = 0; c < columns; ++c) {
            const T g = row_formulas::rowwise_gradient(s, w[c], grad[c]);
            squares += g * g;
          }
          const T factor = row_formulas::rowwise_factor(s, squares, T(columns), states[0][0]);
          for (std::int64_t c = 0; c < columns; ++c) {
            w[c] = w[c] - factor * row_formulas::rowwise_gradient(s, w[c], grad[c]);
          }
        };
      });
    case RowOptimizer::group_ftrl:
      return f([s = ftrl_settings(settings)](double lr, std::int64_t, double scale) {
        return [s = ftrl_step<T>(s, lr, scale)](T* w, const T* grad, T** states,
                                                std::int64_t columns) {
          T squares = 0;
          for (std::int64_t c = 0; c < columns; ++c) {
            row_formulas::ftrl_states(s, w[c], grad[c], states[0][c], states[1][c]);
            const T x = row_formulas::ftrl_threshold(s, states[1][c]);
            squares += x * x;
          }
          const T factor = row_formulas::group_factor(s.l21, squares, T(columns));
          for (std::int64_t c = 0; c < columns; ++c) {
            const T x = row_formulas::ftrl_threshold(s, states[1][c]);
            const T power = row_formulas::ftrl_power(s, states[0][c]);
            w[c] = row_formulas::ftrl_quotient(s, x * factor, power);
          }
        };
      });
    case RowOptimizer::sgd:
    case RowOptimizer::adam:
    case RowOptimizer::adagrad:
    case RowOptimizer::ftrl:
      break;
  }
  return with_update_rule<T>(op, settings, [&](auto make) {
    return f([make](double lr, std::int64_t step, double scale) {
      return [rule = make(lr, step, scale)](T* w, const T* grad, T** states, std::int64_t columns) {
        for (std::int64_t c = 0; c < columns; ++c) {
          T own[2] = {states[0] ? states[0][c] : T(0), states[1] ? states[1][c] : T(0)};
          w[c] = rule(w[c], grad[c], own);
          for (int k = 0; k < 2; ++k) {
            if (states[k]) states[k][c] = own[k];
          }
        }
      };
    });
  });
}

}  // namespace tandem
