// cuDNN's backend interface without a GPU: descriptors keep their attributes and are checked
// against the library's rules, and plans compute in double on the host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/libraries/cudnn.h"
#include "tests/cuda/support/fake_cudnn_graph.h"
#include "tests/cuda/support/fake_runtime.h"

namespace tandem::testing {

/// The properties of an engine of the fake. Heuristics offer fallback engines only in a second
/// question.
struct FakeEngine {
  std::vector<cudnnBackendNumericalNote_t> notes;
  std::size_t workspace_bytes = 0;
  bool is_fallback = false;
  bool makes_plans = true;  // false: is offered, but finishing a plan fails
};

/// A run of a plan that passed the checks.
struct CudnnRun {
  int engine = 0;
  const FakeGraph* graph = nullptr;
  cudaStream_t stream = nullptr;
};

/// Only one can exist: the functions that make things have no argument that could name it.
class FakeCudnn {
 public:
  explicit FakeCudnn(std::shared_ptr<FakeRuntime> runtime);
  ~FakeCudnn();
  FakeCudnn(const FakeCudnn&) = delete;
  FakeCudnn& operator=(const FakeCudnn&) = delete;

  const cuda::Cudnn* table() const { return &table_; }

  // Queries for tests.
  const std::vector<std::string>& problems() const { return problems_; }
  /// Handles and descriptors that were not destroyed.
  std::size_t live() const { return handles_.size() + descriptors_.size(); }
  const std::vector<CudnnRun>& runs() const { return runs_; }
  int questions() const { return questions_; }    // to the heuristics
  int plans_made() const { return plans_made_; }  // from an engine
  int plans_read() const { return plans_read_; }  // from text
  int packs_made() const { return packs_made_; }

  // Settings for tests.
  /// The engines, by default: one with tensor cores, one that is not deterministic, an exact one
  /// with a workspace, and a fallback that adds with low precision.
  std::vector<FakeEngine> engines;
  /// No engine is offered for such a graph.
  std::function<bool(const FakeGraph&)> unsupported;
  /// What the next calls of that function return, without doing anything.
  std::map<std::string, cudnnStatus_t> failing;

 private:
  friend struct CudnnFunctions;

  struct Attribute {
    cudnnBackendAttributeType_t type = CUDNN_TYPE_INT64;
    std::int64_t count = 0;
    std::vector<std::byte> bytes;
  };
  struct Item {
    cudnnBackendDescriptorType_t type = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
    bool is_finished = false;
    std::map<int, Attribute> attributes;
    std::shared_ptr<const FakeGraph> graph;  // set for graphs and for objects made from them
    int engine = -1;
  };
  struct Handle {
    cudaStream_t stream = nullptr;
  };

  cudnnStatus_t broken(const std::string& text, cudnnStatus_t status = CUDNN_STATUS_BAD_PARAM);
  Item* find(const void* handle);
  /// The values of attribute `name`; none if it is not set.
  template <class T>
  std::vector<T> values(const Item& item, int name) const {
    const auto found = item.attributes.find(name);
    if (found == item.attributes.end()) return {};
    std::vector<T> result(static_cast<std::size_t>(found->second.count));
    std::memcpy(result.data(), found->second.bytes.data(),
                std::min(found->second.bytes.size(), result.size() * sizeof(T)));
    return result;
  }
  template <class T>
  T value(const Item& item, int name, T otherwise = {}) const {
    const std::vector<T> all = values<T>(item, name);
    return all.empty() ? otherwise : all[0];
  }
  const Item* part(const Item& item, int name);

  cudnnStatus_t finish(Item& item);
  cudnnStatus_t finish_tensor(const Item& item);
  cudnnStatus_t finish_graph(Item& item);
  cudnnStatus_t finish_plan(Item& item);
  FakeTensor tensor_of(const Item& item) const;
  bool read_operation(const Item& item, FakeGraph& to, std::map<const Item*, int>& tensors);
  std::vector<int> offered(const Item& heuristics);
  cudnnStatus_t get(Item& item, int name, cudnnBackendAttributeType_t type, std::int64_t room,
                    std::int64_t* count, void* to);
  cudnnStatus_t execute(const Handle& handle, const Item& plan, const Item& pack);

  std::shared_ptr<FakeRuntime> runtime_;
  cuda::Cudnn table_;
  std::map<void*, std::unique_ptr<Handle>> handles_;
  std::map<void*, std::unique_ptr<Item>> descriptors_;
  /// Graph and engine of each plan that was written as text.
  std::vector<std::pair<std::shared_ptr<const FakeGraph>, int>> texts_;
  std::vector<CudnnRun> runs_;
  std::vector<std::shared_ptr<const FakeGraph>> kept_;  // graphs that runs_ points to
  std::vector<std::string> problems_;
  std::string last_;
  int questions_ = 0, plans_made_ = 0, plans_read_ = 0, packs_made_ = 0;
};

}  // namespace tandem::testing
