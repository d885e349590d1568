// The metrics of an evaluation: which loss term each takes, what it reads of the data, and whether
// both have such a metric.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/data_source.h"
#include "engine/metrics/metric.h"
#include "engine/train/evaluation/field_words.h"

namespace tandem {

/// A configured metric and the loss term whose value and labels it takes.
struct EvaluatedMetric {
  const MetricConfig* config = nullptr;
  const LossTerm* term = nullptr;
  int group_field = -1, slice_field = -1;  // indices in the data source; -1: none
  std::vector<std::int64_t> slices;        // all values of slice_field, ascending
  std::vector<std::string> words;          // by number: of the classes, or of these values

  std::unique_ptr<Metric> make() const;
};

/// Those that are measured besides the loss. Throws Error{usage} where they cannot be computed from
/// this configuration and Error{data} where the data has no such metric.
std::vector<EvaluatedMetric> evaluated_metrics(const RunConfig& config, const DataSource& source,
                                               const FieldWords& words = {});

/// Throws Error{usage} where values and labels of these types have no such metric.
void check_types(const EvaluatedMetric& metric, const TensorType& values, const TensorType& labels,
                 const std::string& file);

/// What a rank adds to an evaluation, of each metric.
struct MetricSums {
  const std::vector<EvaluatedMetric>* of = nullptr;
  std::vector<std::unique_ptr<Metric>> metrics;

  void start(const std::vector<EvaluatedMetric>& all);
  std::string text() const;
  /// Adds the sums that `text` of another rank holds.
  void add(const std::string& text);
  /// Those that are one number, by name.
  std::vector<std::pair<std::string, double>> values() const;
  /// The others; classes and values of fields are called by their words.
  std::vector<MetricTable> tables() const;
};

}  // namespace tandem
