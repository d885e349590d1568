// What keeps a model from being imported: the reports of its nodes put together, causes first.
#pragma once

#include <string>
#include <vector>

#include "importer/session.h"

namespace tandem::importer {

/// One for all nodes whose operator is missing for the same reason, with their count; missing
/// operators first, those of many nodes before others.
std::vector<Report> put_together(const std::vector<Report>& reports);

/// For an Error: how far the model is from training, then at most nine lines of `problems`.
std::vector<Diagnostic> in_few_lines(const std::vector<Report>& problems,
                                     const ModelSummary& summary, const std::string& file);

}  // namespace tandem::importer
