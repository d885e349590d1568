// Which initializers are parameters, which buffers and which constants, and why.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/graph/graph.h"
#include "importer/file/onnx_content.h"

namespace tandem::importer {

struct Role {
  bool is_state = false;  // false: a constant
  StateKind kind = StateKind::parameter;
  bool trainable = false;
  std::string reason;
  bool is_recognised_buffer = false;  // by its name or its values, not by what the file says
  /// Without ImportOptions::trained_buffers it would be a recognised buffer.
  bool trained_by_rule = false;
  std::string doubt;       // why the parameter may be a buffer
  bool is_packed = false;  // bytes or scales of a packed weight
};

/// Names of all values that a node reads, those that its graphs capture included.
std::vector<std::string> reads_of(const onnx::NodeProto& node);

/// The nodes of the main graph from which one of `outputs` is reached.
std::vector<bool> needed_nodes(const onnx::GraphProto& graph,
                               const std::vector<std::string>& outputs);

/// Whether an output is only for people to read: it reaches no loss and no metric.
bool is_text(const onnx::ValueInfoProto& output);

/// A role for each initializer of the main graph that was read from the file.
std::unordered_map<std::string, Role> initializer_roles(const OnnxFile::Content& file,
                                                        const std::vector<bool>& needed);

}  // namespace tandem::importer
