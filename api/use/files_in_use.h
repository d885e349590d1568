// What predictions and exports must not be written over: files that they are made from.
#pragma once

#include <string>
#include <vector>

#include "api/use/trained_run.h"

namespace tandem::api {

/// Throws Error{usage} where `to` ("-": standard output) is a file of the run or of the exported
/// model, of the configuration (its model with the files that weights lie in, its data) or of
/// `options.data` ("-": standard input), under whatever name; or where it would become one.
void refuse_files_in_use(const std::string& to, const TrainedRun& run,
                         const TrainedOptions& options);
/// The same for the files of an export of a run: `to` is what the user named, the others follow it.
void refuse_files_in_use(const std::vector<std::string>& to, const RunConfig& config,
                         const std::string& run_dir);

}  // namespace tandem::api
