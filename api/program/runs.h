// Looking at runs: a list of them, what two of them differ in, a page of curves. Standard types
// only.
#pragma once

#include <string>
#include <vector>

#include "tandem/tandem.h"

namespace tandem::api {

/// The runs in a folder, or in the folder `runs` of it, the newest first; "": the current folder.
/// Runs that cannot be read are warnings. Throws Error{usage} where there is no such folder.
Report list_runs(const std::string& folder);

/// What two run directories differ in: keys of their resolved configurations, and results. Throws
/// Error{usage} for what is no run directory.
Report compare_runs(const std::string& a, const std::string& b);

/// Writes one HTML file that needs nothing else: curves of the runs over each other, memory, times,
/// placement, configuration. A file that is there is replaced where it is such a report. Throws
/// Error{usage} for what is no run directory and where `to` cannot be written.
Report write_report(const std::vector<std::string>& runs, const std::string& to);

}  // namespace tandem::api
