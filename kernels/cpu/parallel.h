// Regions of work that the threads of the compute lane share. Work is cut into parts before the
// region, never by the order in which threads arrive, so that results do not depend on timing.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/threads/thread_team.h"

namespace tandem {

/// Below this much work (about 8 µs of one core) a region costs more than it gives.
constexpr std::int64_t grain_flops = 1 << 18;
constexpr std::int64_t grain_bytes = 1 << 16;

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

/// Part `part` of `parts` of 0..count, cut at multiples of `unit`; parts differ by one unit at
/// most.
inline Range part_of(std::int64_t count, int part, int parts, std::int64_t unit = 1) {
  const std::int64_t units = (count + unit - 1) / unit;
  const std::int64_t each = units / parts, more = units % parts;
  const std::int64_t first = each * part + std::min<std::int64_t>(part, more);
  const std::int64_t last = first + each + (part < more ? 1 : 0);
  return {std::min(first * unit, count), std::min(last * unit, count)};
}

/// Calls f(part) for each part of 0..parts, on the calling thread's team. Inside another region, or
/// where there are fewer cores, a thread takes several parts.
template <class F>
void parallel_parts(int parts, F&& f) {
  if (parts <= 1) {
    if (parts == 1) f(0);
    return;
  }
  ThreadTeam::of_this_thread().run(parts, PartFunction(f));
}

/// How many parts are worth while: 1 where `work` is below two grains.
inline int parts_for(int threads, std::int64_t work, std::int64_t grain) {
  return static_cast<int>(std::clamp<std::int64_t>(work / grain, 1, std::max(threads, 1)));
}

/// f(begin, end) over 0..count in equal parts of multiples of `unit`; `bytes` is all memory
/// touched.
template <class F>
void parallel_ranges(int threads, std::int64_t count, std::int64_t bytes, F&& f,
                     std::int64_t unit = 1) {
  const int parts = parts_for(threads, bytes, grain_bytes);
  parallel_parts(parts, [&](int part) {
    const Range range = part_of(count, part, parts, unit);
    if (range.begin < range.end) f(range.begin, range.end);
  });
}

}  // namespace tandem
