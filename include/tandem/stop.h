// Asking work that takes long to stop.
#pragma once

#include <atomic>
#include <memory>

namespace tandem::api::inline v1 {

/// A request to stop that copies share: one copy goes into the options of a call or of a Trainer, the other stays with
/// the code that may ask. It cannot be taken back; work that is to continue later needs a new token. Only holders of a
/// copy see the request.
class StopToken {
 public:
  StopToken() : asked_(std::make_shared<std::atomic<bool>>(false)) {}  // no stop was requested yet
  StopToken(const StopToken&) = default;  // also for moves, so that every token stays valid
  StopToken& operator=(const StopToken&) = default;
  /// From any thread, or in a signal handler on a token that outlives it.
  void request_stop() const noexcept { asked_->store(true, std::memory_order_relaxed); }
  bool stop_requested() const noexcept { return asked_->load(std::memory_order_relaxed); }

 private:
  static_assert(std::atomic<bool>::is_always_lock_free);  // what signal handlers need
  std::shared_ptr<std::atomic<bool>> asked_;
};

}  // namespace tandem::api::inline v1
