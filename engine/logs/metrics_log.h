// Other formats for the content of metrics.jsonl, the key log.also: each is one file of this folder
// and a line of all_log_formats.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/formats/events/histogram.h"
#include "engine/graph/graph.h"
#include "engine/metrics/metric_table.h"

namespace tandem {

/// A line of metrics.jsonl.
struct LoggedLine {
  std::uint64_t step = 0;
  std::string phase;  // "eval"; "" for a training step
  std::vector<std::pair<std::string, double>> values;
  std::vector<MetricTable> tables;
};

class MetricsLog {
 public:
  virtual ~MetricsLog() = default;

  /// After metrics.jsonl has the line.
  virtual void add(const LoggedLine& line) = 0;
  /// Whether the run's graph is still to be added.
  virtual bool wants_graph() const { return false; }
  /// The forward graph in training form.
  virtual void add_graph(const Graph& graph) { (void)graph; }
  /// Adds the histogram of a parameter after a step.
  virtual void add_histogram(std::uint64_t step, const std::string& path, const Histogram& values) {
    (void)step, (void)path, (void)values;
  }
};

/// Where a run writes, and what it has written before.
struct LogPlace {
  std::string run_dir;
  std::uint64_t step = 0;                    // from which the run resumes; later lines do not count
  std::optional<std::uint64_t> evaluated{};  // the last evaluation that metrics.jsonl has
};

/// Opened once metrics.jsonl holds what stays of it. Throws Error{runtime} where it cannot write.
struct LogFormat {
  std::string_view name;
  std::unique_ptr<MetricsLog> (*open)(const LogPlace& place);
  bool takes_histograms = false;
};

std::span<const LogFormat> all_log_formats();
const LogFormat* find_log_format(std::string_view name);  // null: there is none

// The formats of this folder.
std::unique_ptr<MetricsLog> open_csv_log(const LogPlace& place);
std::unique_ptr<MetricsLog> open_tensorboard_log(const LogPlace& place);

}  // namespace tandem
