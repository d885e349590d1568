// A step on several devices: one thread enqueues every queue's instructions in the plan's order,
// segments as captured graphs, and computes the host's own part in between. The step's outputs are
// read later: by then the next step may have been launched.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/lower/lowered.h"
#include "engine/plan/collectives.h"
#include "engine/plan/plan.h"
#include "engine/plan/simulate.h"
#include "engine/ranks/communicator.h"
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
  /// How many steps may be launched before the first of them is finished: 2 where slots have two
  /// places, as plan.slot_turns says; else 1.
  int steps_in_flight() const { return steps_in_flight_; }
  /// Launches one step; `count` is 1 for the first and grows by 1. Returns when the host's part is
  /// done but for the reading of outputs; devices may still work. Where other ranks take part, this
  /// and `finish` throw Error{runtime} once one of them has failed.
  void launch(const StepContext& context, std::uint64_t count);
  /// Waits until that step's outputs are in their slots, its input slots are not read any more and
  /// states that ranks gather on the host are complete; devices may still work. Steps are finished
  /// in their order.
  void finish(std::uint64_t count);
  /// Whether the input slots of that step are not read any more. Waits for nothing.
  bool has_read_inputs(std::uint64_t count) const;
  /// To be called before the first step after another program's: work that is enqueued afterwards
  /// starts after everything that was drained.
  void begin();
  /// Waits until all queues are done.
  void drain();
  /// The segments that are not captured any more, with the reason, a line each.
  std::vector<std::string> graph_problems() const;

 private:
  struct Launched;
  struct Collective;

  void find_reads();
  void find_gathering();
  void enqueue(const Launched& launched, std::uint64_t count);
  std::span<const ByteAccess> accesses_of(const Launched& launched);
  /// Keeps where the outputs of a step are, until it is finished.
  void keep_reads(std::uint64_t count);
  void enqueue_copy(const Launched& launched, const Operation& operation);
  void enqueue_collective(const Launched& launched);
  /// Throws Error{usage} where the device is not joined to as many ranks as the node needs.
  const Collective* add_collective(const Device& device, NodeId node);
  /// Throws Error{runtime} where another rank has failed.
  void check_ranks();
  /// Launches the graph of that segment, capturing it first where that is due; false where its
  /// operations have to be enqueued one by one.
  bool launch(SegmentGraphs& graphs, std::uint64_t count);

  const Plan& plan_;
  const Lowered& lowered_;
  std::vector<NodeCall> calls_;
  std::vector<std::byte*> base_;
  // Reached when the states are there that ranks gather on the host, outside of its own lane.
  std::unique_ptr<Event> gathered_;
  Stream* gathering_ = nullptr;
  std::vector<std::unique_ptr<Stream>> streams_;  // per queue
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<Launched> launched_;  // per launch of the plan
  std::vector<Launched> reads_;     // the host's reads of outputs, which are not in `launched_`
  std::vector<ByteAccess> read_accesses_[2];  // those of `reads_`, for even and odd steps
  int steps_in_flight_ = 1;
  std::vector<Event*> slot_readers_;  // what has to be reached before input slots are filled again
  std::vector<ByteAccess> accesses_;  // those of all instructions, one after the other
  std::vector<Device*> accelerators_;
  std::vector<Collective> collectives_;       // in the order of their launches
  std::vector<Communicator*> communicators_;  // each once
  std::vector<RankParts> parts_;              // those of the call that is being enqueued
  std::vector<Segment> segments_;
  std::vector<SegmentGraphs> graphs_;  // per segment
  StepContext context_;                // this step's; captured graphs hold its address
};

}  // namespace tandem
