// Tensors kept in files next to the model: opened in its folder, or in that of the real file which
// the model's path is a link to, and nowhere else.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "engine/graph/host_tensor.h"
#include "onnx/onnx_pb.h"

namespace tandem::importer {

class ExternalFiles {
 public:
  ExternalFiles(std::filesystem::path model, std::filesystem::path folder)
      : model_(std::move(model)), folder_(std::move(folder)) {}

  /// The tensor's elements, viewing the mapped file (copied where they are not aligned).
  /// Throws Error for a location outside the folders, a link that leads out of them, anything but
  /// a regular file, or a range that the file does not have.
  HostTensor read(const onnx::TensorProto& tensor, const TensorType& type);

 private:
  struct Mapping {
    std::shared_ptr<void> memory;
    std::size_t size = 0;
  };
  const Mapping& open(const std::string& location, const std::string& tensor);
  /// A descriptor of the file; -1 and errno where there is none. Throws where it lies elsewhere.
  int find(const std::filesystem::path& relative, const std::string& tensor) const;

  std::filesystem::path model_;
  std::filesystem::path folder_;
  std::map<std::string, Mapping> files_;
};

}  // namespace tandem::importer
