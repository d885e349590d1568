// The data that a trained model is used on: files in the format of its configuration.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/trained_run.h"
#include "engine/training/data/sample_stream.h"

namespace tandem::api {

using Messages = std::function<void(const std::string&)>;

/// Samples of `files` with the fields that feed `inputs`, checked and ready to be fed. What the
/// other fields are made of need not be there. Throws Error{usage|data}.
std::unique_ptr<SampleStream> open_samples(TrainedModel& trained,
                                           const std::vector<std::string>& inputs,
                                           const std::vector<std::string>& files,
                                           const Messages& say);

/// All of `files` with all fields that the model and its loss need; without files the data that
/// the configuration holds out.
std::shared_ptr<const DataSource> open_held_out(TrainedModel& trained,
                                                const std::vector<std::string>& files,
                                                const Messages& say);

}  // namespace tandem::api
