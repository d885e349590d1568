// Work on a team of threads: every part runs once, whatever the threads are doing.
#include "kernels/cpu/threads/thread_team.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/threads/library_calls.h"
#include "kernels/cpu/threads/onednn_regions.h"
#include "kernels/cpu/threads/waiting.h"

namespace tandem {
namespace {

using ::testing::Each;

std::vector<int> runs_of_parts(int parts) {
  std::vector<std::atomic<int>> runs(static_cast<std::size_t>(parts));
  parallel_parts(parts, [&](int part) { ++runs[static_cast<std::size_t>(part)]; });
  return {runs.begin(), runs.end()};
}

TEST(ThreadTeam, RunsEveryPartOnce) {
  for (int parts = 0; parts < 40; ++parts) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      ASSERT_THAT(runs_of_parts(parts), Each(1)) << parts << " parts";
    }
  }
}

// A hundred thousand short regions: work is posted, taken over and awaited in every order that the
// scheduler produces.
TEST(ThreadTeam, LosesNoPartOfShortRegions) {
  std::int64_t sum = 0;
  constexpr int regions = 100'000;
  for (int i = 0; i < regions; ++i) {
    std::int64_t parts[3] = {};
    parallel_parts(3, [&](int part) { parts[part] = part + i; });
    sum += parts[0] + parts[1] + parts[2];
  }
  EXPECT_EQ(sum, std::int64_t{3} * regions * (regions - 1) / 2 + std::int64_t{3} * regions);
}

TEST(ThreadTeam, WorkersSleepBetweenRegionsAndWakeUp) {
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // longer than any thread spins
    ASSERT_THAT(runs_of_parts(2), Each(1));
  }
}

// The caller sleeps as well if its own part is short.
TEST(ThreadTeam, WaitsForSlowParts) {
  if (usable_cores() < 2) GTEST_SKIP() << "one core only";
  for (int i = 0; i < 5; ++i) {
    std::atomic<int> started{0}, done{0};
    parallel_parts(2, [&](int part) {
      ++started;
      while (started < 2) std::this_thread::yield();  // each has its own thread
      if (part == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ++done;
    });
    ASSERT_EQ(done, 2);
  }
}

TEST(ThreadTeam, ARegionInsideOfARegionIsTheThreadsOwn) {
  std::vector<std::set<std::thread::id>> threads(4);
  parallel_parts(4, [&](int part) {
    EXPECT_TRUE(ThreadTeam::is_in_region());
    parallel_parts(3, [&](int) {
      threads[static_cast<std::size_t>(part)].insert(std::this_thread::get_id());
    });
  });
  EXPECT_FALSE(ThreadTeam::is_in_region());
  for (const auto& ids : threads) EXPECT_EQ(ids.size(), 1u);
}

TEST(ThreadTeam, HasNoMoreThreadsThanCores) {
  std::mutex mutex;
  std::set<std::thread::id> ids;
  for (int i = 0; i < 100; ++i) {
    parallel_parts(4 * usable_cores(), [&](int) {
      const std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    });
  }
  EXPECT_LE(ids.size(), static_cast<std::size_t>(usable_cores()));
}

TEST(ThreadTeam, TeamsOfSeveralThreadsWorkAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        std::atomic<int> sum{0};
        parallel_parts(5, [&](int part) { sum += part; });
        if (sum != 10) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadTeam, LaunchedPartsRunAtTheSameTime) {
  ThreadTeam& team = ThreadTeam::of_this_thread();
  for (const int threads : {2, 3, 2 * usable_cores() + 1}) {
    std::atomic<int> arrived{0};
    auto part = [&](int) {
      ++arrived;
      while (arrived < threads) std::this_thread::yield();
    };
    team.launch(threads, PartFunction(part));
    part(0);
    team.join();
    EXPECT_EQ(arrived, threads);
  }
}

TEST(ThreadTeam, AChildProcessStartsItsOwn) {
  ASSERT_THAT(runs_of_parts(2), Each(1));
  const pid_t child = ::fork();
  if (child == 0) {
    const std::vector<int> runs = runs_of_parts(2);
    ::_exit(runs == std::vector<int>{1, 1} ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SpinTime, IsShortWhileTheCoresAreCrowded) {
  SpinTime time;
  EXPECT_EQ(time.nanoseconds(1000), SpinTime::quiet_ns);
  time.set_crowded(5000);
  EXPECT_EQ(time.nanoseconds(4999), SpinTime::crowded_ns);
  EXPECT_EQ(time.nanoseconds(5000), SpinTime::quiet_ns);
}

TEST(SpinTime, IsShortBetweenStepsThatAskForIt) {
  SpinTime time;
  time.set_resting(true);
  EXPECT_EQ(time.nanoseconds(1000), SpinTime::crowded_ns);
  time.set_resting(false);
  EXPECT_EQ(time.nanoseconds(1000), SpinTime::quiet_ns);
}

// A wait that began before the rest ends soon after it began.
TEST(SpinTime, ARestEndsAWaitThatIsUnderWay) {
  SpinTime time;
  WaitingForCore thread;
  std::atomic<int> looks{0};
  const auto never = [&] {
    if (++looks == 100) time.set_resting(true);
    return false;
  };
  const std::int64_t begin = steady_ns();
  EXPECT_FALSE(spin_until(never, time, thread));
  EXPECT_GE(steady_ns() - begin, SpinTime::crowded_ns);
}

// If there are more threads than cores, threads wait for cores and this is seen.
TEST(SpinTime, SeesThreadsThatWaitForCores) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> loops;
  for (int i = 0; i < 2 * usable_cores(); ++i) {
    loops.emplace_back([&] {
      while (!stop) spin_pause();
    });
  }
  SpinTime time;
  WaitingForCore thread;
  const std::int64_t begin = steady_ns();
  std::int64_t budget = thread.report(time, begin);
  if (budget == SpinTime::unknown_ns) {
    stop = true;
    for (std::thread& loop : loops) loop.join();
    GTEST_SKIP() << "the system does not tell how long threads wait for a core";
  }
  while (budget != SpinTime::crowded_ns && steady_ns() - begin < 2'000'000'000) {
    budget = thread.report(time, steady_ns());
  }
  stop = true;
  for (std::thread& loop : loops) loop.join();
  EXPECT_EQ(budget, SpinTime::crowded_ns);
}

// ---------------------------------------------------------------- oneDNN

#if defined(__x86_64__)

TEST(OneDnnTeam, ComputesOnTheTeam) { EXPECT_TRUE(OneDnnTeam::has_own_threads()); }

#endif

TEST(ReplaceLibraryCalls, ChangesNothingWhereAFunctionIsNotReplaced) {
  EXPECT_FALSE(replace_library_calls("libdnnl.so", {}, {"GOMP_", "omp_"}));
  EXPECT_FALSE(replace_library_calls("libnosuchlibrary.so", {}, {"GOMP_"}));
}

}  // namespace
}  // namespace tandem
