// Where a graph has weights.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "importer/paths.h"

namespace tandem::importer {

/// Values that are, moved perhaps, in the place of a weight, in graphs inside of nodes too.
class WeightPlaces {
 public:
  WeightPlaces(const onnx::GraphProto& graph, const std::vector<bool>& needed,
               const ModulePaths& modules);

  /// The path of the operator whose weight a tensor of that many axes is, or "".
  std::string find(const std::string& value, std::size_t rank) const;

 private:
  struct Place {
    std::string path;
    std::size_t least_rank = 0;
  };

  void add(const onnx::NodeProto& node, const ModulePaths& modules);

  std::unordered_map<std::string, Place> places_;
};

}  // namespace tandem::importer
