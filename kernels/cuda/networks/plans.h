// Execution plans of cuDNN graphs: which engine computes a graph, plans kept in memory and on disk,
// and running one on a stream.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/networks/descriptors.h"

namespace tandem::cuda {

/// Which engines may compute a graph.
struct EngineRules {
  bool tensor_cores = true;   // for float32 operands: products in 10 bits of mantissa
  bool deterministic = true;  // the same bits again
  /// Plans with more workspace are taken only where there is no other.
  std::size_t workspace_limit = std::size_t{1} << 30;
};

/// How many engines cuDNN offers for a graph, and how many of them the rules allow.
struct EngineCount {
  int offered = 0, allowed = 0;
  std::string problem;  // cuDNN's words where it takes no such graph at all
};

/// Immutable. May be run by any number of PlanRuns, from the thread that launches.
struct Plan {
  Descriptor descriptor;
  std::size_t workspace_bytes = 0;
  bool is_compiled = false;       // at run time, by cuDNN
  std::vector<std::int64_t> ids;  // ids of the tensors in memory, then those of the numbers
  std::vector<float> numbers;
};

/// All plans of one GPU, or of a GPU that is only described. Thread-safe, but for `set_stream`.
class Plans {
 public:
  /// `cache_folder`: "" keeps nothing on disk. `card` names architecture and model: "9.0 NVIDIA
  /// H100".
  Plans(const Cudnn& cudnn, std::string gpu, std::string cache_folder);
  /// For a GPU that is not there: the JSON of its properties. Its plans cannot run.
  static std::unique_ptr<Plans> described(const Cudnn& cudnn, const std::string& properties);
  ~Plans();
  Plans(const Plans&) = delete;
  Plans& operator=(const Plans&) = delete;

  /// Asks the heuristics, once for a graph. Nothing is compiled.
  EngineCount count(const NetworkGraph& graph, const EngineRules& rules);
  /// Throws Error{runtime} where no engine that the rules allow makes a plan.
  std::shared_ptr<const Plan> plan(const NetworkGraph& graph, const EngineRules& rules);

  const Cudnn& cudnn() const { return cudnn_; }
  cudnnHandle_t handle() const { return handle_; }
  /// Plans that run next go to this stream. From the launching thread.
  cudnnStatus_t set_stream(cudaStream_t stream) noexcept;

 private:
  struct Offers {
    std::vector<Descriptor> configurations;
    EngineCount count;
  };

  void open();
  std::string key_of(const NetworkGraph& graph, const EngineRules& rules) const;
  Offers ask(const NetworkGraph& graph, const GraphDescriptors& descriptors,
             const EngineRules& rules);
  Descriptor finish(const Descriptor& configuration);
  std::optional<Descriptor> read(const std::string& key);
  void write(const std::string& key, const Descriptor& plan);
  std::shared_ptr<Plan> describe(const NetworkGraph& graph, Descriptor descriptor) const;

  const Cudnn& cudnn_;
  const std::string gpu_, folder_;
  std::mutex mutex_;
  cudnnHandle_t handle_ = nullptr;
  Descriptor properties_;  // properties of a GPU that is only described
  bool is_described_ = false;
  std::optional<cudaStream_t> stream_;
  std::map<std::string, EngineCount> counts_;
  std::map<std::string, std::shared_ptr<const Plan>> plans_;
};

/// A plan with the addresses of its tensors. cuDNN takes addresses as a finished descriptor, which
/// cannot be changed: several are made ahead, one for each set of addresses that has come lately,
/// so that running again with one of them makes nothing.
class PlanRun {
 public:
  static constexpr std::size_t most_tensors = 16;

  /// Throws Error{runtime}.
  PlanRun(std::shared_ptr<Plans> plans, std::shared_ptr<const Plan> plan);
  std::size_t workspace_bytes() const { return plan_->workspace_bytes; }
  /// `addresses`: one for each tensor in memory, in the graph's order.
  cudnnStatus_t run(const void* const* addresses, void* workspace, cudaStream_t stream) noexcept;

 private:
  static constexpr std::size_t pack_count = 8;

  struct Pack {
    Descriptor descriptor;
    std::array<const void*, most_tensors + 1> addresses{};  // the workspace's is the last one
    std::uint64_t used = 0;                                 // 0: not finished
  };

  cudnnStatus_t fill(Pack& pack, const void* const* addresses, void* workspace) noexcept;
  Descriptor empty_pack() const;

  std::shared_ptr<Plans> plans_;
  std::shared_ptr<const Plan> plan_;
  std::vector<float> numbers_;
  std::size_t memory_count_ = 0;
  std::uint64_t time_ = 0;
  std::array<Pack, pack_count> packs_;
};

}  // namespace tandem::cuda
