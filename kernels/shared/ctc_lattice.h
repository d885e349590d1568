// The paths of connectionist temporal classification through the frames of one sample, summed in
// logarithms (Graves et al. 2006).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace tandem {

/// The states of a frame: blank, label 0, blank, label 1, .., blank. A path starts in one of the
/// first two and ends in one of the last two; from one frame to the next it stays, goes to the next
/// state, or from a label to the next one if that is another class.
/// `LogProb`: (frame, class) -> double. `Label`: (number) -> class.
template <class LogProb, class Label>
struct CtcLattice {
  static constexpr double never = -std::numeric_limits<double>::infinity();

  LogProb log_prob;
  Label label;
  std::int64_t frames = 0, labels = 0, blank = 0;

  std::int64_t states() const { return 2 * labels + 1; }
  std::int64_t class_of(std::int64_t state) const {
    return state % 2 == 0 ? blank : label(state / 2);
  }
  /// Whether a path may enter a state from the one before the last.
  bool skips_to(std::int64_t state) const {
    return state % 2 == 1 && state > 1 && label(state / 2) != label(state / 2 - 1);
  }
  /// The states [first, last) of a frame that a path from start to end may be in.
  std::int64_t first(std::int64_t frame) const {
    return std::max<std::int64_t>(0, states() - 2 * (frames - frame));
  }
  std::int64_t last(std::int64_t frame) const { return std::min(states(), 2 * (frame + 1)); }

  static double log_sum(double a, double b) {
    const double most = std::max(a, b), least = std::min(a, b);
    return most == never ? never : most + std::log1p(std::exp(least - most));
  }
  static double log_sum(double a, double b, double c) {
    const double most = std::max({a, b, c});
    if (most == never) return never;
    return most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
  }

  /// `row`: for each state the probability of the paths up to it in this frame; `before`: in the
  /// frame before, not read for frame 0.
  void forward(std::int64_t frame, const double* before, double* row) const {
    std::fill_n(row, states(), never);
    for (std::int64_t s = first(frame); s < last(frame); ++s) {
      double paths = 0;
      if (frame > 0) {
        const double here = before[s], next = s > 0 ? before[s - 1] : never;
        paths = skips_to(s) ? log_sum(here, next, before[s - 2]) : log_sum(here, next);
      }
      row[s] = paths + log_prob(frame, class_of(s));
    }
  }
  /// `row`: for each state the probability of the paths from it in this frame to the end, without
  /// the frame itself; `behind`: in the frame after, not read for the last one.
  void backward(std::int64_t frame, const double* behind, double* row) const {
    std::fill_n(row, states(), never);
    const auto path = [&](std::int64_t s) {
      return s < states() ? behind[s] + log_prob(frame + 1, class_of(s)) : never;
    };
    for (std::int64_t s = first(frame); s < last(frame); ++s) {
      if (frame + 1 == frames) {
        row[s] = 0;
      } else {
        const bool skips = s + 2 < states() && skips_to(s + 2);
        row[s] = skips ? log_sum(path(s), path(s + 1), path(s + 2)) : log_sum(path(s), path(s + 1));
      }
    }
  }
  /// -log of the probability of all paths, from the last frame's row of `forward`.
  double loss(const double* row) const {
    return -(labels == 0 ? row[0] : log_sum(row[states() - 1], row[states() - 2]));
  }
  double loss_without_frames() const { return labels == 0 ? 0 : -never; }
};

/// The loss of a sample; `memory` has room for two rows.
template <class LogProb, class Label>
double ctc_loss(const CtcLattice<LogProb, Label>& lattice, double* memory) {
  if (lattice.frames == 0) return lattice.loss_without_frames();
  double *row = memory, *before = memory + lattice.states();
  for (std::int64_t t = 0; t < lattice.frames; ++t) {
    std::swap(row, before);
    lattice.forward(t, before, row);
  }
  return lattice.loss(row);
}

/// The loss of a sample; where it is finite, visit(frame, class, probability) for each state that
/// paths are in. `memory` has room for two rows more than there are frames.
template <class LogProb, class Label, class Visit>
double ctc_occupancy(const CtcLattice<LogProb, Label>& lattice, double* memory, Visit visit) {
  const std::int64_t states = lattice.states(), frames = lattice.frames;
  if (frames == 0) return lattice.loss_without_frames();
  lattice.forward(0, nullptr, memory);
  for (std::int64_t t = 1; t < frames; ++t)
    lattice.forward(t, memory + (t - 1) * states, memory + t * states);
  const double loss = lattice.loss(memory + (frames - 1) * states);
  if (std::isinf(loss)) return loss;
  double *row = memory + frames * states, *behind = row + states;
  for (std::int64_t t = frames - 1; t >= 0; --t) {
    std::swap(row, behind);
    lattice.backward(t, behind, row);
    const double* ahead = memory + t * states;
    for (std::int64_t s = lattice.first(t); s < lattice.last(t); ++s)
      visit(t, lattice.class_of(s), std::exp(ahead[s] + row[s] + loss));
  }
  return loss;
}

}  // namespace tandem
