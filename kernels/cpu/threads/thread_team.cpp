#include "kernels/cpu/threads/thread_team.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/threads/waiting.h"

namespace tandem {
namespace {

constexpr std::size_t cache_line = 64;

// MXCSR without its flags of what has happened: rounding, masks, denormals.
unsigned float_modes() {
#if defined(__x86_64__)
  return _mm_getcsr() & ~0x3fu;
#else
  return 0;
#endif
}

void set_float_modes([[maybe_unused]] unsigned modes) {
#if defined(__x86_64__)
  if (float_modes() != modes) _mm_setcsr(modes);
#endif
}

thread_local bool in_region = false;

struct Region {
  PartFunction f;
  int parts = 0;
  int team = 0;
  unsigned modes = 0;

  void run_share(int thread) const {
    for (int part = thread; part < parts; part += team) f(part);
  }
};

// A worker's orders, on a cache line of their own. Values of `word`: idle (nothing to do, or its
// parts are under way), ready (parts that it has not started), sleeping, stop.
struct alignas(cache_line) Mailbox {
  static constexpr std::uint32_t idle = 0, ready = 1, sleeping = 2, stop = 3;
  std::atomic<std::uint32_t> word{idle};
  const Region* region = nullptr;
};

}  // namespace

struct ThreadTeam::Impl {
  struct Worker {
    Mailbox mailbox;
    std::thread thread;
  };

  static constexpr std::uint32_t caller_sleeps = std::uint32_t{1} << 31;

  std::vector<std::unique_ptr<Worker>> workers;
  SpinTime spin_time;
  Region region;                                                 // the one under way
  WaitingForCore waiting_for_core;                               // for the calling thread
  int cores = 0;                                                 // 0: not asked yet
  alignas(cache_line) std::atomic<std::uint32_t> unfinished{0};  // shares of workers; caller_sleeps

  ~Impl() {
    for (const auto& worker : workers) post(worker->mailbox, Mailbox::stop);
    for (const auto& worker : workers) worker->thread.join();
  }

  static void post(Mailbox& mailbox, std::uint32_t word) {
    if (mailbox.word.exchange(word, std::memory_order_acq_rel) == Mailbox::sleeping) {
      wake_all(mailbox.word);
    }
  }

  // Threads of a team of at most `wanted`, the caller included; those that are missing are started.
  int start(int wanted, bool must_have_all) {
    if (!must_have_all) {
      if (cores == 0) cores = usable_cores();
      wanted = std::min(wanted, cores);
    }
    while (static_cast<int>(workers.size()) + 1 < wanted) {
      auto worker = std::make_unique<Worker>();
      const int index = static_cast<int>(workers.size()) + 1;
      sigset_t all, before;  // signals belong to the threads of the program
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
      try {
        worker->thread =
            std::thread([this, index, &mailbox = worker->mailbox] { work(index, mailbox); });
      } catch (const std::system_error&) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        if (!must_have_all) return index;
        std::fputs("tandem: the system starts no more threads\n", stderr);
        std::abort();
      }
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      workers.push_back(std::move(worker));
    }
    return wanted;
  }

  void work(int index, Mailbox& mailbox) {
    WaitingForCore waiting_for_core;
    in_region = true;  // what a worker runs is always inside of a region
    for (;;) {
      std::uint32_t word = next_word(mailbox, waiting_for_core);
      if (word == Mailbox::stop) return;
      // The caller may take the share at the same moment.
      if (!mailbox.word.compare_exchange_strong(word, Mailbox::idle, std::memory_order_acq_rel)) {
        continue;
      }
      const Region& region = *mailbox.region;
      set_float_modes(region.modes);
      region.run_share(index);
      finish_share();
    }
  }

  // Waits for a share or the end.
  std::uint32_t next_word(Mailbox& mailbox, WaitingForCore& waiting_for_core) {
    std::uint32_t word = Mailbox::idle;
    const auto has_word = [&] {
      word = mailbox.word.load(std::memory_order_acquire);
      return word != Mailbox::idle;
    };
    if (spin_until(has_word, spin_time, waiting_for_core)) return word;
    for (;;) {
      std::uint32_t idle = Mailbox::idle;
      if (!mailbox.word.compare_exchange_strong(idle, Mailbox::sleeping,
                                                std::memory_order_acq_rel) &&
          idle != Mailbox::sleeping) {
        return idle;
      }
      sleep_while(mailbox.word, Mailbox::sleeping);
    }
  }

  void finish_share() {
    const std::uint32_t before = unfinished.fetch_sub(1, std::memory_order_acq_rel);
    if (before == (caller_sleeps | 1)) wake_all(unfinished);
  }

  void start_shares() {
    const auto others = static_cast<std::size_t>(region.team - 1);
    unfinished.store(static_cast<std::uint32_t>(others), std::memory_order_relaxed);
    for (std::size_t i = 0; i < others; ++i) {
      workers[i]->mailbox.region = &region;
      post(workers[i]->mailbox, Mailbox::ready);
    }
  }

  // Computes what workers have not started.
  void take_over() {
    for (int thread = 1; thread < region.team; ++thread) {
      std::uint32_t ready = Mailbox::ready;
      if (workers[static_cast<std::size_t>(thread - 1)]->mailbox.word.compare_exchange_strong(
              ready, Mailbox::idle, std::memory_order_acq_rel)) {
        region.run_share(thread);
        unfinished.fetch_sub(1, std::memory_order_acq_rel);
      }
    }
  }

  void wait() {
    const auto is_done = [&] { return unfinished.load(std::memory_order_acquire) == 0; };
    if (spin_until(is_done, spin_time, waiting_for_core)) return;
    std::uint32_t left =
        unfinished.fetch_or(caller_sleeps, std::memory_order_acq_rel) | caller_sleeps;
    while (left != caller_sleeps) {
      sleep_while(unfinished, left);
      left = unfinished.load(std::memory_order_acquire);
    }
  }
};

ThreadTeam::ThreadTeam() : impl_(std::make_unique<Impl>()) {}
ThreadTeam::~ThreadTeam() = default;

namespace {

struct OwnTeam {
  std::unique_ptr<ThreadTeam> team;
};

thread_local OwnTeam own_team;

// A child process has the memory of a team and none of its workers.
void forget_team() {
  (void)own_team.team.release();
  in_region = false;
}

}  // namespace

ThreadTeam& ThreadTeam::of_this_thread() {
  if (!own_team.team) {
    static const int registered = pthread_atfork(nullptr, nullptr, forget_team);
    (void)registered;
    own_team.team = std::make_unique<ThreadTeam>();
  }
  return *own_team.team;
}

bool ThreadTeam::is_in_region() { return in_region; }

SpinTime& ThreadTeam::spin_time() { return impl_->spin_time; }

void ThreadTeam::run(int parts, PartFunction f) {
  const int team = in_region || parts < 2 ? 1 : impl_->start(parts, false);
  if (team == 1) {
    for (int part = 0; part < parts; ++part) f(part);
    return;
  }
  in_region = true;
  impl_->region = {f, parts, team, float_modes()};
  impl_->start_shares();
  impl_->region.run_share(0);
  impl_->take_over();
  impl_->wait();
  in_region = false;
}

void ThreadTeam::launch(int threads, PartFunction f) {
  assert(!in_region && threads > 1);
  impl_->start(threads, true);
  in_region = true;
  impl_->region = {f, threads, threads, float_modes()};
  impl_->start_shares();
}

void ThreadTeam::join() {
  impl_->wait();
  in_region = false;
}

}  // namespace tandem
