// A source whose ids never leave the table that they look up.
#pragma once

#include <map>
#include <memory>

#include "engine/training/data/data_source.h"

namespace tandem {

/// Integer fields (by index) give 0 in place of what is not from 0 to limit - 1.
std::shared_ptr<const DataSource> make_bounded_source(std::shared_ptr<const DataSource> source,
                                                      std::map<int, std::int64_t> limits);

}  // namespace tandem
