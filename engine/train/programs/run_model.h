// What a run needs from a model.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/graph/graph.h"
#include "engine/lower/placement.h"
#include "engine/train/loading/weights_match.h"

namespace tandem {

struct TrainingAlgorithm;  // engine/train/algorithm/algorithm.h

/// Which forward graph of a model.
struct ForwardKey {
  std::int64_t samples = 0;  // in a micro-batch on this rank
  bool training = false;     // in training form, else in inference form
  std::int64_t length = 0;   // sequence length (data.buckets); 0: the longest, or no buckets
};

class RunModel {
 public:
  virtual ~RunModel() = default;

  /// The imported graph after the forward passes.
  virtual Graph forward(const ForwardKey& key) = 0;
  /// Where operators of a graph that was derived from such a one run, and where its states live.
  virtual Placement place(const Graph& graph) = 0;
  /// The training algorithm that the model file itself has; null: it has none.
  virtual std::shared_ptr<const TrainingAlgorithm> algorithm(const ForwardKey& /*key*/) {
    return nullptr;
  }
  /// Names of parameters, tied ones among them, as parameters.load and checkpoints use them.
  virtual LoadingParts loading_parts() { return {}; }
};

}  // namespace tandem
