// Exchanges between ranks: any number of bytes, errors of some ranks, work that takes long.
#include "engine/train/group/gathered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "engine/train/group/start_checks.h"
#include "engine/train/group/step_signals.h"
#include "tests/harness/rank_threads.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::on_rank_threads;
using testing::RankThreads;

std::string bytes_of(int rank, std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<char>(i * 31 + static_cast<std::size_t>(rank));
  return bytes;
}

TEST(GatheredTest, BytesOfAnyNumber) {
  constexpr std::size_t most = Rendezvous::most_bytes;
  const std::size_t counts[] = {0, 3 * most + 5, 17};
  on_rank_threads(3, [&](RankGroup& group) {
    const int rank = group.rank();
    for (int round = 0; round < 2; ++round) {
      const auto all =
          gathered(*group.rendezvous(), "bytes", bytes_of(rank, counts[(rank + round) % 3]));
      ASSERT_EQ(all.size(), 3u);
      for (int r = 0; r < 3; ++r)
        EXPECT_TRUE(all[static_cast<std::size_t>(r)] == bytes_of(r, counts[(r + round) % 3]));
    }
  });
}

TEST(GatheredTest, OneRanksErrorEndsAllAndIsToldOnce) {
  on_rank_threads(3, [](RankGroup& group) {
    const auto fails = [&] {
      if (group.rank() == 2)
        throw Error(ErrorKind::data, Diagnostic{.message = "a broken row", .file = "a.npz"});
    };
    try {
      on_all_ranks(*group.rendezvous(), "reading", fails);
      ADD_FAILURE() << "nothing was thrown on rank " << group.rank();
    } catch (const ErrorElsewhere& error) {
      EXPECT_GT(group.rank(), 0);
      EXPECT_EQ(error.kind(), ErrorKind::data);
    } catch (const Error& error) {
      EXPECT_EQ(group.rank(), 0);
      EXPECT_EQ(error.kind(), ErrorKind::data);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("a.npz"), HasSubstr("rank 2: a broken row")));
    }
    // All are at the same point of the run.
    EXPECT_EQ(gathered(*group.rendezvous(), "after it", "x").size(), 3u);
  });
}

TEST(GatheredTest, WhatAllRanksFindIsToldOnce) {
  on_rank_threads(3, [](RankGroup& group) {
    try {
      on_all_ranks(*group.rendezvous(), "reading",
                   [] { throw Error(ErrorKind::usage, Diagnostic{.message = "no such file"}); });
    } catch (const Error& error) {
      EXPECT_EQ(error.diagnostics().size(), 1u);
      EXPECT_THAT(error.what(), Not(HasSubstr("rank")));
      EXPECT_EQ(dynamic_cast<const ErrorElsewhere*>(&error) != nullptr, group.rank() > 0);
    }
  });
}

TEST(GatheredTest, RankZeroGoesFirst) {
  std::atomic<int> done{0};
  on_rank_threads(4, [&](RankGroup& group) {
    on_rank_0_first(*group.rendezvous(), "a table", [&] {
      if (group.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_EQ(done.load() == 0, group.rank() == 0);
      ++done;
    });
    EXPECT_EQ(from_rank_0(*group.rendezvous(), "a name",
                          [&] { return "rank " + std::to_string(group.rank()); }),
              "rank 0");
  });
  EXPECT_EQ(done, 4);
}

// An exchange takes a second at most; the work that all wait for may take longer.
TEST(GatheredTest, WhatTakesLongIsWaitedFor) {
  testing::RankThreadsOptions options;
  options.exchange_limit = std::chrono::seconds(1);
  const auto thrown = RankThreads(options).run([](RankGroup& group) {
    on_all_ranks(*group.rendezvous(), "a checkpoint", [&] {
      if (group.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1600));
    });
  });
  EXPECT_THAT(thrown, Each(std::string()));
}

TEST(GatheredTest, OneProcessDoesWithout) {
  int calls = 0;
  on_all_ranks(*one_rank(), "", [&] { ++calls; });
  on_rank_0_first(*one_rank(), "", [&] { ++calls; });
  EXPECT_EQ(from_rank_0(*one_rank(), "", [] { return std::string("own"); }), "own");
  EXPECT_EQ(calls, 2);
}

TEST(StartChecksTest, TheFirstDifferenceOfTwoRanksIsNamed) {
  on_rank_threads(3, [](RankGroup& group) {
    const bool other = group.rank() == 2;
    refuse_differences(*group.rendezvous(), {{"the version", "1", ""}});
    try {
      refuse_differences(*group.rendezvous(),
                         {{"the version", "1", ""},
                          {"the configuration", other ? "a = 1\nb = 3\n" : "a = 1\nb = 2\n",
                           "give all ranks the same file"}});
      ADD_FAILURE() << "nothing was thrown on rank " << group.rank();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("the configuration is not the same on rank 0 and rank 2"),
                        HasSubstr("b = 2"), HasSubstr("b = 3"),
                        HasSubstr("give all ranks the same file"), Not(HasSubstr("the version"))));
    }
  });
}

TEST(StepSignalsTest, SurviveTheirSum) {
  const StepSignals of_rank_0{.interrupted = true, .log = true, .save = true};
  const StepSignals of_others{.interrupted = true};
  float sum = of_rank_0.number();
  for (int rank = 1; rank < 65536; ++rank) sum += of_others.number();
  const StepSignals told = StepSignals::of_sum(sum);
  EXPECT_TRUE(told.interrupted && told.log && told.save);
  EXPECT_FALSE(told.time_is_up || told.evaluate);
  const StepSignals nothing = StepSignals::of_sum(0);
  EXPECT_FALSE(nothing.interrupted || nothing.time_is_up || nothing.log || nothing.evaluate ||
               nothing.save);
  const StepSignals time = StepSignals::of_sum(StepSignals{.time_is_up = true}.number());
  EXPECT_TRUE(time.time_is_up && !time.interrupted && !time.evaluate);
  EXPECT_TRUE(StepSignals::of_sum(StepSignals{.evaluate = true}.number()).evaluate);
}

}  // namespace
}  // namespace tandem
