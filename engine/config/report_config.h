// [eval], [checkpoint] and [log] of train.toml.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/average_config.h"
#include "engine/config/keys/config_types.h"
#include "engine/config/kinds/kind_options.h"

namespace tandem {

struct MetricKind;  // engine/metrics/metric.h
struct MetricConfig {
  std::string name;                  // in metrics.jsonl, eval.best and schedules
  const MetricKind* kind = nullptr;  // one of all_metrics()
  std::string by;                    // the data field that it is sliced by; "" = not at all
  AnyOptions options;                // as kind->options
  Where where;
  bool operator==(const MetricConfig&) const = default;

  std::string default_name() const;
  /// The data fields that it reads besides those of its loss term.
  std::vector<std::string> fields() const;
};

struct EvalConfig {
  std::optional<Duration> every;  // unset: after the last step only
  std::vector<MetricConfig> metrics;
  std::string best;           // the name of one of the metrics, or ""
  std::int64_t patience = 0;  // evaluations without a better `best`; 0 = never stop
  Weights weights = Weights::trained;
  bool operator==(const EvalConfig&) const = default;

  /// By its name; null where there is none.
  const MetricConfig* find(std::string_view metric) const;
};
void visit(KeyVisitor& v, EvalConfig& c);

struct CheckpointConfig {
  Duration every{1800, Duration::Unit::seconds};
  std::int64_t keep = 3;          // besides the best one; 0 = all
  std::int64_t shard_mib = 1024;  // larger tensors go into files of about this many MiB
  bool operator==(const CheckpointConfig&) const = default;
};
void visit(KeyVisitor& v, CheckpointConfig& c);

struct LogConfig {
  Duration every{100, Duration::Unit::steps};
  std::vector<std::string> norms;            // selectors of parameters
  std::vector<std::string> also;             // names of all_log_formats()
  std::vector<std::string> histograms;       // selectors of parameters
  std::optional<Duration> histograms_every;  // unset: with each checkpoint
  bool operator==(const LogConfig&) const = default;
};
void visit(KeyVisitor& v, LogConfig& c);

}  // namespace tandem
