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

/// With places that are new the segment runs without a graph, so that libraries can prepare what
/// they need; when the places come again, a graph is captured.
class SegmentGraphs {
 public:
  /// Slots that take more places than that in turn are not captured.
  static constexpr std::size_t most_turns = 16;

  /// Both must outlive it.
  SegmentGraphs(const Segment& segment, Stream& stream);

  /// Finds out where the slots are; `base`: per buffer of the plan its address. Allocates only for
  /// places that are new.
  void look(std::span<std::byte* const> base);
  /// The graph for the slots' places; null where it has to be captured first, or must not be.
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
    std::vector<std::byte*> places;  // where segment.slots are
    bool is_known = false;           // the segment has run with them once
    std::unique_ptr<Captured> graph;
  };
  void give_up(std::string problem);

  const Segment& segment_;
  Stream& stream_;
  std::vector<Turn> turns_;  // never moves
  Turn* turn_ = nullptr;     // the one that `look` found
  std::string problem_;
};

}  // namespace tandem
