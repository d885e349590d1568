// Runs a model in inference form over a whole data set and computes its metrics.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/training/micro_batch_programs.h"

namespace tandem {

/// Programs for the full micro-batch and the last partial one; they share the run's State and
/// arenas.
class Evaluation {
 public:
  Evaluation(const RunConfig& config, const RunParts& parts,
             std::shared_ptr<const DataSource> source, StateStore& states,
             std::shared_ptr<Arenas> arenas);
  ~Evaluation();

  /// "loss", each named term, and the configured metrics, exact over all samples.
  /// `after_micro_batch` hears of the samples so far, and may throw to end it.
  std::vector<std::pair<std::string, double>> run(
      const std::function<void(std::int64_t samples)>& after_micro_batch = {});
  std::int64_t samples() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Types of all fields of a source for a batch.
FieldTypes field_types(const DataSource& source, std::int64_t batch);

/// Metrics that cannot be computed from this configuration: Error{usage}, all at once.
void check_metrics(const RunConfig& config);

}  // namespace tandem
