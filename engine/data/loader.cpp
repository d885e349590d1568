#include "engine/data/loader.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "engine/graph/error.h"

namespace tandem {

SampleShare share_of(std::int64_t count, const RankPlace& place) {
  const std::int64_t rank = place.rank, ranks = place.ranks;
  assert(rank >= 0 && rank < ranks);
  const std::int64_t each = count / ranks, larger = count % ranks;
  return {rank * each + std::min(rank, larger), each + (rank < larger ? 1 : 0)};
}

std::int64_t steps_per_epoch(std::int64_t samples, std::int64_t batch_size, bool drop_last) {
  return samples / batch_size + (!drop_last && samples % batch_size != 0 ? 1 : 0);
}

std::optional<StepsTaken> after_steps(DataPosition start, std::uint64_t steps, std::int64_t samples,
                                      std::int64_t batch_size, bool drop_last) {
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  const std::int64_t an_epoch = steps_per_epoch(samples, batch_size, drop_last);
  if (an_epoch < 1 || start.sample < 0 || start.sample >= samples) return std::nullopt;
  StepsTaken taken{start, 0};
  if (steps == 0) return taken;
  const std::int64_t base = start.sample % batch_size;
  const std::int64_t usable =
      drop_last ? base + (samples - base) / batch_size * batch_size : samples;
  const std::int64_t left = std::max<std::int64_t>(0, usable - start.sample);
  const std::uint64_t of_epoch =
      static_cast<std::uint64_t>(left / batch_size + (left % batch_size != 0 ? 1 : 0));
  if (steps >= of_epoch) {  // its rest, then whole epochs
    steps -= of_epoch;
    const auto epochs = steps / static_cast<std::uint64_t>(an_epoch);
    const std::int64_t used = drop_last ? samples / batch_size * batch_size : samples;
    std::uint64_t seen = 0;
    if (__builtin_mul_overflow(epochs, static_cast<std::uint64_t>(used), &seen) || seen > most ||
        epochs > most || start.epoch > static_cast<std::int64_t>(most))
      return std::nullopt;
    taken.samples = static_cast<std::uint64_t>(left) + seen;
    taken.end = {start.epoch + 1 + static_cast<std::int64_t>(epochs), 0};
    steps %= static_cast<std::uint64_t>(an_epoch);
  }
  const std::int64_t more = static_cast<std::int64_t>(steps) * batch_size;  // within the epoch
  taken.end.sample += more;
  taken.samples += static_cast<std::uint64_t>(more);
  return taken;
}

std::optional<MicroBatch> micro_batch_at(DataPosition at, std::int64_t samples,
                                         const LoaderOptions& options) {
  const std::int64_t batch = options.batch_size;
  // An epoch that is resumed with another batch size has its steps where it was resumed.
  const auto base_of = [&](std::int64_t epoch) {
    return epoch == options.start.epoch ? options.start.sample % batch : 0;
  };
  const auto usable_of = [&](std::int64_t epoch) {
    const std::int64_t base = base_of(epoch);
    return options.drop_last ? base + (samples - base) / batch * batch : samples;
  };
  if (at.sample >= usable_of(at.epoch)) at = {at.epoch + 1, 0};
  if (options.epochs >= 0 && at.epoch >= options.epochs) return std::nullopt;
  const std::int64_t base = base_of(at.epoch), usable = usable_of(at.epoch);
  if (at.sample >= usable) return std::nullopt;  // no whole batch in an epoch
  std::int64_t step_begin = 0, step_end = base;  // before base: what another batch size left
  if (at.sample >= base) {
    step_begin = base + (at.sample - base) / batch * batch;
    step_end = std::min(step_begin + batch, usable);
  }
  MicroBatch micro_batch;
  micro_batch.start = at;
  micro_batch.count = std::min(options.micro_batch_size, step_end - at.sample);
  micro_batch.own = share_of(micro_batch.count, options.place);
  micro_batch.index = (at.sample - step_begin) / options.micro_batch_size;
  micro_batch.step_count = step_end - step_begin;
  micro_batch.end = {at.epoch, at.sample + micro_batch.count};
  micro_batch.end_of_step = micro_batch.end.sample == step_end;
  micro_batch.end_of_epoch = micro_batch.end.sample >= usable;
  if (micro_batch.end_of_epoch) micro_batch.end = {at.epoch + 1, 0};
  return micro_batch;
}

void LoadTimes::add(const StageClock::Seconds& seconds) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < seconds.size(); ++i) seconds_[i] += seconds[i];
}

StageClock::Seconds LoadTimes::seconds() const {
  const std::lock_guard lock(mutex_);
  return seconds_;
}

struct Loader::Impl {
  /// A micro-batch on its way. Threads fill it together, a piece of its samples each.
  struct Slot {
    MicroBatch micro_batch;
    bool ready = false;
    std::exception_ptr error;         // thrown by the first piece that failed
    std::int64_t failed = 0;          // that piece
    std::vector<void*> to;            // by field of the options
    std::int64_t pieces = 0;          // 0: no thread may fill it yet
    std::int64_t next = 0, done = 0;  // pieces that were taken, that are filled
  };

  std::shared_ptr<const DataSource> source;
  LoaderOptions options;
  std::shared_ptr<OpenEpochs> epochs;
  SlotFunction slot_of;

  std::mutex mutex;  // guards what follows
  std::condition_variable filled, freed;
  std::vector<Slot> ring;
  DataPosition cursor;
  std::uint64_t claimed = 0, consumed = 0, released = 0;
  bool finished = false, stopping = false;
  double waited = 0;

  std::vector<std::thread> threads;

  // The slot of the micro-batch that comes next, filled or failed; null after the last one.
  Slot* wait_for_next(std::unique_lock<std::mutex>& lock) {
    Slot& slot = ring[consumed % ring.size()];
    const auto arrived = [&] { return slot.ready && slot.micro_batch.ticket == consumed; };
    const auto over = [&] { return finished && consumed == claimed; };
    if (!arrived() && !over()) {
      const auto start = std::chrono::steady_clock::now();
      filled.wait(lock, [&] { return arrived() || over(); });
      waited += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    return arrived() ? &slot : nullptr;
  }

  /// Samples `begin` to `end` - 1 of the share.
  void fill(const Slot& slot, std::int64_t begin, std::int64_t end) {
    const MicroBatch& micro_batch = slot.micro_batch;
    const std::shared_ptr<const EpochSamples> epoch = epochs->of(micro_batch.start.epoch);
    const auto first =
        static_cast<std::size_t>(micro_batch.start.sample + micro_batch.own.first + begin);
    const auto count = static_cast<std::size_t>(end - begin);
    const auto samples = std::span(epoch->samples).subspan(first, count);
    const Augmentation augmentation =
        Augmentation{options.seed, micro_batch.start.epoch, epoch->repeats}.part(first, count);
    const DataSource& from = source_of(micro_batch);
    std::optional<StageClock> clock;
    if (options.times != nullptr) clock.emplace();
    for (std::size_t i = 0; i < options.fields.size(); ++i) {
      const int field = options.fields[i];
      const std::size_t bytes = from.fields()[static_cast<std::size_t>(field)].sample.bytes();
      auto* to = static_cast<std::uint8_t*>(slot.to[i]) + static_cast<std::size_t>(begin) * bytes;
      from.fill(field, samples, options.augment ? &augmentation : nullptr, to);
    }
    if (clock) options.times->add(clock->seconds());
  }

  const DataSource& source_of(const MicroBatch& micro_batch) const {
    if (micro_batch.length == 0) return *source;
    return *options.buckets.at(micro_batch.length);
  }

  void fail(Slot& slot, std::int64_t piece, std::exception_ptr error) {
    if (!slot.error || piece < slot.failed) {
      slot.error = std::move(error);
      slot.failed = piece;
    }
    finished = true;
    freed.notify_all();
  }

  /// The earliest micro-batch that has pieces for another thread, or null.
  Slot* open_slot() {
    for (std::uint64_t ticket = consumed; ticket < claimed; ++ticket) {
      Slot& slot = ring[ticket % ring.size()];
      if (slot.micro_batch.ticket == ticket && slot.next < slot.pieces) return &slot;
    }
    return nullptr;
  }

  /// The length of the bucket of its step; an epoch with buckets begins with a whole step.
  std::int64_t length_of(const MicroBatch& micro_batch) const {
    const auto step = static_cast<std::size_t>(micro_batch.start.sample / options.batch_size);
    return epochs->of(micro_batch.start.epoch)->lengths.at(step);
  }

  /// Lets all threads fill the next micro-batch.
  void claim(std::unique_lock<std::mutex>& lock) {
    std::optional<MicroBatch> micro_batch = micro_batch_at(cursor, epochs->count(), options);
    if (!micro_batch) {
      finished = true;
      filled.notify_all();
      freed.notify_all();
      return;
    }
    micro_batch->ticket = claimed++;
    cursor = micro_batch->end;
    Slot& slot = ring[micro_batch->ticket % ring.size()];
    slot.micro_batch = *micro_batch;
    slot.ready = false;
    slot.error = nullptr;
    slot.pieces = slot.next = slot.done = 0;
    std::exception_ptr error;
    lock.unlock();
    try {
      if (!options.buckets.empty()) micro_batch->length = length_of(*micro_batch);
      for (std::size_t i = 0; i < options.fields.size(); ++i)
        slot.to[i] = slot_of(static_cast<int>(i), *micro_batch);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    slot.micro_batch.length = micro_batch->length;
    if (error) {
      fail(slot, 0, error);
      slot.ready = true;
      filled.notify_all();
      return;
    }
    slot.pieces = std::clamp<std::int64_t>(micro_batch->own.count, 1, std::max(1, options.threads));
    if (slot.pieces > 1) freed.notify_all();
  }

  void fill_piece(Slot& slot, std::unique_lock<std::mutex>& lock) {
    const std::int64_t piece = slot.next++, count = slot.micro_batch.own.count;
    const std::int64_t begin = piece * count / slot.pieces;
    const std::int64_t end = (piece + 1) * count / slot.pieces;
    std::exception_ptr error;
    lock.unlock();
    try {
      fill(slot, begin, end);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) fail(slot, piece, error);
    if (++slot.done < slot.pieces) return;
    slot.ready = true;
    filled.notify_all();
  }

  void work() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      if (Slot* slot = open_slot()) {
        fill_piece(*slot, lock);
      } else if (finished) {
        return;
      } else if (claimed - released < ring.size()) {
        claim(lock);
      } else {
        freed.wait(lock);
      }
    }
  }
};

Loader::Loader(std::shared_ptr<const DataSource> source, LoaderOptions options, SlotFunction slot)
    : impl_(std::make_unique<Impl>()) {
  assert(options.batch_size > 0 && options.micro_batch_size > 0 && options.ahead > 0);
  assert(options.threads > 0);
  Impl& impl = *impl_;
  impl.source = std::move(source);
  impl.options = std::move(options);
  impl.epochs = impl.options.order;
  if (!impl.epochs) {
    impl.epochs = std::make_shared<OpenEpochs>(
        shuffled_order(impl.source->samples(), impl.options.shuffle), impl.options.seed);
  }
  impl.slot_of = std::move(slot);
  impl.ring.resize(static_cast<std::size_t>(impl.options.ahead));
  for (Impl::Slot& slot : impl.ring) slot.to.resize(impl.options.fields.size());
  impl.cursor = impl.options.start;
  const std::int64_t samples = impl.epochs->count();
  if (steps_per_epoch(samples, impl.options.batch_size, impl.options.drop_last) == 0) {
    throw Error(ErrorKind::usage, Diagnostic{.message = "drop_last leaves no batch",
                                             .path = "data.drop_last",
                                             .expected = std::to_string(impl.options.batch_size) +
                                                         " samples at least",
                                             .got = std::to_string(samples)});
  }
  try {
    for (int i = 0; i < impl.options.threads; ++i) {
      impl.threads.emplace_back([&impl] { impl.work(); });
    }
  } catch (...) {
    stop();
    throw;
  }
}

Loader::~Loader() { stop(); }

void Loader::stop() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->freed.notify_all();
  for (std::thread& thread : impl_->threads) thread.join();
  impl_->threads.clear();
}

std::optional<MicroBatch> Loader::next() {
  Impl& impl = *impl_;
  std::unique_lock lock(impl.mutex);
  assert(impl.consumed - impl.released < impl.ring.size());  // else nothing could ever be filled
  Impl::Slot* const slot = impl.wait_for_next(lock);
  if (slot == nullptr) return std::nullopt;
  if (slot->error) std::rethrow_exception(slot->error);
  slot->ready = false;
  ++impl.consumed;
  return slot->micro_batch;
}

std::optional<MicroBatch> Loader::peek() {
  Impl& impl = *impl_;
  std::unique_lock lock(impl.mutex);
  if (impl.consumed - impl.released >= impl.ring.size()) return std::nullopt;
  const Impl::Slot* const slot = impl.wait_for_next(lock);
  if (slot == nullptr || slot->error) return std::nullopt;
  return slot->micro_batch;
}

void Loader::release(std::uint64_t ticket) {
  {
    std::lock_guard lock(impl_->mutex);
    assert(ticket < impl_->consumed);
    impl_->released = std::max(impl_->released, ticket + 1);
  }
  impl_->freed.notify_all();
}

double Loader::waited() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->waited;
}

}  // namespace tandem
