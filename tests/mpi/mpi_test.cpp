// Ranks that mpirun starts, each the program rank_check: operations over MPI, ranks that die, stop,
// fail and hang.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/mpi/join_ranks.h"
#include "kernels/mpi/mpi_library.h"
#include "tests/harness/rank_environment.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

struct Ran {
  std::vector<std::string> lines;  // the ranks' lines, sorted; without mpirun's own
  int code = 0;
  double seconds = 0;
};

/// `more`: options of mpirun.
Ran run_ranks(int ranks, const std::string& what, const std::string& more = "") {
  const std::string command = "timeout 100 mpirun --oversubscribe --bind-to none " + more +
                              " -np " + std::to_string(ranks) + " " + TANDEM_RANK_CHECK + " " +
                              what + " 2>/dev/null";
  const auto begin = std::chrono::steady_clock::now();
  FILE* const pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 1024> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) text += buffer.data();
  Ran ran;
  ran.code = WEXITSTATUS(pclose(pipe));
  ran.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const bool is_own = line.starts_with("error: ") || line.starts_with("bits ") ||
                        line.starts_with("rank ") || line.starts_with("all there") ||
                        line.starts_with("alone") || line.starts_with("a process trains");
    if (is_own) ran.lines.push_back(line);
  }
  std::sort(ran.lines.begin(), ran.lines.end());
  return ran;
}

class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (mpi_report().launcher.empty()) GTEST_SKIP() << "there is no mpirun (openmpi-bin)";
    set_rank_environment();
    setenv("TANDEM_MPI", TANDEM_MPI_PLUGIN, 1);
  }
  void TearDown() override { unsetenv("TANDEM_MPI"); }
};

TEST_F(Mpi, RanksFindEachOther) {
  EXPECT_THAT(run_ranks(3, "ranks").lines,
              ::testing::ElementsAre("rank 0 of 3, local 0 of 3, 3 on its cores",
                                     "rank 1 of 3, local 1 of 3, 3 on its cores",
                                     "rank 2 of 3, local 2 of 3, 3 on its cores"));
  EXPECT_THAT(run_ranks(1, "ranks").lines,
              ::testing::ElementsAre("rank 0 of 1, local 0 of 1, 1 on its cores"));
}

TEST_F(Mpi, OneGroupAtATime) {
  const Ran ran = run_ranks(2, "twice");
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.lines, AllOf(SizeIs(2), Each(AllOf(HasSubstr("with other ranks twice at a time"),
                                                     HasSubstr("2 on its cores")))));
}

TEST_F(Mpi, OperationsHaveTheNumbersOfOneProcessAndTheSameBitsEachTime) {
  for (const int ranks : {2, 3, 4, 5, 8}) {
    const Ran first = run_ranks(ranks, "operations");
    EXPECT_EQ(first.code, 0);
    ASSERT_THAT(first.lines, SizeIs(ranks));
    EXPECT_THAT(first.lines, Each(HasSubstr("bits ")));
    EXPECT_THAT(run_ranks(ranks, "operations").lines, Each(first.lines[0]));
    EXPECT_THAT(first.lines, Each(first.lines[0]));
  }
}

/// With recovery, mpirun does not end the other ranks: they must find out by themselves.
constexpr const char* alone = "--enable-recovery --mca orte_abort_on_non_zero_status 0";

TEST_F(Mpi, AKilledRankIsNamedByAllOthersSoon) {
  for (const int whom : {0, 1}) {
    const Ran ran = run_ranks(3, "killed " + std::to_string(whom), alone);
    EXPECT_LT(ran.seconds, 10);
    ASSERT_THAT(ran.lines, SizeIs(2));
    EXPECT_THAT(ran.lines, Each(AllOf(HasSubstr("the run cannot continue"),
                                      HasSubstr("rank " + std::to_string(whom) + " (127.0.0.1:"),
                                      HasSubstr("has died"))));
  }
}

TEST_F(Mpi, AKilledRankIsNamedByRanksThatAddUpInPairs) {
  const Ran ran = run_ranks(5, "killed 4 262144 halving", alone);
  EXPECT_LT(ran.seconds, 15);
  ASSERT_THAT(ran.lines, SizeIs(4));
  EXPECT_THAT(ran.lines, Each(AllOf(HasSubstr("rank 4 (127.0.0.1:"), HasSubstr("has died"))));
}

TEST_F(Mpi, AStoppedRankIsNamedWithinTenSeconds) {
  for (const int whom : {0, 2}) {
    // When the first rank ends, mpirun ends the stopped one.
    const Ran ran = run_ranks(3, "stopped " + std::to_string(whom));
    EXPECT_LT(ran.seconds, 8 + 10);
    EXPECT_NE(ran.code, 0);
    ASSERT_GE(ran.lines.size(), 1U);
    EXPECT_THAT(ran.lines, Each(AllOf(HasSubstr("rank " + std::to_string(whom) + " (127.0.0.1:"),
                                      HasSubstr("no sign of life for 8 s"))));
  }
}

TEST_F(Mpi, ARankThatEndsWithAnErrorTellsTheOthersWhy) {
  const Ran ran = run_ranks(4, "failing 2", alone);
  EXPECT_LT(ran.seconds, 10);
  ASSERT_THAT(ran.lines, SizeIs(4));
  EXPECT_THAT(ran.lines, Each(HasSubstr("row 17 has no label")));
  EXPECT_EQ(std::count(ran.lines.begin(), ran.lines.end(), "error: row 17 has no label"), 1);
  EXPECT_THAT(ran.lines[0], HasSubstr("rank 2 (127.0.0.1:"));
}

TEST_F(Mpi, ARankThatDoesNotComeToAnOperationEndsAllAfterItsLimit) {
  const Ran ran = run_ranks(2, "sleeping 1");
  EXPECT_LT(ran.seconds, 15);
  ASSERT_GE(ran.lines.size(), 1U);
  EXPECT_THAT(ran.lines[0], AllOf(HasSubstr("all_reduce of 'gradient' (100000 float32, maximum)"),
                                  HasSubstr("it was not done within 3 s")));
}

TEST_F(Mpi, ALongPauseOfOneRankIsNoSilence) {
  const Ran ran = run_ranks(2, "patient 0");  // 12 s
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.lines, AllOf(SizeIs(2), Each(HasSubstr("bits "))));
}

TEST_F(Mpi, LongMoreThanTwoGigabytesAreMoved) {
  EXPECT_THAT(run_ranks(2, "large").lines, AllOf(SizeIs(2), Each("all there")));
}

TEST_F(Mpi, WithoutThePlugInTheErrorSaysHowToGetIt) {
  setenv("TANDEM_MPI", "/nowhere/libtandem_mpi.so", 1);
  const Ran ran = run_ranks(2, "ranks");
  EXPECT_EQ(ran.code, 2);
  ASSERT_GE(ran.lines.size(), 1U);
  EXPECT_THAT(ran.lines[0], AllOf(HasSubstr("several processes need MPI"),
                                  HasSubstr("there is no /nowhere/libtandem_mpi.so"),
                                  HasSubstr("apt-get install libopenmpi-dev openmpi-bin")));
}

TEST_F(Mpi, ALauncherWhoseMpiIsAnotherOneIsRefused) {
  setenv("PMI_RANK", "0", 1);
  setenv("PMI_SIZE", "3", 1);
  const std::string command = std::string(TANDEM_RANK_CHECK) + " ranks 2>/dev/null";
  FILE* const pipe = popen(command.c_str(), "r");
  std::array<char, 2048> line{};
  EXPECT_NE(std::fgets(line.data(), line.size(), pipe), nullptr);
  EXPECT_EQ(WEXITSTATUS(pclose(pipe)), 2);
  unsetenv("PMI_RANK");
  unsetenv("PMI_SIZE");
  EXPECT_THAT(line.data(), AllOf(HasSubstr("rank 0 of 3: MPI has started another number of ranks"),
                                 HasSubstr("got 1"), HasSubstr("srun --mpi=pmix")));
}

TEST(MpiLibrary, FilesThatCannotBeUsed) {
  const MpiLibrary absent = open_mpi_library({"/nowhere/a.so", "/nowhere/b.so"});
  EXPECT_EQ(absent.functions, nullptr);
  EXPECT_EQ(absent.problem, "there is no /nowhere/a.so, no /nowhere/b.so");
  EXPECT_THAT(absent.fix, AllOf(HasSubstr("the Debian package libtandem has it"),
                                HasSubstr("a Python wheel, which has none")));
  const MpiLibrary foreign = open_mpi_library({TANDEM_RANK_CHECK});
  EXPECT_EQ(foreign.functions, nullptr);
  EXPECT_THAT(foreign.problem, HasSubstr("rank_check cannot be opened: "));
  EXPECT_THAT(foreign.fix,
              AllOf(HasSubstr("apt-get install openmpi-bin"), Not(HasSubstr("build"))));
}

TEST(MpiLibrary, SaysWhichMpiItIs) {
  const MpiLibrary library = open_mpi_library({TANDEM_MPI_PLUGIN});
  ASSERT_NE(library.functions, nullptr) << library.problem;
  EXPECT_THAT(library.functions->library(), HasSubstr("MPI"));
}

}  // namespace
}  // namespace tandem::testing
