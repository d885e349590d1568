// Runs a model in inference form over a whole data set and computes its metrics.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/structures/function_ref.h"
#include "engine/metrics/metric_table.h"
#include "engine/train/steps/micro_batch_programs.h"

namespace tandem {

/// Programs for the full micro-batch and the last partial one, of a rank's part of the samples;
/// they share the run's State and arenas. For a model in stages (`RunParts::staged`, which outlives
/// this) there is one for each graph that a micro-batch leads to.
class Evaluation {
 public:
  Evaluation(const RunConfig& config, const RunParts& parts,
             std::shared_ptr<const DataSource> source, StateStore& states,
             std::shared_ptr<Arenas> arenas);
  ~Evaluation();

  using Values = std::vector<std::pair<std::string, double>>;

  /// "loss", each named term, and the configured metrics that are one number, exact over all
  /// samples. Ranks share the samples, and all of them get the same values; running statistics
  /// become those of rank 0. `stops` gets the number of this rank's samples so far after each
  /// micro-batch but the last, and may throw; true ends the evaluation of all ranks, without
  /// values. Where ranks share rows of tables all of them run as many micro-batches, and an end
  /// comes once all have.
  std::optional<Values> run(FunctionRef<bool(std::int64_t samples)> stops = {});
  /// The source has other samples than before, as many: reads what does not come from programs.
  void note_other_samples();
  /// The metrics of the last run that are more than one number.
  const std::vector<MetricTable>& tables() const;
  /// The programs that it keeps; none for a model in stages.
  std::vector<const BoundProgram*> programs() const;
  std::int64_t samples() const;      // total over all ranks
  std::int64_t own_samples() const;  // those of this rank

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Types of all fields of a source for a batch.
FieldTypes field_types(const DataSource& source, std::int64_t batch);

}  // namespace tandem
