// Rules: a kind of optimizer with the states that it keeps, in one type of number. What kernels are
// compiled for, from the list of optimizers.
#pragma once

#include <type_traits>
#include <utility>

#include "engine/optimizers/states.h"

namespace tandem {

template <class Optimizer>
inline constexpr unsigned all_states = (1u << state_count<Optimizer>)-1u;
/// As bits: the states that have one number a row.
template <class Optimizer>
inline constexpr unsigned row_states = [] {
  unsigned bits = 0;
  for (int k = 0; k < state_count<Optimizer>; ++k)
    bits |= static_cast<unsigned>(Optimizer::states[k].shape == StateShape::one_per_row) << k;
  return bits;
}();
/// Index of the state of this shape; -1: none.
template <class Optimizer>
inline constexpr int state_of_shape(StateShape shape) {
  for (int k = 0; k < state_count<Optimizer>; ++k) {
    if (Optimizer::states[k].shape == shape) return k;
  }
  return -1;
}
/// As bits: the states that a master keeps under these settings.
template <class Optimizer>
constexpr unsigned kept_states(const typename Optimizer::Settings& settings) {
  return Optimizer::states_of(settings) & all_states<Optimizer>;
}

/// `kept`: the states that are there. Kinds of single elements have element(step, w, grad, states),
/// which returns the new master and replaces the states. Kinds of whole rows walk twice over a row:
/// `first` changes the states that are as long as the row and returns what is summed over it,
/// `factor` gets that sum and the state that has one number for the row, `last` returns the new
/// master. Kinds of whole tensors are like lamb.h, or, where states are statistics of rows and
/// columns, like adafactor.h. Composed kinds, like muon.h, and those that keep bytes, like
/// adam8bit.h, have no rule.
template <class Optimizer, unsigned kept, class T>
struct Rule {
  using Kind = Optimizer;
  using Number = T;
  using Settings = typename Optimizer::Settings;
  using Step = typename Optimizer::template Step<T>;
  static constexpr unsigned set = kept;
  static constexpr bool whole_row = Optimizer::whole_row, whole_tensor = Optimizer::whole_tensor;
  static constexpr bool factored = state_of_shape<Optimizer>(StateShape::row_statistics) >= 0;
  static constexpr int states = state_count<Optimizer>;
  /// Whether state k is there and as long as the master.
  static TANDEM_FORMULA constexpr bool has(int k) {
    return ((kept & ~row_states<Optimizer>) >> k & 1u) != 0;
  }
  /// Index of the state with one number a row; -1: none.
  static constexpr int row_state = [] {
    for (int k = 0; k < states; ++k) {
      if ((kept & row_states<Optimizer>) >> k & 1u) return k;
    }
    return -1;
  }();

  Settings settings;

  TANDEM_FORMULA Step step(double lr, std::int64_t number, double scale) const {
    return Optimizer::template step<T>(settings, lr, number, scale);
  }
  static TANDEM_FORMULA T element(const Step& step, T w, T grad, T* own) {
    return Optimizer::template element<kept>(step, w, grad, own);
  }
};

template <class... Rules>
struct RuleList {
  static constexpr int size = sizeof...(Rules);
};

namespace rule_lists {
template <class... A>
RuleList<A...> joined(RuleList<A...>);
template <class... A, class... B, class... More>
auto joined(RuleList<A...>, RuleList<B...>, More... more) {
  return joined(RuleList<A..., B...>{}, more...);
}
template <class T, class Optimizer, std::size_t... i>
requires HasRule<Optimizer>
    RuleList<Rule<Optimizer, Optimizer::state_sets[i] & all_states<Optimizer>, T>...> of_one(
        std::index_sequence<i...>);
template <class T, class Optimizer, std::size_t... i>
requires(!HasRule<Optimizer>) RuleList<> of_one(std::index_sequence<i...>);
template <class Optimizer>
inline constexpr std::size_t sets = sizeof(Optimizer::state_sets) / sizeof(unsigned);
template <class T, class... Kinds>
auto of_all(OptimizerList<Kinds...>)
    -> decltype(joined(of_one<T, Kinds>(std::make_index_sequence<sets<Kinds>>{})...));

template <class Wanted, class... Rules>
constexpr int place(RuleList<Rules...>) {
  int at = 0, found = -1;
  ((found = std::is_same_v<Wanted, Rules> ? at : found, ++at), ...);
  return found;
}
}  // namespace rule_lists

/// The rules of all optimizers, in the order of their list; that order is the same for each type of
/// number.
template <class T>
using RulesOf = decltype(rule_lists::of_all<T>(Optimizers{}));
inline constexpr int rule_count = RulesOf<float>::size;
/// A rule's place in the list.
template <class R>
inline constexpr int rule_index = rule_lists::place<R>(RulesOf<typename R::Number>{});

}  // namespace tandem
