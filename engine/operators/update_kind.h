// The kinds of optimizer steps, one value each, from the list of optimizers: what the operator for
// one parameter, GroupedUpdate and RowsUpdate need to know.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/operators/operator.h"
#include "engine/optimizers/formula.h"

namespace tandem {

/// What an update keeps of a master between steps.
struct UpdateState {
  std::string name;  // "exp_avg"
  StateShape shape = StateShape::like_master;
  bool optional = false;  // some settings or masters do without it
  bool squares = false;   // a sum or mean of squares: never negative, a step takes its root
  bool lead = false;      // weights that are used are the parameter less this state
  StateForm form = StateForm::whole;
};

struct ComposedStep;  // engine/optimizers/composed.h
struct ComposedResult;

struct UpdateKind {
  std::string op;                         // the operator for one parameter: "AdamUpdate"
  std::vector<AttributeSpec> attributes;  // its settings
  std::vector<UpdateState> states;        // inputs after master and grad; the outputs are new_*
  /// Throws through `fail` where settings are out of range or do not fit together.
  void (*require_settings)(const NodeView& view) = nullptr;
  /// As bits: the states that these settings keep.
  unsigned (*kept)(const Attributes& settings) = nullptr;
  /// Whether with these settings a gradient of zeros changes neither master nor states, so that
  /// rows without a gradient need no update.
  bool (*keeps_still)(const Attributes& settings) = nullptr;
  /// What an element of a master [rows, ...] becomes depends on all of its row; the master needs
  /// two dimensions or more.
  bool whole_row = false;
  /// What an element becomes depends on all of the master, which is neither cut nor updated by
  /// rows; master and states are read twice.
  bool whole_tensor = false;
  double flops = 0;  // per element of the master
  /// What a parameter has to be that has that many axes: "a matrix"; null: it fits.
  const char* (*needs)(const Attributes& settings, std::size_t axes) = nullptr;
  /// Adds a step's operators, where the kind has none of its own; `op` is then only a name.
  ComposedResult (*compose)(const Attributes& settings, ComposedStep& step) = nullptr;
  /// The kind of the rule that takes the step: another one where states are kept as bytes.
  std::string rule;

  /// Whether states are bytes, which blocks of state_block elements scale.
  bool keeps_bytes() const { return rule != op; }
  bool elementwise() const {
    return !whole_row && !whole_tensor && compose == nullptr && !keeps_bytes();
  }
  /// Whether rows of a table can be updated by themselves.
  bool updates_rows() const { return whole_row || elementwise(); }
  /// Whether GroupedUpdate takes it.
  bool may_be_grouped() const { return !whole_row && !keeps_bytes(); }
  /// Whether states are statistics of rows and columns.
  bool is_factored() const;
  /// The shape of states[k] for a master of that shape.
  Shape state_shape(std::size_t k, const Shape& master) const;
  TensorType state_type(std::size_t k, const TensorType& master) const;
  bool keeps_state(std::size_t k, const Attributes& settings, const Shape& master) const;
};

/// The last two axes of a master; a vector or scalar is one row.
struct Matrices {
  std::int64_t count = 1, rows = 1, columns = 1;
  bool is_vector = false;
  std::int64_t elements() const { return count * rows * columns; }
};
Matrices matrices_of(const Shape& master);

/// Where a factored kind has its states.
struct FactoredStates {
  int row, column, vector;
};
FactoredStates factored_states(const UpdateKind& kind);

/// All kinds; addresses stay valid.
const std::vector<UpdateKind>& update_kinds();
/// Whether some kind keeps squares in a state of this name, and none anything else.
bool is_state_of_squares(std::string_view name);
/// The names of states that lead is true of.
const std::vector<std::string>& lead_states();
/// The kind with an operator of that name; null if there is none.
const UpdateKind* find_update_kind(std::string_view op);
/// The kind of a node of such an operator, of GroupedUpdate or of RowsUpdate.
const UpdateKind& update_kind(const Node& node);

/// The settings of all kinds, or of those that update rows, each once: what GroupedUpdate and
/// RowsUpdate declare.
std::vector<AttributeSpec> all_update_attributes(bool of_rows);
/// Those of `attributes` that the operator declares.
Attributes declared_attributes(const Operator& op, const Attributes& attributes);

}  // namespace tandem
