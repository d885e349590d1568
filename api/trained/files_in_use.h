// Protects the files that predictions and exports are made from from being overwritten.
#pragma once

#include <string>
#include <vector>

#include "api/trained/trained_run.h"

namespace tandem::api {

/// Throws Error{usage} where `to` ("-": standard output) is, under any name, a file of the run or
/// of the exported model, of the configuration (its model with external weights, its data) or of
/// `options.data` ("-": standard input), or where writing would create one.
void refuse_files_in_use(const std::string& to, const TrainedRun& run,
                         const TrainedOptions& options);
/// As above, for the files of an export of a run: `to` is what the user named, then the files that
/// are written with it.
void refuse_files_in_use(const std::vector<std::string>& to, const RunConfig& config,
                         const std::string& run_dir);

}  // namespace tandem::api
