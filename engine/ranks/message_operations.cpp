#include "engine/ranks/message_operations.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/graph/align.h"
#include "engine/operators/tables/rows.h"

namespace tandem {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds between_polls{50};  // polls for failures of other ranks
// How long a wait polls without a pause: messages that are under way are soon there, ranks that
// still compute are not. Then it sleeps between polls. It does not yield: among computing threads
// one that yields waits for a whole time slice, milliseconds, and one that wakes up runs first.
constexpr microseconds eager_soon{50}, eager_far{5};
constexpr microseconds shortest_pause{20}, longest_pause{200};

}  // namespace

std::string to_string(const MessageTask& task) {
  constexpr const char* reductions[] = {"sum", "mean", "maximum", "minimum"};
  std::string text = name_of(task.kind) + std::string(" of '") + task.name.data() + "' (" +
                     std::to_string(task.count) + " " + std::string(name_of(task.dtype));
  if (reduces(task.kind)) text += std::string(", ") + reductions[static_cast<int>(task.reduction)];
  if (task.kind == CollectiveKind::exchange_rows) text += " a row";
  if (task.kind == CollectiveKind::broadcast) text += ", from rank " + std::to_string(task.root);
  return text + ")";
}

MessageOperations::MessageOperations(RankMessages& messages, Rendezvous& rendezvous, int number,
                                     milliseconds limit, const MessageSizes& sizes,
                                     const std::atomic<bool>& has_ended)
    : messages_(messages),
      rendezvous_(rendezvous),
      number_(number),
      rank_(messages.rank()),
      ranks_(messages.ranks()),
      limit_(limit),
      sizes_(sizes),
      has_ended_(has_ended),
      sources_(static_cast<std::size_t>(ranks_)) {
  for (Requests* requests : {&greetings_, &pieces_[0], &pieces_[1], &results_[0], &results_[1]})
    requests->reserve(4 * static_cast<std::size_t>(ranks_));
}

MessageOperations::~MessageOperations() { std::free(scratch_); }

void MessageOperations::run(const MessageTask& task, const MessageOperands& operands) {
  const auto* const input = static_cast<const char*>(operands.from);
  auto* const output = static_cast<char*>(operands.to);
  for (Requests* requests : {&greetings_, &pieces_[0], &pieces_[1], &results_[0], &results_[1]})
    requests->clear();
  begun_ = looked_ = Clock::now();
  if (ranks_ > 1) greet(task);
  switch (task.kind) {
    case CollectiveKind::all_reduce:
      return all_reduce(task, input, output);
    case CollectiveKind::all_gather:
      return gather_parts(task, operands);
    case CollectiveKind::reduce_scatter:
      return scatter_parts(task, operands);
    case CollectiveKind::all_to_all:
      return all_to_all(task, input, output);
    case CollectiveKind::exchange_rows:
      return exchange_rows(task, operands);
    case CollectiveKind::broadcast:
      return broadcast(task, input, output);
  }
}

// Each rank sends the next one what it runs. Where all pairs agree, all agree.
void MessageOperations::greet(const MessageTask& task) {
  MessageTask other;
  receive(previous(1), Lane::greeting, reinterpret_cast<char*>(&other), sizeof other, greetings_);
  send(next(1), Lane::greeting, reinterpret_cast<const char*>(&task), sizeof task, greetings_);
  wait(greetings_, false);
  if (other.meets(task)) return;
  throw MessageFailure{"ranks run different operations: rank " + std::to_string(previous(1)) +
                           " at " + to_string(other) + ", rank " + std::to_string(rank_) + " at " +
                           to_string(task),
                       "run the same version with the same configuration on all ranks"};
}

void MessageOperations::all_to_all(const MessageTask& task, const char* from, char* to) {
  const std::size_t bytes = task.count * size_of(task.dtype);
  const auto part = [&](int rank) { return static_cast<std::size_t>(rank) * bytes; };
  for (int distance = 1; distance < ranks_; ++distance) {
    const int source = previous(distance);
    receive(source, Lane::data, to + part(source), bytes, pieces_[0]);
  }
  for (int distance = 1; distance < ranks_; ++distance) {
    const int target = next(distance);
    send(target, Lane::data, from + part(target), bytes, pieces_[0]);
  }
  std::memcpy(to + part(rank_), from + part(rank_), bytes);
  wait(pieces_[0], true);
}

// Where a rank's rows begin follows from the counts of the ranks before it.
void MessageOperations::exchange_rows(const MessageTask& task, const MessageOperands& operands) {
  const std::size_t row = task.count * size_of(task.dtype);
  const auto* const from = static_cast<const char*>(operands.from);
  auto* const to = static_cast<char*>(operands.to);
  const auto rows = [&](const std::int32_t* counts, int begin, int end) {
    std::size_t sum = 0;
    for (int rank = begin; rank < end; ++rank) sum += static_cast<std::size_t>(counts[rank]);
    return sum;
  };
  const auto check = [&](const std::int32_t* counts, std::size_t room, const char* what) {
    const bool is_negative = std::any_of(counts, counts + ranks_, [](auto n) { return n < 0; });
    const std::size_t all = is_negative ? 0 : rows(counts, 0, ranks_);
    if (!is_negative && all <= room) return;
    throw MessageFailure{std::string("rows to be ") + what + ": " +
                             (is_negative ? "a negative number" : std::to_string(all)) +
                             ", with room for " + std::to_string(room),
                         "run the same version with the same configuration on all ranks"};
  };
  check(operands.sent, task.from_rows, "sent");
  check(operands.received, task.to_rows, "received");
  for (int distance = 1; distance < ranks_; ++distance) {
    const int source = previous(distance);
    receive(source, Lane::data, to + rows(operands.received, 0, source) * row,
            rows(operands.received, source, source + 1) * row, pieces_[0]);
  }
  for (int distance = 1; distance < ranks_; ++distance) {
    const int target = next(distance);
    send(target, Lane::data, from + rows(operands.sent, 0, target) * row,
         rows(operands.sent, target, target + 1) * row, pieces_[0]);
  }
  const std::size_t own = rows(operands.sent, rank_, rank_ + 1);
  if (own != rows(operands.received, rank_, rank_ + 1))
    throw MessageFailure{"a rank sends itself other rows than it expects",
                         "run the same version with the same configuration on all ranks"};
  if (own > 0) {
    std::memcpy(to + rows(operands.received, 0, rank_) * row,
                from + rows(operands.sent, 0, rank_) * row, own * row);
  }
  const auto fill_ids = [&](auto absent) {
    auto* const ids = reinterpret_cast<decltype(absent)*>(to);
    std::fill(ids + rows(operands.received, 0, ranks_) * task.count,
              ids + task.to_rows * task.count, absent);
  };
  if (task.dtype == DType::int32) fill_ids(absent_id<std::int32_t>);
  if (task.dtype == DType::int64) fill_ids(absent_id<std::int64_t>);
  wait(pieces_[0], true);
}

void MessageOperations::broadcast(const MessageTask& task, const char* from, char* to) {
  const std::size_t bytes = task.count * size_of(task.dtype);
  const int root = task.root;
  if (rank_ == root && from != to) std::memcpy(to, from, bytes);
  if (ranks_ == 1) return;
  const Chunks chunks{bytes, static_cast<std::size_t>(ranks_)};
  if (bytes <= 2 * sizes_.latency) return broadcast_by_tree(root, to, bytes);
  // Each rank passes on a chunk, so that the root sends little more than all bytes once.
  const auto chunk = [&](int rank) { return to + chunks.begin(rank); };
  for (int distance = 1; distance < ranks_; ++distance) {
    const int source = previous(distance);
    if (rank_ == root) break;
    receive(source, Lane::result, chunk(source), chunks.size(source), results_[0]);
  }
  if (rank_ == root) {
    for (int distance = 1; distance < ranks_; ++distance) {
      const int target = next(distance);
      send(target, Lane::data, chunk(target), chunks.size(target), pieces_[0]);
    }
  } else {
    receive(root, Lane::data, chunk(rank_), chunks.size(rank_), pieces_[0]);
    wait(pieces_[0], true);
  }
  for (int distance = 1; distance < ranks_; ++distance) {
    const int target = next(distance);
    if (target != root) send(target, Lane::result, chunk(rank_), chunks.size(rank_), results_[0]);
  }
  wait(pieces_[0], true);
  wait(results_[0], true);
}

void MessageOperations::broadcast_by_tree(int root, char* bytes, std::size_t count) {
  const int place = (rank_ + ranks_ - root) % ranks_;  // from the root
  int reach = 1;
  for (; reach < ranks_; reach *= 2) {  // the lowest bit of the place is where it comes from
    if ((place & reach) == 0) continue;
    receive((place - reach + root) % ranks_, Lane::data, bytes, count, pieces_[0]);
    wait(pieces_[0], true);
    break;
  }
  for (reach /= 2; reach > 0; reach /= 2) {
    if (place + reach < ranks_)
      send((place + reach + root) % ranks_, Lane::data, bytes, count, pieces_[0]);
  }
  wait(pieces_[0], true);
}

void MessageOperations::send(int to, int lane, const char* bytes, std::size_t count,
                             Requests& requests) {
  for (std::size_t begin = 0; begin < count; begin += sizes_.message)
    requests.push_back(messages_.send(to, number_ * Lane::lanes + lane, bytes + begin,
                                      std::min(sizes_.message, count - begin)));
}

void MessageOperations::receive(int from, int lane, char* bytes, std::size_t count,
                                Requests& requests) {
  for (std::size_t begin = 0; begin < count; begin += sizes_.message)
    requests.push_back(messages_.receive(from, number_ * Lane::lanes + lane, bytes + begin,
                                         std::min(sizes_.message, count - begin)));
}

void MessageOperations::wait(Requests& requests, bool soon) {
  const Clock::time_point begin = Clock::now();
  const microseconds eager = soon ? eager_soon : eager_far;
  for (RankMessages::Request& request : requests) {
    while (!messages_.is_done(request)) {
      look_around();
      const auto waited = std::chrono::duration_cast<microseconds>(Clock::now() - begin);
      if (waited >= eager) messages_.pause(std::clamp(waited / 8, shortest_pause, longest_pause));
    }
  }
  requests.clear();
  waited_ += std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

void MessageOperations::look_around() {
  if (has_ended_.load(std::memory_order_relaxed)) throw MessageFailure{"", "", true};
  const Clock::time_point now = Clock::now();
  if (now - looked_ < between_polls) return;
  looked_ = now;
  if (const std::optional<std::string> lost = rendezvous_.failure())
    throw MessageFailure{*lost, "look at what that rank has printed", true};
  if (now - begun_ < limit_) return;
  throw MessageFailure{
      "it was not done within " + std::to_string(limit_.count() / 1000) + " s",
      "another rank has stopped or is slower than that: look at what the other ranks have printed"};
}

char* MessageOperations::scratch(std::size_t bytes) {
  if (bytes <= scratch_bytes_) return scratch_;
  std::free(scratch_);
  scratch_bytes_ = 0;
  const std::size_t rounded = align_up(bytes, std::size_t{4096});
  scratch_ = static_cast<char*>(std::aligned_alloc(4096, rounded));
  if (scratch_ == nullptr) throw std::bad_alloc();
  scratch_bytes_ = rounded;
  return scratch_;
}

}  // namespace tandem
