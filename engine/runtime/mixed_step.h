// A step on several devices: one thread enqueues every queue's instructions in the plan's order,
// segments as captured graphs, and computes the host's own part in between.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/lower/lowered.h"
#include "engine/plan/plan.h"
#include "engine/plan/simulate.h"
#include "engine/runtime/segment_graphs.h"

namespace tandem {

class MixedStep {
 public:
  /// What each kernel runs with; pointers into `inputs` and `outputs` may change between steps.
  struct NodeCall {
    PreparedKernel* kernel = nullptr;
    KernelArguments arguments = {};
    int inputs = 0, outputs = 0;
  };

  /// `calls`: one for each kernel of the plan, queue after queue. `base`: per buffer its address,
  /// in the memory of its device; those of slots come by `set_slot` before each step. `profiles`:
  /// per device, for the virtual clock; empty: guesses.
  MixedStep(const Plan& plan, const Lowered& lowered, std::vector<NodeCall> calls,
            std::vector<std::byte*> base, const std::vector<DeviceProfile>& profiles = {});
  ~MixedStep();

  /// Addresses of the input and output slots of the next step, and of buffers with two copies.
  void set_slot(int buffer, std::byte* address) { base_[buffer] = address; }
  /// Launches one step; `count` is 1 for the first and grows by 1. Returns when the host's part is
  /// done, nobody reads the input slots any more and the outputs are in theirs; devices may still
  /// work.
  void run(const StepContext& context, std::uint64_t count);
  /// Before the first step after another program's: what comes here comes after all that was
  /// drained.
  void begin();
  /// Waits until all queues are done.
  void drain();
  /// Of segments that are not captured any more: what and why, a line each.
  std::vector<std::string> graph_problems() const;

 private:
  struct Launched;

  void enqueue(const Launched& launched, std::uint64_t count);
  void enqueue_copy(const Launched& launched, const Operation& operation);
  /// Launches the graph of that segment, capturing it first where that is due; false where its
  /// operations have to be enqueued one by one.
  bool launch(SegmentGraphs& graphs, std::uint64_t count);

  const Plan& plan_;
  const Lowered& lowered_;
  std::vector<NodeCall> calls_;
  std::vector<std::byte*> base_;
  std::vector<std::unique_ptr<Stream>> streams_;  // per queue
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<Launched> launched_;    // per launch of the plan
  std::vector<Event*> slot_readers_;  // what has to be reached before input slots are filled again
  std::vector<ByteAccess> accesses_;  // of all instructions, one after the other
  std::vector<Device*> accelerators_;
  std::vector<Segment> segments_;
  std::vector<SegmentGraphs> graphs_;  // per segment
  StepContext context_;                // of this step; graphs know its address
};

}  // namespace tandem
