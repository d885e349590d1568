// Small questions and changes of a GraphProto that transformations share.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "engine/graph/host_tensor.h"
#include "onnx/onnx_pb.h"

namespace tandem::importer {

using ReaderCounts = std::unordered_map<std::string, int>;

/// How often each value is read: by nodes of the main graph, by graphs inside of them, and as an
/// output of the model.
ReaderCounts reader_counts(const onnx::GraphProto& graph);

/// A name near `wanted` that no value has; it counts as taken from then on.
class FreeNames {
 public:
  explicit FreeNames(const onnx::GraphProto& graph);
  std::string make(std::string wanted);

 private:
  std::unordered_set<std::string> taken_;
};

/// Null where the main graph has none of that name.
onnx::TensorProto* find_initializer(onnx::GraphProto& graph, const std::string& name);

/// A new one with these values and their type; models of an IR version below 4 list it as an input.
onnx::TensorProto& add_initializer(onnx::ModelProto& model, const std::string& name,
                                   const HostTensor& values);
/// Values of another shape or type for one that is there.
void replace_initializer(onnx::TensorProto& tensor, const HostTensor& values);

/// Takes away initializers of these names that nothing reads any more, also as inputs of the model.
void drop_unread_initializers(onnx::GraphProto& graph,
                              const std::unordered_set<std::string>& names);

/// Removes what graph.value_info says about values: readers of the file infer changed types again.
void forget_value_types(onnx::GraphProto& graph);

}  // namespace tandem::importer
