// One of ONNX's node cases as tensors: nodes before and after those of the case take sequences and
// optionals apart, both fed and expected ones.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "onnx/onnx_pb.h"

namespace tandem::testing {

struct NodeCase {
  onnx::ModelProto model;
  std::vector<std::pair<std::string, onnx::TensorProto>> feeds;
  std::vector<std::pair<std::string, onnx::TensorProto>> wants;
};

/// `folder`: model.onnx, test_data_set_0/{input,output}_i.pb. Throws std::runtime_error.
NodeCase read_case(const std::filesystem::path& folder);

}  // namespace tandem::testing
