// [eval], [checkpoint] and [log] of train.toml.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/training/averages/average_config.h"
#include "engine/training/config/config_types.h"

namespace tandem {

struct EvalConfig {
  std::optional<Duration> every;     // unset: after the last step only
  std::vector<std::string> metrics;  // names of all_metrics (engine/training/metrics.h)
  std::string best;                  // one of the metrics, or ""
  std::int64_t patience = 0;         // evaluations without a better `best`; 0 = never stop
  Weights weights = Weights::trained;
  bool operator==(const EvalConfig&) const = default;
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
  std::vector<std::string> norms;  // selectors of parameters
  bool operator==(const LogConfig&) const = default;
};
void visit(KeyVisitor& v, LogConfig& c);

}  // namespace tandem
