// What a Session is fed, checked before the step as the data of a run is.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/data/data_source.h"
#include "engine/graph/error.h"
#include "engine/train/divergence/check_integers.h"
#include "engine/train/graph/add_losses.h"
#include "tandem/tensor.h"

namespace tandem::api {

/// Throws Error{data} with array and row (counted from 1) for labels and ids that are out of range.
/// `types`: types of the feeds; `samples`: the extent of axis 0 of arrays that have one entry per
/// sample.
void check_feeds(const FieldChecks& checks, const Tensors& feeds, const FieldTypes& types,
                 std::int64_t samples);

/// Rows of floats with nan or, where there are none, with infinities: the cause of a loss that is
/// not finite.
std::vector<Diagnostic> not_finite_feeds(const Tensors& feeds, const FieldTypes& types);

/// The feeds as a data set, where index i of axis 0 of each of them is sample i; null: there is
/// none. Throws Error{usage} where one has another number of samples.
std::shared_ptr<const tandem::DataSource> source_of_feeds(const Tensors& feeds,
                                                          const FieldTypes& types);

}  // namespace tandem::api
