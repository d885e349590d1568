// Messages between the hosts of ranks: what the operations of `MessageCommunicator` are made of.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tandem {

/// One rank's end. Calls may come from several threads; each throws Error{runtime} once something
/// has gone wrong.
class RankMessages {
 public:
  /// A message that is under way; 0 is none.
  using Request = std::uintptr_t;

  virtual ~RankMessages() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  /// Both begin and return at once; the bytes must stay in place until the request is done. The
  /// messages of one channel (from 0, below 32768) from one rank to another come in the order in
  /// which they are sent. The receiver gives the count that is sent, at most `most_bytes`.
  virtual Request send(int to, int channel, const void* bytes, std::size_t count) = 0;
  virtual Request receive(int from, int channel, void* bytes, std::size_t count) = 0;
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;

  /// Whether the request is done; then it becomes 0. Messages make progress while somebody asks.
  virtual bool is_done(Request& request) = 0;
  /// Sleeps for about that long.
  virtual void pause(std::chrono::microseconds time) = 0;
  /// Drops all messages that are under way; no memory that was given is touched any more.
  virtual void abandon() = 0;
};

}  // namespace tandem
