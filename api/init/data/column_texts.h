// Collects the distinct texts in the columns of a table.
#pragma once

#include <string_view>
#include <vector>

#include "api/init/facts.h"
#include "engine/data/vocabulary.h"

namespace tandem::api {

class ColumnTexts {
 public:
  /// Beyond a limit of memory, further distinct texts are only noted to exist.
  void add(std::size_t column, std::string_view text);
  /// Writes the result into the arrays, by column number. `all`: no row was left out.
  void tell(std::vector<ArrayFacts>& columns, bool all) const;

 private:
  ValueCounts values_;
  bool more_ = false;
};

}  // namespace tandem::api
