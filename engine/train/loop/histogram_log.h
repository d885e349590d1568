// Histograms of parameters for the formats of log.also.
#pragma once

#include <string>
#include <vector>

#include "engine/train/loop/run.h"

namespace tandem {

class HistogramLog {
 public:
  HistogramLog() = default;
  /// The parameters of log.histograms, of a run with programs. Throws Error{usage} for selectors
  /// that match none.
  explicit HistogramLog(const Run& run);

  /// Paths of those that ranks shard, of which there are no histograms.
  std::vector<std::string> left_out(const StateStore& states) const;
  /// Adds those of now; only rank 0 does.
  void log(const Run& run) const;

 private:
  struct Parameter {
    std::string name, path;
  };
  std::vector<Parameter> parameters_;
};

}  // namespace tandem
