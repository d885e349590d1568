// Checks for labels that give no loss: signs other than -1 and 1, and labels of which none counts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/data/data_source.h"
#include "engine/graph/error.h"

namespace tandem {

/// Each label of the term has to be -1 or 1: one between, such as the 0 of labels 0 and 1, would
/// make no loss and no error. Adds file and row of the first ones. `meaning`: what they are, for
/// messages.
void check_signs(const LossTerm& term, const DataSource& source, const std::string& meaning,
                 std::vector<Diagnostic>& problems);

/// Adds a problem where ignore_index or class weights of 0 leave out every label: the mean of the
/// term would be 0 / 0.
void check_any_label_counts(const LossTerm& term, const DataSource& source,
                            std::vector<Diagnostic>& problems);

/// A mean over the labels of a loss inside the model that ignores one label.
struct LabelMean {
  std::string labels;  // the field
  std::int64_t ignored = 0;
  std::string path;
};
void check_any_label_counts(const LabelMean& mean, const DataSource& source,
                            std::vector<Diagnostic>& problems);

/// Like check_any_label_counts, but only for these samples, which are all that a step reads: `what`
/// they are.
std::vector<Diagnostic> weightless_means(const std::vector<LabelMean>& inside,
                                         const DataSource& source,
                                         std::span<const std::int64_t> samples,
                                         const std::string& what);

/// The message about steps in which no label of a mean counts, or every sample weight is 0: among
/// the first steps that read `samples`, `steps` at most. "": there are none. A micro-batch without
/// such a label is no problem, since a mean is over the step. `inside`: means of the model itself.
std::string weightless_steps(const RunConfig& config, const std::vector<LabelMean>& inside,
                             const DataSource& source, std::span<const std::int64_t> samples,
                             std::int64_t steps);

}  // namespace tandem
