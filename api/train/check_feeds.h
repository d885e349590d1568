// What a Session is fed, checked before the step as the data of a run is.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/train/divergence/check_integers.h"
#include "engine/train/graph/add_losses.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// Throws Error{data} with array and row (counted from 1) for labels and ids that are out of range.
/// `types`: types of the feeds; `samples`: the extent of axis 0 of arrays that have one entry per
/// sample.
void check_feeds(const FieldChecks& checks, const std::map<std::string, Array>& feeds,
                 const FieldTypes& types, std::int64_t samples);

}  // namespace tandem::api
