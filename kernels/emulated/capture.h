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

/// A capture under way: what its streams have enqueued, and who is joined to whom.
class Capture {
 public:
  explicit Capture(EmulatedStream& origin);

  /// The stream takes part from now on.
  int add_branch(EmulatedStream& stream);
  void add(int branch, const QueuedOperation& queued, const Operation& declared,
           const std::vector<void*>& pointers, const StepContext* context);
  int add_record(int branch);
  void add_wait(int branch, int record);
  bool ended() const { return ended_; }
  /// Frees all streams; the text of the rule that the capture broke, or nothing.
  std::string end(const EmulatedStream& stream);
  std::string broken;  // the first broken rule

 private:
  friend class EmulatedCaptured;
  struct Branch {
    EmulatedStream* stream = nullptr;
    VectorClock clock;  // operations of each branch that precede
  };
  void step(int branch);

  std::vector<Branch> branches_;
  std::vector<CapturedOperation> operations_;
  std::vector<VectorClock> records_;
  bool ended_ = false;
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
