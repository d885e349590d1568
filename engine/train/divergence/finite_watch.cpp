#include "engine/train/divergence/finite_watch.h"

#include <algorithm>
#include <utility>

#include "engine/train/loop/run_length.h"

namespace tandem {

namespace {

constexpr double share = 0.01;  // part of the time since the start
// These parts are checked each time, however long it takes: no longer than the line in
// metrics.jsonl.
constexpr int least_parts = 8;
constexpr std::size_t least_bytes = std::size_t{64} << 10;  // bytes of such a part
constexpr std::size_t large_bytes = std::size_t{16} << 20;  // bytes of each further part

}  // namespace

void FiniteWatch::start(const StateStore& states, std::set<std::string> infinite,
                        const Place& place, bool parts_alone) {
  states_ = &states;
  parts_alone_ = parts_alone;
  infinite_ = std::move(infinite);
  start_ = place;
  started_ = std::chrono::steady_clock::now();
  seconds_ = 0;
  next_ = 0;
  row_ = 0;
  bytes_ = 0;
  watched_.clear();
  for (const std::string& name : states.names()) {
    const TensorType& type = states.type(name);
    if (!can_be_not_finite(states, name) || type.elements() == 0) continue;
    if (parts_alone && states.shard(name) == nullptr) continue;
    Watched& state = watched_.emplace_back();
    state.name = name;
    state.rows = row_count(type);
    state.row_bytes = type.bytes() / static_cast<std::size_t>(state.rows);
    state.in_parts = !type.shape.empty() && states.has_direct_rows(name);
    state.finite = state.begun = place;
    bytes_ += type.bytes();
  }
}

bool FiniteWatch::look_at_part(std::size_t bytes, std::size_t& left, const Place& place) {
  Watched& state = watched_[next_];
  if (row_ == 0) state.begun = place;
  const std::int64_t most = static_cast<std::int64_t>(std::min(bytes, left) / state.row_bytes);
  const std::int64_t rest = state.rows - row_;
  const std::int64_t rows = state.in_parts ? std::clamp<std::int64_t>(most, 1, rest) : rest;
  const Finiteness found = finiteness_of(*states_, state.name, row_, rows);
  if (found == Finiteness::nan) return false;
  if (found == Finiteness::infinite && !infinite_.contains(state.name)) return false;
  left -= std::min(left, static_cast<std::size_t>(rows) * state.row_bytes);
  row_ += rows;
  if (row_ < state.rows) return true;
  state.finite = state.begun;
  row_ = 0;
  next_ = (next_ + 1) % watched_.size();
  return true;
}

bool FiniteWatch::look(const Place& place) {
  const auto begin = std::chrono::steady_clock::now();
  const double seconds = share * seconds_since(started_) - seconds_;
  bool is_finite = true;
  std::size_t left = bytes_;
  for (int part = 0; is_finite && left > 0; ++part) {
    const bool is_free = part < least_parts;
    if (!is_free && seconds_since(begin) >= seconds) break;
    is_finite = look_at_part(is_free ? least_bytes : large_bytes, left, place);
  }
  seconds_ += seconds_since(begin);
  return is_finite;
}

std::vector<NotFiniteState> FiniteWatch::look_at_all(const Place& place) {
  std::vector<NotFiniteState> found = not_finite_states(*states_, infinite_, parts_alone_);
  for (Watched& state : watched_) {
    const bool is_bad = std::any_of(found.begin(), found.end(), [&](const NotFiniteState& bad) {
      return bad.name == state.name;
    });
    if (!is_bad) state.finite = state.begun = place;
  }
  return found;
}

FiniteWatch::Place FiniteWatch::finite_at(const std::string& name) const {
  for (const Watched& state : watched_) {
    if (state.name == name) return state.finite;
  }
  return start_;
}

}  // namespace tandem
