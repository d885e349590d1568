// Looks for values that are not finite in what a checkpoint would hold.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "engine/graph/finiteness.h"
#include "engine/runtime/program.h"

namespace tandem {

/// Checks rows of a state; all of it where its rows cannot be reached without a whole copy. Several
/// threads read them.
Finiteness finiteness_of(const StateStore& states, const std::string& name, std::int64_t first,
                         std::int64_t rows);

/// Whether a state is a parameter or a running statistic of float type.
bool can_be_not_finite(const StateStore& states, const std::string& name);

struct NotFiniteState {
  std::string name;
  Finiteness worst = Finiteness::nan;
};
/// Parameters and running statistics that hold nan, or an infinity that is not in a state of
/// `allowed`. Reads all of them; `parts_alone`: only sharded ones.
std::vector<NotFiniteState> not_finite_states(const StateStore& states,
                                              const std::set<std::string>& allowed,
                                              bool parts_alone = false);

/// Names one: "a parameter or running statistic is not finite" and `where`, " at step 6".
Diagnostic diagnostic_of(const NotFiniteState& state, const std::string& where);

}  // namespace tandem
