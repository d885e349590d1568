// Which different texts the columns of a table hold.
#pragma once

#include <string_view>
#include <vector>

#include "api/init/facts.h"
#include "engine/training/data/vocabulary.h"

namespace tandem::api {

class ColumnTexts {
 public:
  /// What takes more memory than init should is only known to be more.
  void add(std::size_t column, std::string_view text);
  /// Tells the arrays, each of the column of its number. `all`: no row was left out.
  void tell(std::vector<ArrayFacts>& columns, bool all) const;

 private:
  ValueCounts values_;
  bool more_ = false;
};

}  // namespace tandem::api
