// Fork and join on the compute lane's OpenMP team. Work is cut into parts before the region, never
// by whoever happens to come first, so that results do not depend on timing.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

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

/// Calls f(part) for each part of 0..parts. Inside another region, or where the system grants fewer
/// threads, a thread takes several parts.
template <class F>
void parallel_parts(int parts, F&& f) {
  if (parts <= 1) {
    if (parts == 1) f(0);
    return;
  }
#pragma omp parallel num_threads(parts)
  {
    const int team = omp_get_num_threads();
    for (int part = omp_get_thread_num(); part < parts; part += team) f(part);
  }
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
