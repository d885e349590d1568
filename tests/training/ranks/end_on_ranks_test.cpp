// Which rank reports that a run on ranks has ended: exactly one.
#include "engine/train/group/end_on_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::HasSubstr;

/// What a rank sees: a failure of another one, if any.
class Seen final : public Rendezvous {
 public:
  Seen(int rank, std::optional<std::string> failure) : rank_(rank), failure_(std::move(failure)) {}
  int rank() const override { return rank_; }
  int ranks() const override { return 4; }
  std::vector<std::string> exchange(const std::string&, const std::string&) override { return {}; }
  std::optional<std::string> failure() override { return failure_; }
  void fail(const std::string& why) override { told = why; }

  std::string told;  // sent to the other ranks

 private:
  const int rank_;
  const std::optional<std::string> failure_;
};

struct Ending {
  bool is_elsewhere = false;
  std::string text, told;
};

Ending ending_of(int rank, std::optional<std::string> failure, const Diagnostic& d) {
  Seen seen(rank, std::move(failure));
  Ending ending;
  try {
    end_on_ranks(seen, Error(ErrorKind::data, d));
  } catch (const ErrorElsewhere& error) {
    ending = {true, error.what(), ""};
  } catch (const Error& error) {
    ending = {false, error.what(), ""};
  }
  ending.told = seen.told;
  return ending;
}

const Diagnostic own{.message = "row 17 has no label", .file = "train.csv"};

Diagnostic witness(const std::string& failure) {
  return {.message = "rank 0 of 4: the run cannot continue", .got = failure};
}

TEST(EndOnRanks, WhoHasTheErrorTellsIt) {
  for (const int rank : {0, 2}) {
    const Ending ending = ending_of(rank, std::nullopt, own);
    EXPECT_FALSE(ending.is_elsewhere);
    EXPECT_THAT(ending.text, HasSubstr("row 17 has no label"));
    EXPECT_THAT(ending.told, HasSubstr("row 17 has no label"));
  }
}

// Rank 0 has nothing to add to what rank 2 reports itself.
TEST(EndOnRanks, WitnessesOfAnErrorAreSilent) {
  const std::string failure = "rank 2 (node2) has ended with an error: row 17 has no label";
  for (const int rank : {0, 1, 3})
    EXPECT_TRUE(ending_of(rank, failure, witness(failure)).is_elsewhere) << rank;
  // Seen within an exchange of the rendezvous.
  const Diagnostic at_an_exchange{.message = "rank 0 of 4: " + failure + " (at 'times of steps')"};
  EXPECT_TRUE(ending_of(0, failure, at_an_exchange).is_elsewhere);
}

// Rank 0's own failure comes back to it from the others; it reports it, since no other rank does.
TEST(EndOnRanks, RankZeroTellsItsOwnFailure) {
  const std::string failure = "this rank has ended with an error: all_reduce of 'loss' failed";
  EXPECT_FALSE(ending_of(0, failure, {.message = "rank 0 of 4: " + failure}).is_elsewhere);
}

TEST(EndOnRanks, ADeathIsToldByRank0) {
  const std::string failure = "rank 2 (node2) has died: its connection has ended";
  EXPECT_FALSE(ending_of(0, failure, witness(failure)).is_elsewhere);
  for (const int rank : {1, 3})
    EXPECT_TRUE(ending_of(rank, failure, witness(failure)).is_elsewhere) << rank;
  const std::string of_rank_0 = "rank 0 (node1) has died: its connection has ended";
  EXPECT_FALSE(ending_of(1, of_rank_0, witness(of_rank_0)).is_elsewhere);
  EXPECT_TRUE(ending_of(2, of_rank_0, witness(of_rank_0)).is_elsewhere);
}

// Rank 0 reports an error of its own, whatever else has happened meanwhile.
TEST(EndOnRanks, ASecondErrorOfRank0IsTold) {
  const Ending ending = ending_of(0, "rank 2 (node2) has ended with an error: disk full", own);
  EXPECT_FALSE(ending.is_elsewhere);
  EXPECT_THAT(ending.text, HasSubstr("row 17"));
}

}  // namespace
}  // namespace tandem
