// What the files of optimizers are written with: arithmetic for numbers (float, double; host and
// device) and for a processor's vectors, and how a kind describes itself.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "engine/graph/number_range.h"

// A formula is always part of the loop that calls it: a copy of its own, compiled for one
// processor, could be linked where another one runs.
#if defined(__CUDACC__)
#define TANDEM_FORMULA __host__ __device__ __forceinline__
#else
#define TANDEM_FORMULA inline __attribute__((always_inline))
#endif

namespace tandem {

/// sqrt, abs and power of an operand; loops over vectors specialise it for theirs.
template <class T>
struct FormulaMath {
  static TANDEM_FORMULA T sqrt(T x) { return std::sqrt(x); }
  static TANDEM_FORMULA T abs(T x) { return std::fabs(x); }
  static TANDEM_FORMULA T power(T x, T exponent) { return std::pow(x, exponent); }
};

template <class T>
TANDEM_FORMULA T formula_sqrt(T x) {
  return FormulaMath<T>::sqrt(x);
}
template <class T>
TANDEM_FORMULA T formula_abs(T x) {
  return FormulaMath<T>::abs(x);
}
template <class T, class S>
TANDEM_FORMULA T formula_power(T x, S exponent) {
  return FormulaMath<T>::power(x, exponent);
}

/// A key of the configuration and the attribute of the update, whose name is an alias of the key.
/// "" for the key: users cannot set it; for the attribute: the update need not know it.
struct SettingNames {
  const char* key;
  const char* attribute;
  constexpr SettingNames(const char* name) : key(name), attribute(name) {}
  constexpr SettingNames(const char* name, const char* other) : key(name), attribute(other) {}
};

/// A name under which users ask for a kind.
template <class Settings>
struct OptimizerName {
  const char* name;
  const char* source;      // where the definition is from
  Settings defaults = {};  // what the name changes
  bool lazy = false;       // rows without a gradient stay as they are, by definition
  double lr = 1e-3;        // by default
};

/// The shape of a state, from that of its master.
enum class StateShape {
  like_master,
  one_per_row,        // [rows] of a master [rows, ...]
  row_statistics,     // [..., rows, 1] of [..., rows, columns]; none for a vector
  column_statistics,  // [..., 1, columns] of it; none for a vector
  like_vector,        // the shape of a vector or scalar; none where there are rows and columns
  number,             // one number for all of the parameter
  one_per_block,      // [ceil(elements / state_block)]: of each block of its row-major elements
};

/// Elements of a parameter whose 8-bit states have a scale in common.
inline constexpr std::int64_t state_block = 256;

/// In which form a state keeps its numbers: float32, or bytes of engine/optimizers/dynamic_map.h
/// that are multiplied with the scales of a later state.
enum class StateForm { whole, signed_bytes, positive_bytes };

/// What is kept of a master between steps.
struct OptimizerState {
  const char* name;
  StateShape shape = StateShape::like_master;
  const char* start = nullptr;  // the key of the setting that says where it starts; null: at 0
  bool squares = false;         // a sum or mean of squares: never negative, a step takes its root
  /// How far the weights that train are ahead of those that evaluations, predictions and exports
  /// use: these are the parameter less this state.
  bool lead = false;
  StateForm form = StateForm::whole;
};

/// The sums from which a kind of whole tensors computes the factor of a step.
struct TensorSums {
  const double* squares;  // the sum of squares of each term
  std::int64_t elements, step;
};

/// Settings that do not fit together, and what is wrong.
struct SettingsProblem {
  const char* key = nullptr;  // null: they fit
  const char* message = "";
};

/// A kind whose step consists of operators (composed.h) instead of a formula.
template <class Kind>
concept Composed = requires {
  &Kind::compose;
};

/// A kind that keeps the states of another one, `Kind::Formula`, as bytes: first these, then the
/// scales of each.
template <class Kind>
concept KeepsBytes = requires {
  typename Kind::Formula;
};
/// A kind whose formula kernels are compiled for.
template <class Kind>
concept HasRule = !Composed<Kind> && !KeepsBytes<Kind>;

/// What kinds have in common; each hides what differs. A Step may say that some of its members are
/// flags: `flags` how many, flag(k) which. Loops are compiled for each of their values.
struct OptimizerDefaults {
  static constexpr bool whole_row = false;     // an element depends on the others of its row
  static constexpr bool whole_tensor = false;  // an element depends on all of its tensor
  /// Every set of states, as bits, that settings may ask for; by default always all states.
  static constexpr unsigned state_sets[] = {~0u};
  /// The set of states for these settings.
  template <class Settings>
  static constexpr unsigned states_of(const Settings&) {
    return ~0u;
  }
  /// Whether a gradient of zeros changes neither master nor states.
  template <class Settings>
  static constexpr bool keeps_still(const Settings&) {
    return false;
  }
  /// Whether a gradient of few rows need not be made dense, and the settings that this is about:
  /// "without momentum".
  template <class Settings>
  static constexpr bool takes_rows(const Settings&) {
    return true;
  }
  static constexpr const char* rows_need = "";
  template <class Settings>
  static constexpr SettingsProblem problem(const Settings&) {
    return {};
  }
  /// What a parameter has to be that has that many axes; null: it fits.
  template <class Settings>
  static constexpr const char* needs(const Settings&, std::size_t) {
    return nullptr;
  }
  /// Whether no step is taken with this learning rate.
  static TANDEM_FORMULA bool is_no_step(double) { return false; }
};

}  // namespace tandem
