// A source whose ids name rows of the table that they look up, or none.
#pragma once

#include <map>
#include <memory>

#include "engine/data/data_source.h"

namespace tandem {

/// Values outside of 0 to limit - 1 become `outside`, which the field's type holds.
struct IdBound {
  std::int64_t limit = 0, outside = 0;
};

/// Integer fields (by index) with bounds. A field's range, checked, is that of its values within
/// the bound; `outside` passes where it is to be ignored.
std::shared_ptr<const DataSource> make_bounded_source(std::shared_ptr<const DataSource> source,
                                                      std::map<int, IdBound> bounds);

}  // namespace tandem
