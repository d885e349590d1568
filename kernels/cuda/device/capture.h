// Capture of the CUDA device: what its streams have enqueued, by CUDA's rules, and the graph that
// comes out.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/device/copied_bytes.h"
#include "kernels/cuda/device/cuda_stream.h"

namespace tandem::cuda {

/// Blocks on the GPU for the step contexts of one graph, at fixed addresses.
class GraphContexts {
 public:
  static constexpr std::size_t most = 16;

  explicit GraphContexts(std::shared_ptr<DeviceShared> device);
  ~GraphContexts();
  GraphContexts(const GraphContexts&) = delete;
  GraphContexts& operator=(const GraphContexts&) = delete;

  /// The block of the context at that address on the host; null where there are too many.
  const StepContext* block_of(const StepContext& context);
  /// Brings the present contents onto the GPU, on the stream that launches next.
  void renew(StepContexts& of_stream);

 private:
  struct Entry {
    const StepContext* host = nullptr;
    ContextBlock block;
  };
  const std::shared_ptr<DeviceShared> device_;
  void* memory_ = nullptr;
  std::array<Entry, most> entries_;
  std::size_t count_ = 0;
};

/// An operation as it is reported to the monitor at each launch.
struct CapturedOperation {
  enum class Kind : std::uint8_t { operation, record, wait };
  Kind kind = Kind::operation;
  int branch = 0;
  int record = -1;  // record, wait: of the captured graph
  std::string name;
  double seconds = 0;
  std::size_t bytes = 0;  // copied bytes
  std::vector<ByteAccess> accesses;
};

/// A capture under way.
class Capture : public CaptureOrder<CudaStream> {
 public:
  Capture(std::shared_ptr<DeviceShared> device, CudaStream& origin);

  /// Adds a kernel or a copy; reported to the monitor where there is one.
  void add(int branch, const Operation& declared, std::size_t bytes = 0);
  int add_record(int branch);
  void add_wait(int branch, int record);

  CopiedBytes copied;
  std::unique_ptr<GraphContexts> contexts;

 private:
  friend class CudaCaptured;
  void add_event(CapturedOperation::Kind kind, int branch, int record);

  const std::shared_ptr<DeviceShared> device_;
  std::vector<CapturedOperation> operations_;  // empty where no order is checked
};

class CudaCaptured final : public Captured {
 public:
  /// Takes over the graph.
  CudaCaptured(std::shared_ptr<DeviceShared> device, Capture& capture, cudaGraphExec_t graph);
  ~CudaCaptured() override;
  CudaCaptured(const CudaCaptured&) = delete;
  CudaCaptured& operator=(const CudaCaptured&) = delete;
  void launch(CudaStream& stream);

 private:
  void tell(LaneMonitor& monitor);

  const std::shared_ptr<DeviceShared> device_;
  CudaStream& origin_;
  const cudaGraphExec_t graph_;
  std::unique_ptr<GraphContexts> contexts_;
  CopiedBytes copied_;
  std::vector<CapturedOperation> operations_;
  std::vector<int> lanes_;   // per branch; none where no order is checked
  std::vector<int> events_;  // per record, in the monitor
  std::uint64_t launches_ = 0;
};

}  // namespace tandem::cuda
