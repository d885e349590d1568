// Samples that a program gives through the public library, as the engine reads them.
#pragma once

#include <memory>

#include "api/model/model.h"
#include "tandem/data_source.h"
#include "tandem/trainer.h"

namespace tandem::api {

/// Opens the data of a run whose program gives the samples; `eval` may be null. Opening throws
/// Error{usage} where a source names no field, one twice, or has no samples.
DataOpener open_samples(std::shared_ptr<const DataSource> train,
                        std::shared_ptr<const DataSource> eval);

/// Gives a run of a program's samples its [data] table. Throws Error{usage} where the configuration
/// and the options do not name the same kind of samples.
void require_data(RunConfig& config, const TrainOptions& options);

/// Throws Error{usage} where the configuration evaluates and the program gives nothing held out.
void require_held_out(const RunConfig& config, const DataSets& data);

}  // namespace tandem::api
