// Signs by which an initializer is a buffer of the model and no parameter, where the file does not
// say which of the two it is.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/graph/host_tensor.h"
#include "importer/file/onnx_content.h"

namespace tandem::importer {

struct BufferSign {
  bool is_sure = false;  // else it may be a parameter all the same
  std::string reason;    // "rows of sines and cosines"
};

class BufferSigns {
 public:
  BufferSigns(const OnnxFile::Content& file, const std::vector<bool>& needed);

  /// `is_weight`: in a place where operators have weights or biases; what only names tell is not
  /// asked there.
  std::optional<BufferSign> find(const std::string& name, const HostTensor& value,
                                 bool is_weight) const;

 private:
  void follow_inputs(const onnx::GraphProto& graph, const std::vector<bool>& needed);
  void follow_waves(const onnx::GraphProto& graph, const std::vector<bool>& needed);
  bool is_wave(const std::string& name) const;
  std::optional<BufferSign> by_name(const std::string& name, const HostTensor& value) const;
  std::optional<BufferSign> by_place(const std::string& name, const HostTensor& value) const;

  const OnnxFile::Content& file_;
  std::unordered_set<std::string> convolved_;  // weights of convolutions
  std::unordered_set<std::string> divisors_;   // names of values that something is divided by
  std::unordered_set<std::string> loss_weights_;
  std::unordered_set<std::string> waves_;          // their products go through a cosine
  std::unordered_map<std::string, bool> means_;    // subtracted from an input; true: then divided
  std::unordered_map<std::string, bool> spreads_;  // divide an input; true: after a subtraction
  /// Affines of frozen batch normalizations; true: sure.
  std::unordered_map<std::string, bool> frozen_affines_;
};

}  // namespace tandem::importer
