// A table and the states of its optimizer as row updates change them, and the sinks (row_walk.h)
// that update its rows.
#pragma once

#include <cstdint>

#include "engine/optimizers/states.h"
#include "kernels/cuda/updates/floats.h"
#include "kernels/cuda/updates/rules.h"

namespace tandem::cuda {

/// Master and states [rows, columns], all in place. A split master is `tops` and `tails` instead
/// (engine/graph/split_float.h).
struct RowTable {
  float* master;
  std::uint16_t* tops;
  std::int16_t* tails;
  float* states[most_states];
  float* row_state;  // [rows]; null where the kind has none
  std::int64_t columns;

  template <int n>
  TANDEM_HOST_DEVICE Values<n> load_master(std::int64_t at) const {
    if (master != nullptr) return load<n>(master, at);
    const auto top = load_bits<n>(tops, at);
    const auto tail = load_bits<n>(tails, at);
    Values<n> values;
    for (int k = 0; k < n; ++k) values.at[k] = joined(top.at[k], tail.at[k]);
    return values;
  }
  template <int n>
  TANDEM_HOST_DEVICE void store_master(std::int64_t at, const Values<n>& values) const {
    if (master != nullptr) return store<n>(master, at, values);
    Bits<std::uint16_t, n> top;
    Bits<std::int16_t, n> tail;
    for (int k = 0; k < n; ++k) split(values.at[k], top.at[k], tail.at[k]);
    store_bits<n>(tops, at, top);
    store_bits<n>(tails, at, tail);
  }
};

/// Kinds of single elements.
template <class Rule>
struct ElementUpdate {
  static constexpr bool whole_row = false, adds = false;
  Rule rule;
  StepScalars scalars;
  RowTable table;

  template <class Block>
  TANDEM_HOST_DEVICE StepFactors<Rule> begin(const Block& block) const {
    return step_factors(block, rule, scalars);
  }
  template <int n>
  TANDEM_HOST_DEVICE float apply(const StepFactors<Rule>& factors, std::int64_t row, std::int64_t c,
                                 const Values<n>& grad) const {
    const std::int64_t at = row * table.columns + c;
    Values<n> master = table.load_master<n>(at);
    Values<n> states[most_states] = {};
    load_states<Rule>(table.states, at, states);
    for (int k = 0; k < n; ++k) {
      float own[most_states];
      for (int s = 0; s < most_states; ++s) own[s] = states[s].at[k];
      master.at[k] = Rule::element(factors.step, master.at[k], grad.at[k], own);
      for (int s = 0; s < most_states; ++s) states[s].at[k] = own[s];
    }
    table.store_master<n>(at, master);
    store_states<Rule>(table.states, at, states);
    return 0;
  }
  template <class Block, class Added>
  TANDEM_HOST_DEVICE void finish(const Block&, const Added&, std::int64_t) const {}
};

/// Kinds of whole rows.
template <class Rule>
struct RowUpdate {
  static constexpr bool whole_row = true, adds = false;
  Rule rule;
  StepScalars scalars;
  RowTable table;

  template <class Block>
  TANDEM_HOST_DEVICE StepFactors<Rule> begin(const Block& block) const {
    return step_factors(block, rule, scalars);
  }
  template <int n>
  TANDEM_HOST_DEVICE float first(const StepFactors<Rule>& factors, std::int64_t row, std::int64_t c,
                                 const Values<n>& grad) const {
    const std::int64_t at = row * table.columns + c;
    const Values<n> master = table.load_master<n>(at);
    Values<n> states[most_states] = {};
    load_states<Rule>(table.states, at, states);
    float sum = 0;
    for (int k = 0; k < n; ++k) {
      float own[most_states];
      for (int s = 0; s < most_states; ++s) own[s] = states[s].at[k];
      sum += Rule::Kind::first(factors.step, master.at[k], grad.at[k], own);
      for (int s = 0; s < most_states; ++s) states[s].at[k] = own[s];
    }
    store_states<Rule>(table.states, at, states);
    return sum;
  }
  TANDEM_HOST_DEVICE float row_state(std::int64_t row) const {
    return Rule::row_state >= 0 ? table.row_state[row] : 0;
  }
  TANDEM_HOST_DEVICE void set_row_state(std::int64_t row, float state) const {
    if (Rule::row_state >= 0) table.row_state[row] = state;
  }
  /// Changes the row's state as well.
  TANDEM_HOST_DEVICE float factor(const StepFactors<Rule>& factors, float sum, float columns,
                                  float& state) const {
    return Rule::Kind::factor(factors.step, sum, columns, state);
  }
  template <int n>
  TANDEM_HOST_DEVICE void last(const StepFactors<Rule>& factors, std::int64_t row, std::int64_t c,
                               const Values<n>& grad, float factor) const {
    const std::int64_t at = row * table.columns + c;
    Values<n> master = table.load_master<n>(at);
    Values<n> states[most_states] = {};
    load_states<Rule>(table.states, at, states);
    for (int k = 0; k < n; ++k) {
      float own[most_states];
      for (int s = 0; s < most_states; ++s) own[s] = states[s].at[k];
      master.at[k] = Rule::Kind::last(factors.step, master.at[k], grad.at[k], own, factor);
    }
    table.store_master<n>(at, master);
  }
  template <class Block, class Added>
  TANDEM_HOST_DEVICE void finish(const Block&, const Added&, std::int64_t) const {}
};

}  // namespace tandem::cuda
