// Operands that ranks gather or scatter together as one sequence of elements: pieces of it, and
// what of a piece travels as one message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "engine/ranks/communicator.h"

namespace tandem {

/// Elements [begin, begin + count) of every rank's part of an operand.
struct PartSegment {
  std::size_t operand = 0, begin = 0, count = 0;

  /// How many of them a rank's shard has.
  std::size_t filled(std::span<const PartSizes> parts, int rank) const {
    const std::size_t all = parts[operand].filled(rank);
    return std::min(count, all - std::min(all, begin));
  }
};

/// The next `most` elements of the shards, one operand after the other, from `next` on, which
/// advances.
inline void take_segments(std::span<const PartSizes> parts, std::size_t most, PartSegment& next,
                          std::vector<PartSegment>& segments) {
  segments.clear();
  while (most > 0 && next.operand < parts.size()) {
    const std::size_t left = parts[next.operand].part - next.begin;
    const std::size_t count = std::min(most, left);
    if (count > 0) segments.push_back({next.operand, next.begin, count});
    most -= count;
    next.begin += count;
    if (count == left) next = {next.operand + 1};
  }
}

/// Calls f(std::span<const PartSegment>) for what travels as one message: a segment of `least`
/// elements or more by itself, shorter neighbours together. It is the same on all ranks.
template <class F>
void for_each_message(std::span<const PartSegment> segments, std::size_t least, const F& f) {
  for (std::size_t i = 0, count = 1; i < segments.size(); i += count) {
    const auto is_short = [&](std::size_t at) {
      return at < segments.size() && segments[at].count < least;
    };
    for (count = 1; is_short(i) && is_short(i + count);) ++count;
    f(segments.subspan(i, count));
  }
}

/// Elements that a rank's shards have in these segments.
inline std::size_t filled(std::span<const PartSegment> segments, std::span<const PartSizes> parts,
                          int rank) {
  std::size_t sum = 0;
  for (const PartSegment& segment : segments) sum += segment.filled(parts, rank);
  return sum;
}

}  // namespace tandem
