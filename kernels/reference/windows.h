// The windows of a node along three spatial axes, as the reference kernels walk them.
#pragma once

#include <array>

#include "engine/operators/window.h"

namespace tandem::reference {

/// Missing spatial axes come first, with a window of one element.
using Windows = std::array<Window, 3>;

inline Windows three_windows(const Attributes& attributes, const Shape& kernel) {
  const std::vector<Window> given = windows_of(attributes, kernel);
  Windows windows;
  for (std::size_t i = 0; i < given.size(); ++i) windows[i + 3 - given.size()] = given[i];
  return windows;
}

/// f(i, j, k) for all 0 <= i < a, 0 <= j < b, 0 <= k < c in order.
template <class F>
void for_three(std::int64_t a, std::int64_t b, std::int64_t c, F f) {
  for (std::int64_t i = 0; i < a; ++i) {
    for (std::int64_t j = 0; j < b; ++j) {
      for (std::int64_t k = 0; k < c; ++k) f(i, j, k);
    }
  }
}

/// f(i, j, k, a, b, c) for every tap (a, b, c) of window (o, p, q), with its position (i, j, k) in
/// the input, where that lies inside `extent`.
template <class F>
void for_taps(const Windows& w, const std::int64_t* extent, std::int64_t o, std::int64_t p,
              std::int64_t q, F f) {
  for (std::int64_t a = 0; a < w[0].kernel; ++a) {
    const std::int64_t i = w[0].start(o) + a * w[0].dilation;
    if (i < 0 || i >= extent[0]) continue;
    for (std::int64_t b = 0; b < w[1].kernel; ++b) {
      const std::int64_t j = w[1].start(p) + b * w[1].dilation;
      if (j < 0 || j >= extent[1]) continue;
      for (std::int64_t c = 0; c < w[2].kernel; ++c) {
        const std::int64_t k = w[2].start(q) + c * w[2].dilation;
        if (k < 0 || k >= extent[2]) continue;
        f(i, j, k, a, b, c);
      }
    }
  }
}

/// The window whose tap `tap` lies at `position`, or -1. There are `count` windows.
inline std::int64_t window_at(const Window& w, std::int64_t position, std::int64_t tap,
                              std::int64_t count) {
  const std::int64_t start = position + w.pad_begin - tap * w.dilation;
  if (start < 0 || start % w.stride != 0 || start / w.stride >= count) return -1;
  return start / w.stride;
}

/// f(o, p, q, a, b, c) for every tap (a, b, c) of a window (o, p, q) that lies at (i, j, k).
template <class F>
void for_windows_at(const Windows& w, const std::int64_t* count, std::int64_t i, std::int64_t j,
                    std::int64_t k, F f) {
  for (std::int64_t a = 0; a < w[0].kernel; ++a) {
    const std::int64_t o = window_at(w[0], i, a, count[0]);
    if (o < 0) continue;
    for (std::int64_t b = 0; b < w[1].kernel; ++b) {
      const std::int64_t p = window_at(w[1], j, b, count[1]);
      if (p < 0) continue;
      for (std::int64_t c = 0; c < w[2].kernel; ++c) {
        const std::int64_t q = window_at(w[2], k, c, count[2]);
        if (q >= 0) f(o, p, q, a, b, c);
      }
    }
  }
}

}  // namespace tandem::reference
