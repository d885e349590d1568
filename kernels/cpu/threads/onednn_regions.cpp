#include "kernels/cpu/threads/onednn_regions.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "kernels/cpu/threads/library_calls.h"
#include "kernels/cpu/threads/thread_team.h"
#include "kernels/cpu/threads/waiting.h"

namespace tandem {
namespace {

// A region under way, in the memory of the thread that started it.
struct OneDnnRegion {
  void (*work)(void*) = nullptr;
  void* data = nullptr;
  int threads = 1;
  SpinTime* spin_time = nullptr;
  std::atomic<std::uint32_t> arrived{0}, barriers{0};  // at the next barrier; barriers passed
  std::atomic<int> sleepers{0};

  void operator()(int part);

  void wait_for_all(WaitingForCore& waiting_for_core) {
    const std::uint32_t passed = barriers.load(std::memory_order_acquire);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 ==
        static_cast<std::uint32_t>(threads)) {
      arrived.store(0, std::memory_order_relaxed);
      barriers.store(passed +
                     1);  // before the look at sleepers, as theirs are before the look at barriers
      if (sleepers.load() > 0) wake_all(barriers);
      return;
    }
    const auto is_over = [&] { return barriers.load(std::memory_order_acquire) != passed; };
    if (spin_until(is_over, *spin_time, waiting_for_core)) return;
    sleepers.fetch_add(1);
    while (!is_over()) sleep_while(barriers, passed);
    sleepers.fetch_sub(1);
  }
};

// Where the calling thread is.
struct Place {
  OneDnnRegion* region = nullptr;  // null: outside of oneDNN's regions
  int index = 0;
  WaitingForCore waiting_for_core;
  // The static loop under way: iterations, and the round of chunks that comes next.
  long start = 0, step = 1, count = 0, chunk = 0, round = 0;
};

thread_local Place place;
thread_local OneDnnRegion own_region;
thread_local int onednn_threads = 0;  // 0: no OneDnnTeam

void OneDnnRegion::operator()(int part) {
  place.region = this;
  place.index = part;
  work(data);
  place.region = nullptr;
  place.index = 0;
}

int max_threads() { return onednn_threads > 0 ? onednn_threads : omp_get_max_threads(); }
int num_threads() { return place.region != nullptr ? place.region->threads : 1; }
int thread_num() { return place.index; }
int in_parallel() { return ThreadTeam::is_in_region() ? 1 : 0; }

// The caller of parallel_start computes its own part between the two calls.
void parallel_start(void (*work)(void*), void* data, unsigned wanted) {
  const int threads = wanted == 0 ? max_threads() : static_cast<int>(wanted);
  if (threads < 2 || ThreadTeam::is_in_region()) return;
  ThreadTeam& team = ThreadTeam::of_this_thread();
  own_region.work = work;
  own_region.data = data;
  own_region.threads = threads;
  own_region.spin_time = &team.spin_time();
  place.region = &own_region;
  place.index = 0;
  team.launch(threads, PartFunction(own_region));
}

void parallel_end() {
  if (place.region != &own_region) return;  // the region had one thread only
  ThreadTeam::of_this_thread().join();
  place.region = nullptr;
}

void barrier() {
  if (place.region != nullptr) place.region->wait_for_all(place.waiting_for_core);
}

// schedule(static[, chunk]) of OpenMP: without a chunk each thread has neighbouring iterations,
// their numbers differing by one at most.
bool loop_next(long* begin, long* end) {
  const long threads = num_threads(), index = place.index;
  long first = 0, last = 0;
  if (place.chunk == 0) {
    if (place.round > 0) return false;
    const long each = place.count / threads, more = place.count % threads;
    first = index * each + std::min(index, more);
    last = first + each + (index < more ? 1 : 0);
  } else {
    first = (place.round * threads + index) * place.chunk;
    last = std::min(first + place.chunk, place.count);
  }
  ++place.round;
  if (first >= last) return false;
  *begin = place.start + first * place.step;
  *end = place.start + last * place.step;
  return true;
}

bool loop_start(long start, long end, long step, long chunk, long* begin, long* part_end) {
  place.start = start;
  place.step = step;
  place.count = std::max(0L, (end - start + step - (step > 0 ? 1 : -1)) / step);
  place.chunk = chunk;
  place.round = 0;
  return loop_next(begin, part_end);
}

void loop_end() {}

template <class F>
ReplacedCall call(const char* name, F* function) {
  return {name, reinterpret_cast<void*>(function)};
}

bool use_own_threads() {
  const ReplacedCall calls[] = {
      call("GOMP_parallel_start", parallel_start),
      call("GOMP_parallel_end", parallel_end),
      call("GOMP_barrier", barrier),
      call("GOMP_loop_static_start", loop_start),
      call("GOMP_loop_static_next", loop_next),
      call("GOMP_loop_end_nowait", loop_end),
      call("omp_get_max_threads", max_threads),
      call("omp_get_num_threads", num_threads),
      call("omp_get_thread_num", thread_num),
      call("omp_in_parallel", in_parallel),
  };
  return replace_library_calls("libdnnl.so", calls, {"GOMP_", "omp_"});
}

}  // namespace

bool OneDnnTeam::has_own_threads() {
  static const bool has = use_own_threads();
  return has;
}

OneDnnTeam::OneDnnTeam(int threads)
    : before_(has_own_threads() ? onednn_threads : omp_get_max_threads()) {
  if (has_own_threads()) {
    onednn_threads = threads;
  } else if (threads != before_) {
    omp_set_num_threads(threads);
  }
}

OneDnnTeam::~OneDnnTeam() {
  if (has_own_threads()) {
    onednn_threads = before_;
  } else if (omp_get_max_threads() != before_) {
    omp_set_num_threads(before_);
  }
}

}  // namespace tandem
