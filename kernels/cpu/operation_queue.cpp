#include "kernels/cpu/operation_queue.h"

#include <algorithm>

namespace tandem {

void OperationQueue::push(const QueuedOperation& operation, std::span<void* const> pointers) {
  std::unique_lock lock(mutex_);
  less_.wait(lock, [&] { return pushed_ - popped_ < operations_.size(); });
  QueuedOperation& slot = operations_[pushed_ % operations_.size()];
  slot = operation;
  if (!pointers.empty()) {
    // This call is larger than any before. If it took more than half of the ring, the part left
    // unused at the ring's end would be too large.
    if (2 * pointers.size() > pointers_.size()) {
      less_.wait(lock, [&] { return pushed_ == popped_; });
      pointers_.resize(2 * pointers.size());
      pointers_pushed_ = pointers_popped_ = 0;
    }
    std::uint64_t first = pointers_pushed_;
    const std::uint64_t size = pointers_.size(), at = first % size;
    if (at + pointers.size() > size) first += size - at;  // in one piece
    less_.wait(lock, [&] { return first + pointers.size() - pointers_popped_ <= size; });
    slot.pointers = &pointers_[first % size];
    std::copy(pointers.begin(), pointers.end(), slot.pointers);
    pointers_pushed_ = first + pointers.size();
  }
  slot.pointers_end = pointers_pushed_;
  ++pushed_;
  more_.notify_one();
}

QueuedOperation* OperationQueue::front() {
  std::unique_lock lock(mutex_);
  more_.wait(lock, [&] { return pushed_ != popped_ || closed_; });
  return pushed_ != popped_ ? &operations_[popped_ % operations_.size()] : nullptr;
}

void OperationQueue::pop() {
  const std::lock_guard lock(mutex_);
  pointers_popped_ = operations_[popped_ % operations_.size()].pointers_end;
  ++popped_;
  less_.notify_all();
}

void OperationQueue::drain() {
  std::unique_lock lock(mutex_);
  less_.wait(lock, [&] { return pushed_ == popped_; });
}

void OperationQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  more_.notify_all();
}

}  // namespace tandem
