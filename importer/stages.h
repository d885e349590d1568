// Imports of models in which data decides extents: a batch runs in stages. The graph of a stage
// ends where a value has to be known; what it computes is known in the import of the next one,
// until nothing is unknown.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/graph/host_tensor.h"

namespace tandem {

/// What the stages of a batch have computed so far. A key is the name of an ONNX value with the way
/// to its body or function in front: "loop_out/body/3/y".
struct StageValues {
  std::map<std::string, HostTensor> known;  // constants of the next import
  /// Inputs of the next graph, called `stage_name(key)`: the graph depends only on their types.
  std::map<std::string, HostTensor> fed;
};

/// The name of a value that goes from stage to stage, as an output and as an input of graphs.
inline std::string stage_name(const std::string& key) { return "stage:" + key; }

/// What a node needs before the import can go on.
struct StageRequest {
  using Make = std::function<std::vector<HostTensor>(const std::vector<HostTensor>& reads)>;

  std::string op, path;            // operator and path of the requesting node
  std::vector<std::string> reads;  // keys, or names of inputs and states
  std::vector<std::string> makes;  // keys of what is fed next; none: what is read is known next
  Make make;                       // `makes` of `reads`
};

struct StageImport {
  std::vector<StageRequest> requests;  // none: the graph is whole
  /// Computed values that nodes after a request read: fed next, so that none is computed twice.
  std::vector<std::string> carried;
  /// Outputs of the graph, of what `requests` and `carried` name and the graph computes.
  std::vector<std::string> outputs;
};

}  // namespace tandem
