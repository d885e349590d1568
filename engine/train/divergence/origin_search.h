// The first operator of a step whose result is not finite though all that it reads is: found in the
// graph, once it is known which values are not finite.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "engine/graph/error.h"
#include "engine/graph/graph.h"

namespace tandem {

/// What a value holds besides numbers.
struct Marks {
  bool nan = false, infinite = false;
  bool any() const { return nan || infinite; }
};
/// By number of a value; one that is not here is finite. States have their values before the step.
using MarkedValues = std::map<std::int32_t, Marks>;

struct NotFiniteOrigin {
  std::string path;           // the operator's or the parameter's
  std::string op;             // "": a parameter had it before the step
  bool is_nan = false;        // false: it is an infinity
  bool is_gradient = false;   // it began in the gradient of the operator at that path
  std::string given_by = {};  // "the buffer mask": whose infinity or NaN the operator reads

  bool is_parameter() const { return op.empty(); }
  /// "inf begins here, in Log: its operand is 0 or below", at the path.
  Diagnostic diagnostic() const;
};

/// The origin that comes first in the graph of those that have made `targets` not finite; nothing
/// where these are finite. NaN comes from a NaN where an operator reads one, else from an infinity
/// that was computed, or that a parameter has. Infinities that are given by a constant, a buffer or
/// the data are intended, as those of masks are: NaN that comes only from them begins where the NaN
/// does.
std::optional<NotFiniteOrigin> search_origin(const Graph& graph, const MarkedValues& marked,
                                             std::span<const ValueId> targets);

}  // namespace tandem
