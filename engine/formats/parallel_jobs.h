// A few threads for work on files and large tensors between steps.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace tandem {

/// Threads that are worth while for reading, hashing and writing.
inline int file_threads() {
  return static_cast<int>(std::clamp<unsigned>(std::thread::hardware_concurrency(), 1, 4));
}

/// Calls f(0), ..., f(jobs - 1), each once, on the calling thread and up to `threads` - 1 others.
/// After the first exception no job begins any more; it is thrown when all threads are done.
template <class F>
void parallel_jobs(int threads, std::int64_t jobs, F&& f) {
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;  // guarded by mutex
  const auto work = [&] {
    for (std::int64_t job; (job = next++) < jobs;) {
      try {
        f(job);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = jobs;
      }
    }
  };
  std::vector<std::jthread> others;
  for (std::int64_t i = 1; i < std::min<std::int64_t>(threads, jobs); ++i) {
    try {
      others.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // the threads that there are do it all
    }
  }
  work();
  others.clear();
  if (failure) std::rethrow_exception(failure);
}

/// Calls make(0), ..., make(jobs - 1) as parallel_jobs does, and take(i, what make(i) returned):
/// one at a time, and in the order of the jobs.
template <class Make, class Take>
void ordered_jobs(int threads, std::int64_t jobs, Make&& make, Take&& take) {
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t turn = 0;  // guarded by mutex
  bool failed = false;    // guarded by mutex
  parallel_jobs(threads, jobs, [&](std::int64_t job) {
    try {
      auto made = make(job);
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return turn == job || failed; });
      if (failed) return;
      take(job, std::move(made));
      ++turn;
    } catch (...) {
      {
        const std::lock_guard lock(mutex);
        failed = true;
      }
      changed.notify_all();
      throw;
    }
    changed.notify_all();
  });
}

/// Calls f(first, rows) for ranges of about `range_bytes` that cover all rows.
template <class F>
void parallel_row_ranges(int threads, std::int64_t rows, std::size_t row_bytes,
                         std::size_t range_bytes, F&& f) {
  const std::int64_t range = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(range_bytes / std::max<std::size_t>(row_bytes, 1)));
  parallel_jobs(threads, (rows + range - 1) / range, [&](std::int64_t job) {
    const std::int64_t first = job * range;
    f(first, std::min(range, rows - first));
  });
}

}  // namespace tandem
