#include "kernels/emulated/access_history.h"

#include <algorithm>

namespace tandem {
namespace {

bool precedes(const OperationMark& mark, const VectorClock& clock) {
  return static_cast<std::size_t>(mark.lane) < clock.size() && clock[mark.lane] >= mark.tick;
}

}  // namespace

void join_clocks(VectorClock& into, const VectorClock& from) {
  if (into.size() < from.size()) into.resize(from.size(), 0);
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

AccessHistory::Segments::iterator AccessHistory::cut(std::uintptr_t at) {
  auto next = segments_.lower_bound(at);
  if (next == segments_.begin()) return next;
  const auto before = std::prev(next);
  if (before->second.end <= at) return next;
  Segment rest = before->second;
  before->second.end = at;
  return segments_.emplace_hint(next, at, std::move(rest));
}

void AccessHistory::touch(Segment& segment, bool write, const OperationMark& mark,
                          const VectorClock& clock) {
  auto check = [&](const OperationMark& earlier, bool earlier_writes) {
    if (earlier.tick != 0 && !precedes(earlier, clock))
      conflicts_.push_back({earlier, earlier_writes});
  };
  check(segment.writer, true);
  if (write) {
    for (const OperationMark& reader : segment.readers) check(reader, false);
    segment.readers.clear();
    segment.writer = mark;
    return;
  }
  for (OperationMark& reader : segment.readers) {
    if (reader.lane != mark.lane) continue;
    reader = mark;
    return;
  }
  segment.readers.push_back(mark);
}

const std::vector<AccessHistory::Conflict>& AccessHistory::touch(std::uintptr_t begin,
                                                                 std::uintptr_t end, bool write,
                                                                 const OperationMark& mark,
                                                                 const VectorClock& clock) {
  conflicts_.clear();
  if (begin >= end) return conflicts_;
  cut(end);
  auto segment = cut(begin);
  for (std::uintptr_t at = begin; at < end; ++segment) {
    // Bytes that have not been touched yet.
    if (segment == segments_.end() || segment->first > at) {
      const std::uintptr_t until = segment == segments_.end() ? end : std::min(end, segment->first);
      segment = segments_.emplace_hint(segment, at, Segment{until, {}, {}});
    }
    touch(segment->second, write, mark, clock);
    at = segment->second.end;
  }
  return conflicts_;
}

void AccessHistory::forget(std::uintptr_t begin, std::uintptr_t end) {
  if (begin >= end) return;
  cut(end);
  segments_.erase(cut(begin), segments_.lower_bound(end));
}

}  // namespace tandem
