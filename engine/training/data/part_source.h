// Consecutive samples of a source as a source of their own.
#pragma once

#include <memory>

#include "engine/training/data/data_source.h"
#include "engine/training/data/loader.h"

namespace tandem {

/// Sample 0 is `part.first` of `source`. Checks are those of all its samples.
std::shared_ptr<const DataSource> make_part_source(std::shared_ptr<const DataSource> source,
                                                   const SampleShare& part);

}  // namespace tandem
