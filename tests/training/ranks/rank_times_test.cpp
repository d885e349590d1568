// Which rank the others wait for, and what the log says about it.
#include "engine/train/group/rank_times.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/training/ranks/rank_runs.h"

namespace tandem {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RankRuns;

TEST(RankTimes, TheSlowestIsNamedBesideTheMedian) {
  const SlowestRank slowest = slowest_of({0.2, 0.25, 0.5, 0.21}, {"a", "a", "b", "b"});
  EXPECT_EQ(slowest.rank, 2);
  EXPECT_EQ(slowest.machine, "b");
  EXPECT_EQ(slowest.seconds, 0.5);
  EXPECT_EQ(slowest.median, 0.21);
  EXPECT_TRUE(slowest.is_worth_telling());
  EXPECT_EQ(
      slowest.text(),
      "rank 2 (b) is the slowest: 0.500 s a step, the median 0.210 s; the others wait for it");
  EXPECT_FALSE(slowest_of({0.2, 0.21}, {"a", "a"}).is_worth_telling());
  // Steps that take no time are not worth a message.
  EXPECT_FALSE(slowest_of({0.001, 0.002, 0.001}, {"a", "a", "a"}).is_worth_telling());
}

class RankTimesTest : public testing::RankTraining {};

// Rank 1 sleeps before it takes part in each step, in which the others wait for it.
TEST_F(RankTimesTest, ARunNamesTheRankThatIsSlow) {
  const RankRuns runs = run_ranks({.ranks = 3, .keys = {"steps=3"}, .stops = [](int rank, auto) {
                                     if (rank == 1)
                                       std::this_thread::sleep_for(std::chrono::milliseconds(150));
                                     return false;
                                   }});
  ASSERT_THAT(runs.errors, Each(IsEmpty()));
  const std::vector<std::string> lines =
      testing::lines_of(runs.first().result.run_dir + "/metrics.jsonl");
  int told = 0;
  for (const std::string& line : lines) {
    const nlohmann::json json = nlohmann::json::parse(line);
    if (!json.contains("ranks.slowest")) continue;
    ++told;
    EXPECT_EQ(json["ranks.slowest"], 1) << line;
    EXPECT_GE(json["ranks.slowest_seconds"].get<double>(), 0.15) << line;
    EXPECT_LT(json["ranks.median_seconds"].get<double>(), 0.15) << line;
  }
  EXPECT_EQ(told, 3);
  const std::vector<std::string>& messages = runs.first().messages;
  EXPECT_EQ(std::count_if(messages.begin(), messages.end(),
                          [](const auto& text) { return text.starts_with("rank 1 ("); }),
            1);
}

}  // namespace
}  // namespace tandem
