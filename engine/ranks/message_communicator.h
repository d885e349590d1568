// Operations over all ranks on memory that the host reaches, made of messages.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/graph/error.h"
#include "engine/ranks/communicator.h"
#include "engine/ranks/message_operations.h"
#include "engine/ranks/rank_messages.h"
#include "engine/ranks/rendezvous.h"

namespace tandem {

struct MessageCommunicatorOptions {
  /// Distinguishes the communicators over the same messages; the same on all ranks.
  int number = 0;
  /// Time limit from when an operation begins on this rank until it is done.
  std::chrono::milliseconds operation_limit{3600000};
  MessageSizes sizes;
};

/// Takes streams that run kernels in order on the host, on a thread of their own: the cpu's and the
/// emulated device's of kind `collective`. Operations on two of them at a time have to be ordered
/// by events. What a rank runs is compared with its neighbour's: two that differ are named, never
/// mixed up. A failure, here or reported by the rendezvous, ends what is under way; its results are
/// then worth nothing, and `check` says so.
class MessageCommunicator final : public Communicator {
 public:
  MessageCommunicator(std::shared_ptr<RankMessages> messages,
                      std::shared_ptr<Rendezvous> rendezvous,
                      const MessageCommunicatorOptions& options);
  ~MessageCommunicator() override;
  MessageCommunicator(const MessageCommunicator&) = delete;
  MessageCommunicator& operator=(const MessageCommunicator&) = delete;

  int rank() const override { return messages_->rank(); }
  int ranks() const override { return messages_->ranks(); }
  void enqueue(Stream& stream, std::string_view name, const Exchange& exchange) override;
  void watch(Stream& stream, std::string_view name) override;
  void check() override;
  void wait(Stream& stream) override;
  void abort(const std::string& why) override;
  double waited() const override { return operations_.waited(); }

 private:
  class Task;
  struct TaskHash {
    std::size_t operator()(const MessageTask& task) const;
  };

  void run(const MessageTask& task, const MessageOperands& operands) noexcept;
  /// An all_gather or reduce_scatter.
  void enqueue_parts(Stream& stream, std::string_view name, CollectiveKind kind, Task& task,
                     std::span<const RankParts> parts);
  void look_for_failure();
  void fail(const std::string& what, const std::string& got, const std::string& fix);
  void throw_failure();

  const std::shared_ptr<RankMessages> messages_;
  const std::shared_ptr<Rendezvous> rendezvous_;
  const MessageCommunicatorOptions options_;

  std::mutex running_;  // one operation runs at a time
  MessageOperations operations_;

  std::mutex enqueuing_;  // guards the vectors that a call of several operands is built in
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  std::vector<ByteAccess> accesses_;

  std::mutex mutex_;  // guards all below
  /// What was ever enqueued, so that what comes again is found: streams refer to it, and so does
  /// what they have captured.
  std::unordered_map<MessageTask, std::unique_ptr<Task>, TaskHash> tasks_;
  std::optional<Diagnostic> failure_;
  std::chrono::steady_clock::time_point looked_;  // when it last looked for failures of other ranks
  std::atomic<bool> has_failed_{false};
};

}  // namespace tandem
