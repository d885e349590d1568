// Who touched which bytes last: finds accesses that no happens-before edge orders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace tandem {

/// Per lane, how many of its operations are known to precede; lanes beyond the end: none.
using VectorClock = std::vector<std::uint64_t>;

void join_clocks(VectorClock& into, const VectorClock& from);

/// An operation: number `tick` (from 1) of its lane.
struct OperationMark {
  int lane = 0;
  std::uint64_t tick = 0;
  int name = 0;
};

/// For every byte the last writer, and for each lane the last reader since. That is enough: an
/// access that is ordered after these is ordered after all before them, or they were reported.
class AccessHistory {
 public:
  struct Conflict {
    OperationMark earlier;
    bool earlier_writes = false;
  };
  /// Notes that operation `mark`, which knows `clock`, touches [begin, end). Returns what it
  /// conflicts with; valid until the next call.
  const std::vector<Conflict>& touch(std::uintptr_t begin, std::uintptr_t end, bool write,
                                     const OperationMark& mark, const VectorClock& clock);
  void forget(std::uintptr_t begin, std::uintptr_t end);

 private:
  struct Segment {
    std::uintptr_t end = 0;
    OperationMark writer;  // tick 0: none
    std::vector<OperationMark> readers;
  };
  using Segments = std::map<std::uintptr_t, Segment>;  // by their first byte

  /// Makes `at` a border; returns the first segment at or after it.
  Segments::iterator cut(std::uintptr_t at);
  void touch(Segment& segment, bool write, const OperationMark& mark, const VectorClock& clock);

  Segments segments_;
  std::vector<Conflict> conflicts_;
};

}  // namespace tandem
