// Jobs on several threads: each once, in order where order is asked for, and failures get out.
#include "engine/formats/parallel_jobs.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <stdexcept>

namespace tandem {
namespace {

TEST(ParallelJobs, EachJobOnce) {
  for (const int threads : {1, 2, 7}) {
    std::vector<std::atomic<int>> done(100);
    parallel_jobs(threads, 100, [&](std::int64_t job) { ++done[static_cast<std::size_t>(job)]; });
    for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
    EXPECT_THROW(parallel_jobs(threads, 100,
                               [&](std::int64_t job) {
                                 if (job == 5) throw std::runtime_error("five");
                               }),
                 std::runtime_error);
  }
}

TEST(ParallelJobs, ResultsAreTakenInOrder) {
  std::vector<std::int64_t> expected(500);
  std::iota(expected.begin(), expected.end(), 0);
  for (const int threads : {1, 2, 7}) {
    std::vector<std::int64_t> taken;
    ordered_jobs(
        threads, 500,
        [](std::int64_t job) {
          if (job % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
          return job;
        },
        [&](std::int64_t job, std::int64_t made) {
          EXPECT_EQ(job, made);
          taken.push_back(made);
        });
    EXPECT_EQ(taken, expected);
  }
}

TEST(ParallelJobs, AFailureEndsThoseThatWait) {
  for (const int threads : {1, 2, 7}) {
    for (const bool takes : {false, true}) {
      std::int64_t taken = 0;
      const auto fail = [](bool now) {
        if (now) throw std::runtime_error("ten");
      };
      EXPECT_THROW(ordered_jobs(
                       threads, 200,
                       [&](std::int64_t job) {
                         fail(!takes && job == 10);
                         return job;
                       },
                       [&](std::int64_t job, std::int64_t) {
                         fail(takes && job == 10);
                         ++taken;
                       }),
                   std::runtime_error);
      EXPECT_LE(taken, 10);
    }
  }
}

}  // namespace
}  // namespace tandem
