// Steps that consist of operators: of optimizers that no formula for single elements describes, or
// whose formula needs more numbers than the scalars of all updates.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/graph/builder.h"

namespace tandem {

/// One step of one parameter, while its kind adds operators to the training graph. Where ranks
/// share the optimizer's states (ZeRO), master, gradient and states are this rank's flat parts.
struct ComposedStep {
  GraphBuilder& g;
  ValueId master;
  ValueId gradient;             // float32, times the scale
  std::vector<ValueId> states;  // before the step, by the kind's list
  ValueId lr, number, skip;     // scalars: float32; int64, from 1; bool, none: never skipped
  ValueId whole_master;         // all of the parameter
  Ints unit_axes;  // the axes of all of it over which the weights of one output unit lie; empty:
                   // unknown
  /// The parts of all ranks in the parameter's shape; the value itself where there are none.
  std::function<ValueId(ValueId part)> whole;

  /// `after`, or `before` where the step is skipped.
  ValueId unless_skipped(ValueId before, ValueId after) {
    return skip ? g.add_node("Where", {skip, before, after}) : after;
  }
  ValueId number_of(double x) { return g.scalar(x, DType::float32); }
};

/// What a step makes.
struct ComposedResult {
  ValueId master;  // new value of `master`, or of `whole_master` where `is_whole`
  std::vector<ValueId> states;
  bool is_whole = false;
};

/// The path of these operators; all of them run where the parameter's states are.
inline std::string composed_path(const std::string& parameter) {
  return "optimizer." + parameter + "/step";
}

}  // namespace tandem
