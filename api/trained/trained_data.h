// Opens the data that a trained model is used on: files in the format of its configuration.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/trained/trained_run.h"
#include "engine/data/sample_stream.h"

namespace tandem::api {

/// Files as `--data` names them: "NAME=FILE" where files have names.
std::vector<std::string> files_of(const SplitConfig& split);

/// Samples of `options.data` (of a guessed configuration: its held-out data) with the fields that
/// feed `inputs`, checked and ready to be fed. Data for other fields may be missing. `ids` identify
/// rows: columns of a table, "path" for pictures, arrays with one number per sample. Throws
/// Error{usage|data}.
std::unique_ptr<SampleStream> open_samples(TrainedModel& trained,
                                           const std::vector<std::string>& inputs,
                                           const TrainedOptions& options,
                                           const std::vector<std::string>& ids = {});

/// All samples of `options.data` with all fields that the model and its loss need; without files,
/// the data that the configuration holds out. Tables are encoded here, and `options.on_progress` is
/// called meanwhile. Adds to the model's warnings: words and ids that training lacks, and masks
/// that hide all keys.
std::shared_ptr<const tandem::DataSource> open_held_out(TrainedModel& trained,
                                                        const TrainedOptions& options);

}  // namespace tandem::api
