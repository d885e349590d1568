// Rows of parameters that keep their values: the rules of [parameters] fixed_rows, resolved, and
// how they change an update. The rows of the padding id, which gets no gradient in PyTorch, are an
// example.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/train/updates/add_update.h"
#include "engine/train/updates/parameter_choice.h"

namespace tandem {

/// The rows of a parameter that all rules fix together.
struct FixedRows {
  std::string name;                     // the parameter's
  const FixedRowsRule* rule = nullptr;  // the last that covers it
  std::vector<std::int64_t> rows;       // ascending
};

/// In the graph's order. Throws Error{usage} with every rule that covers no parameter, or names a
/// row that one has not.
std::vector<FixedRows> fixed_rows(const ParametersConfig& config, const Graph& graph);

/// The fixed rows of a parameter, or of the table of which it is a cache; null where there are
/// none.
const FixedRows* find_fixed_rows(const std::vector<FixedRows>& all, const State& parameter);

/// Makes the update leave the rows unchanged: they are removed from a gradient of rows, and an
/// update with any other gradient is computed row by row. Throws Error{usage} where the optimizer
/// cannot. To be called before gradients are added up: then `request.rows` is what is marked.
void keep_rows(GraphBuilder& g, const FixedRows& fixed, const Chosen& chosen,
               UpdateRequest& request);

/// For an update whose gradient is dense in the end: marks of all rows but the fixed ones.
ValueId marks_of_other_rows(GraphBuilder& g, const FixedRows& fixed, const State& parameter);

}  // namespace tandem
