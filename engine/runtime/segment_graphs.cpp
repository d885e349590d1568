#include "engine/runtime/segment_graphs.h"

#include "engine/graph/error.h"

namespace tandem {

SegmentGraphs::SegmentGraphs(const Segment& segment, Stream& stream)
    : segment_(segment), stream_(stream) {
  turns_.reserve(most_turns);
}

void SegmentGraphs::look(std::span<std::byte* const> base) {
  turn_ = nullptr;
  if (!problem_.empty() || !stream_.can_capture()) return;
  const std::vector<int>& slots = segment_.slots;
  for (Turn& turn : turns_) {
    std::size_t same = 0;
    while (same < slots.size() && turn.places[same] == base[slots[same]]) ++same;
    if (same < slots.size()) continue;
    turn.is_known = true;
    turn_ = &turn;
    return;
  }
  if (turns_.size() == most_turns)
    return give_up("its slots take more than " + std::to_string(most_turns) + " sets of places");
  Turn& turn = turns_.emplace_back();
  for (const int slot : slots) turn.places.push_back(base[slot]);
  turn_ = &turn;
}

Captured* SegmentGraphs::capture(const std::function<void()>& enqueue) {
  try {
    stream_.begin_capture();
    enqueue();
    turn_->graph = stream_.end_capture();
    return turn_->graph.get();
  } catch (const Error& error) {
    give_up(error.what());
  }
  try {  // in case the capture has not ended
    (void)stream_.end_capture();
  } catch (const Error&) {  // the capture is broken: that is known
  }
  return nullptr;
}

void SegmentGraphs::give_up(std::string problem) {
  problem_ = problem.empty() ? "the capture failed" : std::move(problem);
  turn_ = nullptr;
  turns_.clear();
}

}  // namespace tandem
