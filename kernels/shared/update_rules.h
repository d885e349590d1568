// Every update kind as a function of elements, for kernels that are written once for all kinds.
#pragma once

#include <cassert>
#include <string_view>

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

/// Whether a step with this learning rate is none: FTRL divides by it, and a schedule may end at 0.
inline bool is_no_step(std::string_view op, double lr) {
  return lr == 0 && (op == "FtrlUpdate" || op == "GroupFtrlUpdate");
}

/// Returns f(make), where make(lr, step, scale) gives the step's rule: rule(master, grad, states)
/// returns the new master and replaces the states. T is the master's type. Not for kinds by row.
template <class T, class F>
auto with_update_rule(std::string_view op, const Attributes& settings, F f) {
  if (op == "SgdUpdate" && settings.number("momentum") == 0) {
    return f([s = sgd_settings(settings)](double lr, std::int64_t step, double scale) {
      return [s = sgd_step<T>(s, lr, step, scale)](T master, T grad, T*) {
        return sgd_element(s, master, grad);
      };
    });
  }
  if (op == "SgdUpdate") {
    return f([s = sgd_settings(settings)](double lr, std::int64_t step, double scale) {
      return [s = sgd_step<T>(s, lr, step, scale)](T master, T grad, T* states) {
        return sgd_element(s, master, grad, states[0]);
      };
    });
  }
  if (op == "AdagradUpdate") {
    return f([s = adagrad_settings(settings)](double lr, std::int64_t step, double scale) {
      return [s = adagrad_step<T>(s, lr, step, scale)](T master, T grad, T* states) {
        return row_formulas::row_adagrad(s, master, grad, states[0]);
      };
    });
  }
  if (op == "FtrlUpdate") {
    return f([s = ftrl_settings(settings)](double lr, std::int64_t, double scale) {
      return [s = ftrl_step<T>(s, lr, scale)](T master, T grad, T* states) {
        return row_formulas::row_ftrl(s, master, grad, states[0], states[1]);
      };
    });
  }
  assert(op == "AdamUpdate");
  return f([s = adam_settings(settings)](double lr, std::int64_t step, double scale) {
    return [s = adam_step<T>(s, lr, step, scale)](T master, T grad, T* states) {
      return adam_element(s, master, grad, states[0], states[1]);
    };
  });
}

/// The same for rows: rule(master, grad, states, columns) replaces a row of the master and its
/// states, which are as long, or one element where the kind's states are by row. For all kinds.
template <class T, class F>
auto with_row_rule(std::string_view op, const Attributes& settings, F f) {
  if (op == "RowwiseAdagradUpdate") {
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
  }
  if (op == "GroupFtrlUpdate") {
    return f([s = ftrl_settings(settings)](double lr, std::int64_t, double scale) {
      return
          [s = ftrl_step<T>(s, lr, scale)](T* w, const T* grad, T** states, std::int64_t columns) {
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
