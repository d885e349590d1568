// A segment's captured graphs: one for each set of places that its slots take in turn.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/runtime/segments.h"

namespace tandem {

/// Slots that are met for the first time are run without a graph, so that libraries can prepare
/// what they need; when they come again there is one to capture.
class SegmentGraphs {
 public:
  /// Slots that take more places than that in turn are not captured.
  static constexpr std::size_t most_turns = 16;

  /// Both outlive it.
  SegmentGraphs(const Segment& segment, Stream& stream);

  /// Looks where the slots are; `base`: per buffer of the plan its address. Allocates only where
  /// they have not been before.
  void look(std::span<std::byte* const> base);
  /// Of the slots' places: null where it has to be captured first, or is not to be.
  Captured* graph() const { return turn_ == nullptr ? nullptr : turn_->graph.get(); }
  bool can_be_captured() const { return turn_ != nullptr && turn_->is_known && !turn_->graph; }
  /// Captures what `enqueue` enqueues on the stream. Null where that fails: this segment is never
  /// captured again.
  Captured* capture(const std::function<void()>& enqueue);

  const Segment& segment() const { return segment_; }
  Stream& stream() const { return stream_; }
  /// Why it is not captured any more; "": it is.
  const std::string& problem() const { return problem_; }

 private:
  struct Turn {
    std::vector<std::byte*> places;  // of segment.slots
    bool is_known = false;           // has been run once
    std::unique_ptr<Captured> graph;
  };
  void give_up(std::string problem);

  const Segment& segment_;
  Stream& stream_;
  std::vector<Turn> turns_;  // never moves
  Turn* turn_ = nullptr;     // that `look` found
  std::string problem_;
};

}  // namespace tandem
