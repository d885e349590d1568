// Why a loss or a parameter is not finite: searched in the data that a run has read, after it has
// ended by that.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/data/data_source.h"
#include "engine/graph/error.h"

namespace tandem {

/// Adds causes to what they explain.
inline void append(std::vector<Diagnostic>& all, std::vector<Diagnostic> causes) {
  for (Diagnostic& cause : causes) all.push_back(std::move(cause));
}

/// Sets file and line to those of "train.npz:17", as DataSource::describe gives a sample's place.
void set_place(Diagnostic& d, const std::string& place);

/// Samples with nan in float fields as the graph is fed them, or, where there is none, with
/// infinities: file and row of the first ones (at most 5), and how many there are. `augmentation`
/// null: none. A sample that cannot be read is left out.
std::vector<Diagnostic> not_finite_samples(const DataSource& source, const std::vector<int>& fields,
                                           std::span<const std::int64_t> samples,
                                           const Augmentation* augmentation);

/// "nan in the data" for the first of these samples (at most `most`), with file and row, and how
/// many there are.
std::vector<Diagnostic> nan_diagnostics(const DataSource& source, int field,
                                        const std::vector<std::int64_t>& samples, std::size_t most);

/// Means over labels whose weights are all 0: class_weights and ignore_index of the loss terms.
/// `samples`: those of one mean. `what`: "all labels of step 3".
std::vector<Diagnostic> weightless_means(const RunConfig& config, const DataSource& source,
                                         std::span<const std::int64_t> samples,
                                         const std::string& what);

}  // namespace tandem
