// What keeps a model from being imported: the reports of its nodes put together, causes first.
#pragma once

#include <string>
#include <vector>

#include "importer/session.h"

namespace tandem::importer {

/// Joins the reports of all nodes whose operator is missing for the same reason into one, with
/// their count; missing operators come first, those of many nodes before others.
std::vector<Report> put_together(const std::vector<Report>& reports);

/// The lines of an Error: how far the model is from training, then at most nine lines of
/// `problems`.
std::vector<Diagnostic> in_few_lines(const std::vector<Report>& problems,
                                     const ModelSummary& summary, const std::string& file);

}  // namespace tandem::importer
