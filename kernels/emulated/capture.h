// Capture and replay of streams, with the rules that CUDA has: fixed addresses, forks by events,
// everything joined at the end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/emulated/emulated_stream.h"

namespace tandem {

/// An operation that was collected. It owns what it refers to, but for kernels and step contexts.
struct CapturedOperation {
  int branch = 0;
  QueuedOperation queued;  // events and pointers are not filled
  const StepContext* context = nullptr;
  std::vector<void*> pointers;
  int event = -1;  // record, wait: of the captured graph
  std::string name;
  double seconds = 0;
  std::vector<ByteAccess> accesses;
};

/// A capture under way: what its streams have enqueued.
class Capture : public CaptureOrder<EmulatedStream> {
 public:
  using CaptureOrder::CaptureOrder;

  void add(int branch, const QueuedOperation& queued, const Operation& declared,
           const std::vector<void*>& pointers, const StepContext* context);
  int add_record(int branch);
  void add_wait(int branch, int record);

 private:
  friend class EmulatedCaptured;

  std::vector<CapturedOperation> operations_;
};

class EmulatedCaptured final : public Captured {
 public:
  EmulatedCaptured(std::shared_ptr<EmulatedShared> device, Capture& capture);
  ~EmulatedCaptured() override;
  void launch(EmulatedStream& stream);

 private:
  struct Branch {
    EmulatedStream* stream = nullptr;
    int lane = -1;
  };
  std::shared_ptr<EmulatedShared> device_;
  std::vector<Branch> branches_;
  std::vector<CapturedOperation> operations_;
  std::vector<std::unique_ptr<EmulatedEvent>> events_;
  std::uint64_t launches_ = 0;
};

}  // namespace tandem
