// How many operators and parameters there are: one meaning of these words for all reports.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace tandem {

struct ItemCounts {
  int operators = 0;   // in the model: one a path
  int parameters = 0;  // whether they train or not; shared ones once
  int buffers = 0;     // running statistics
  int added = 0;       // parts that training adds to the model: "loss.total"

  void add_operator(bool is_added) { ++(is_added ? added : operators); }
  void add_parameter(StateKind kind) { ++(kind == StateKind::parameter ? parameters : buffers); }
  bool any() const { return operators + parameters + buffers + added > 0; }
  bool operator==(const ItemCounts&) const = default;
};

/// "9 operators, 0 parameters, 2 added parts": operators and parameters always, others where there
/// are some.
std::string counts_text(const ItemCounts& counts);
/// Only the counts that are not 0, a text each: "2 added parts".
std::vector<std::string> nonzero_counts(const ItemCounts& counts);

}  // namespace tandem
