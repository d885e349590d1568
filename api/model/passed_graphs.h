// Forward graphs after the passes, kept for all policies under which they come out the same.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/graph/graph.h"

namespace tandem::api {

struct PassedGraph {
  Graph graph;
  /// Why a device has no kernel for a part of a training step of this graph, by that part. The key
  /// says what the answer depends on: the device's facts and its list of kernels.
  std::map<std::string, std::map<std::string, std::string>> refusals;
};

/// Passes ask a policy one thing: whether operators may become one. While all answers are those
/// that a kept graph has had, the passes would make that graph again.
class PassedGraphs {
 public:
  using Paths = std::vector<std::string>;
  using MayMerge = std::function<bool(const Paths&)>;
  /// Batch, training, length of sequences, names of values that become outputs.
  using Key = std::tuple<std::int64_t, bool, std::int64_t, std::vector<std::string>>;

  /// `run` runs the passes with the given function in place of `may_merge`.
  std::shared_ptr<PassedGraph> find(const Key& key, const MayMerge& may_merge,
                                    const std::function<Graph(const MayMerge&)>& run);

 private:
  struct Kept {
    std::map<Paths, bool> answers;
    std::shared_ptr<PassedGraph> passed;
  };
  std::map<Key, std::vector<Kept>> kept_;  // the one that was used last comes last
};

}  // namespace tandem::api
