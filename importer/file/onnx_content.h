// The inside of OnnxFile, for the importer's own files.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/graph/error.h"
#include "engine/graph/host_tensor.h"
#include "importer/file/onnx_file.h"
#include "importer/weights/attribute_weights.h"
#include "importer/weights/packed_weights.h"
#include "onnx/onnx_pb.h"

namespace tandem {

namespace importer {

class ExternalFiles;

using Opsets = std::map<std::string, int>;                              // by domain; "" is ai.onnx
using FunctionKey = std::tuple<std::string, std::string, std::string>;  // domain, name, overload

/// "ai.onnx" and "" are the same domain.
inline std::string domain_of(const std::string& name) { return name == "ai.onnx" ? "" : name; }

/// Null where the node has none of that name.
inline const onnx::AttributeProto* find_attribute(const onnx::NodeProto& node,
                                                  std::string_view name) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

/// A bad model: an Error{usage} with the file's name.
[[noreturn]] void refuse(const std::filesystem::path& file, std::string where, std::string message,
                         std::string expected = "", std::string got = "", std::string fix = "");

}  // namespace importer

struct OnnxFile::Content {
  std::filesystem::path path;
  std::filesystem::path folder;  // folder of external data; empty: none allowed
  FileLimits limits;
  std::shared_ptr<onnx::ModelProto> model;
  importer::Opsets opsets;
  std::map<importer::FunctionKey, const onnx::FunctionProto*> functions;
  std::shared_ptr<importer::ExternalFiles> external;
  std::unordered_map<std::string, HostTensor>
      initializers;  // initializers of the main graph; they view the file
  /// Which of these are packed: 4 bits as uint8, with half as many bytes as columns in each row.
  importer::PackedWeights packed;
  importer::AttributeWeights attribute_weights;  // initializers that the file does not have
};

}  // namespace tandem
