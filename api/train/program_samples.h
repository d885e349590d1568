// Samples that a program gives through the public library, as the engine reads them.
#pragma once

#include <memory>

#include "api/model/model.h"
#include "tandem/data_source.h"

namespace tandem::api {

/// Opens the data of a run whose program gives the samples; `eval` may be null. Opening throws
/// Error{usage} where a source names no field, one twice, or has no samples.
DataOpener open_samples(std::shared_ptr<const DataSource> train,
                        std::shared_ptr<const DataSource> eval);

}  // namespace tandem::api
