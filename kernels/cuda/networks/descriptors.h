// Owners of cuDNN's backend descriptors, and the descriptors of a NetworkGraph.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/libraries/cudnn.h"
#include "kernels/cuda/networks/graph.h"

namespace tandem::cuda {

/// Throws Error{runtime} with cuDNN's own words where `status` is a failure.
void check(const Cudnn& cudnn, cudnnStatus_t status, const char* doing);
/// "CUDNN_STATUS_…: " and what cuDNN says about its last failure on this thread.
std::string failure_text(const Cudnn& cudnn, cudnnStatus_t status);

class Descriptor {
 public:
  Descriptor() = default;
  /// Throws Error{runtime}, as do all calls that set or finalise.
  Descriptor(const Cudnn& cudnn, cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor&& other) noexcept
      : cudnn_(other.cudnn_), handle_(std::exchange(other.handle_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(cudnn_, other.cudnn_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Descriptor();

  cudnnBackendDescriptor_t get() const { return handle_; }
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, std::int64_t value) {
    set(name, CUDNN_TYPE_INT64, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
    set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, bool value) {
    set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.handle_);
  }
  void finalize();

  /// All values of an attribute; empty where it has none.
  template <class T>
  std::vector<T> values(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
    std::int64_t count = 0;
    if (!get_values(name, type, 0, &count, nullptr) || count == 0) return {};
    std::vector<T> result(static_cast<std::size_t>(count));
    if (!get_values(name, type, count, &count, result.data())) return {};
    result.resize(static_cast<std::size_t>(count));
    return result;
  }
  std::int64_t number(cudnnBackendAttributeName_t name) const;

 private:
  bool get_values(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  std::int64_t room, std::int64_t* count, void* to) const;

  const Cudnn* cudnn_ = nullptr;
  cudnnBackendDescriptor_t handle_ = nullptr;
};

/// Finalised descriptors of a graph's tensors and operations, and of the graph itself. `handle` may
/// be null where no GPU is there.
struct GraphDescriptors {
  GraphDescriptors(const Cudnn& cudnn, const NetworkGraph& graph, cudnnHandle_t handle);

  std::vector<Descriptor> tensors, settings, operations;
  Descriptor graph;
};

}  // namespace tandem::cuda
