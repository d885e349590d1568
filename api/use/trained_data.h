// The data that a trained model is used on: files in the format of its configuration.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/use/trained_run.h"
#include "engine/training/data/sample_stream.h"

namespace tandem::api {

/// Samples of `options.data` with the fields that feed `inputs`, checked and ready to be fed. What
/// the other fields are made of need not be there. Throws Error{usage|data}.
std::unique_ptr<SampleStream> open_samples(TrainedModel& trained,
                                           const std::vector<std::string>& inputs,
                                           const TrainedOptions& options);

/// All of `options.data` with all fields that the model and its loss need; without files the data
/// that the configuration holds out. Tables are encoded now: `options.on_progress` hears of it.
std::shared_ptr<const DataSource> open_held_out(TrainedModel& trained,
                                                const TrainedOptions& options);

}  // namespace tandem::api
