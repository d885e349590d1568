// The messages of each operation over all ranks. The order of a reduction depends only on the
// number of ranks, whatever comes first and however many elements there are.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/types.h"
#include "engine/operators/collectives/collective_cost.h"
#include "engine/ranks/communicator.h"
#include "engine/ranks/part_segments.h"
#include "engine/ranks/rank_messages.h"
#include "engine/ranks/rendezvous.h"

namespace tandem {

/// An operation without its addresses.
struct MessageTask {
  CollectiveKind kind = CollectiveKind::all_reduce;
  DType dtype = DType::float32;
  Reduction reduction = Reduction::sum;
  int root = 0;
  std::size_t count = 0;
  std::size_t from_rows = 0, to_rows = 0;  // exchange_rows: the room for rows, each rank's own
  std::uint64_t sizes = 0;      // all_gather, reduce_scatter: a hash of the sizes of all operands
  std::array<char, 64> name{};  // the name's beginning

  bool operator==(const MessageTask&) const = default;
  /// Whether ranks may run the two together.
  bool meets(const MessageTask& other) const {
    MessageTask same = other;
    same.from_rows = from_rows;
    same.to_rows = to_rows;
    return same == *this;
  }
};
/// Where it reads and writes.
struct MessageOperands {
  const void* from = nullptr;
  void* to = nullptr;
  const std::int32_t* sent = nullptr;  // exchange_rows: rows for each rank, and of each rank
  const std::int32_t* received = nullptr;
  /// all_gather and reduce_scatter have several: their sizes and, for each, where it begins.
  std::span<const PartSizes> parts = {};
  const void* const* froms = nullptr;
  void* const* tos = nullptr;
};
/// "all_reduce of 'loss' (12 float32, sum)".
std::string to_string(const MessageTask& task);

struct MessageSizes {
  /// Bytes that go in the time of a message: decides how ranks exchange few bytes.
  std::size_t latency = static_cast<std::size_t>(assumed_bytes_a_message);
  /// How ranks add up; nothing: as their number and the bytes make it cheapest.
  std::optional<CollectiveMethod> all_reduce = {};
  std::size_t piece = std::size_t{256} << 10;  // bytes that are reduced while the next ones come
  std::size_t message = RankMessages::most_bytes;
  /// Where there are several operands, shorter ones are copied into one message, which is worth the
  /// copy: at 10 Gb/s and 10 us a message, a message costs the time of 12 KiB.
  std::size_t packed = std::size_t{16} << 10;
};

/// Why an operation ends early.
struct MessageFailure {
  std::string what, fix;
  bool is_told = false;  // others know it already
};

/// One operation at a time; memory is that of the host. A buffer is made by the first operation
/// that needs it: up to 4 × ranks × `piece` bytes, or the size of the short operands that it
/// gathers.
class MessageOperations {
 public:
  /// `has_ended`: somebody else wants it to stop.
  MessageOperations(RankMessages& messages, Rendezvous& rendezvous, int number,
                    std::chrono::milliseconds limit, const MessageSizes& sizes,
                    const std::atomic<bool>& has_ended);
  ~MessageOperations();
  MessageOperations(const MessageOperations&) = delete;
  MessageOperations& operator=(const MessageOperations&) = delete;

  /// Throws MessageFailure, or Error of the messages; then messages may be under way still.
  void run(const MessageTask& task, const MessageOperands& operands);
  /// Seconds in which there was nothing to do but to wait for messages; any thread may ask.
  double waited() const { return 1e-9 * static_cast<double>(waited_.load()); }

 private:
  using Clock = std::chrono::steady_clock;
  using Requests = std::vector<RankMessages::Request>;
  // Two messages between the same ranks meet in the order of their channel: greetings, what is
  // reduced or moved, and results.
  enum Lane : int { greeting = 0, data = 1, result = 2, lanes = 4 };
  /// Elements of all ranks, in their order: begin(rank) … begin(rank + 1).
  struct Chunks {
    std::size_t count, ranks;
    std::size_t begin(int rank) const {
      const auto r = static_cast<std::size_t>(rank);
      return r * (count / ranks) + (r < count % ranks ? r : count % ranks);
    }
    std::size_t size(int rank) const { return begin(rank + 1) - begin(rank); }
  };

  /// Elements [begin, begin + count).
  struct Range {
    std::size_t begin = 0, count = 0;
  };

  void greet(const MessageTask& task);
  // message_all_reduce.cpp
  void all_reduce(const MessageTask& task, const char* from, char* to);
  void reduce_in_pairs(const MessageTask& task, CollectiveMethod method, const char* from,
                       char* to);
  void reduce_by_doubling(const MessageTask& task, const char* sums, char* to);
  void reduce_by_halving(const MessageTask& task, const char* sums, char* to);
  void reduce_wholes(const MessageTask& task, const char* from, char* to);
  void reduce_directly(const MessageTask& task, const char* from, char* to);
  /// Sends another rank elements of `sums`, and adds to others what it sends for them; `to` gets
  /// these, at the same place.
  void exchange_sums(const MessageTask& task, int other, const char* sums, const Range& given,
                     const Range& kept, char* to);
  // message_gather.cpp
  void scatter_parts(const MessageTask& task, const MessageOperands& operands);
  void gather_parts(const MessageTask& task, const MessageOperands& operands);
  void all_to_all(const MessageTask& task, const char* from, char* to);
  void exchange_rows(const MessageTask& task, const MessageOperands& operands);
  void broadcast(const MessageTask& task, const char* from, char* to);
  void broadcast_by_tree(int root, char* bytes, std::size_t count);

  void send(int to, int lane, const char* bytes, std::size_t count, Requests& requests);
  void receive(int from, int lane, char* bytes, std::size_t count, Requests& requests);
  /// `soon`: what is waited for is under way already.
  void wait(Requests& requests, bool soon);
  void look_around();
  int next(int distance) const { return (rank_ + distance) % ranks_; }
  int previous(int distance) const { return (rank_ + ranks_ - distance) % ranks_; }
  char* scratch(std::size_t bytes);

  RankMessages& messages_;
  Rendezvous& rendezvous_;
  const int number_, rank_, ranks_;
  const std::chrono::milliseconds limit_;
  const MessageSizes sizes_;
  const std::atomic<bool>& has_ended_;
  Clock::time_point begun_, looked_;
  std::atomic<std::int64_t> waited_{0};  // nanoseconds
  Requests greetings_, pieces_[2], results_[2];
  std::vector<const void*> sources_;
  std::vector<PartSegment> segments_[2];  // the pieces that are under way
  char* scratch_ = nullptr;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace tandem
