// Some samples of a source as a source of their own, under new numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/data/data_source.h"
#include "engine/data/loader.h"

namespace tandem {

/// Sample i is `samples[i]` of `source`. Checks are those of all its samples.
std::shared_ptr<const DataSource> make_subset_source(std::shared_ptr<const DataSource> source,
                                                     std::vector<std::int64_t> samples);

/// Sample i is `part.first` + i of `source`, for which nothing is kept.
std::shared_ptr<const DataSource> make_part_source(std::shared_ptr<const DataSource> source,
                                                   const SampleShare& part);

}  // namespace tandem
