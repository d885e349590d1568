// A source whose sequences are cut to the length of a bucket.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/data/data_source.h"

namespace tandem {

/// The first `length` values of these fields along axis 0 of a sample, which have as many at least.
/// All samples that are read are no longer than that. Checks are those of the whole fields.
std::shared_ptr<const DataSource> cut_source(std::shared_ptr<const DataSource> source,
                                             const std::vector<int>& fields, std::int64_t length);

}  // namespace tandem
