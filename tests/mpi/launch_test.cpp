// tandem launch: what it starts, when it starts again, and what it refuses. A script replaces
// mpirun in all tests but one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "kernels/mpi/join_ranks.h"
#include "tests/harness/folders.h"
#include "tests/harness/rank_environment.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

const std::string program = build_folder() + "/tandem";

struct Ended {
  int code = 0;
  std::string text;
};

Ended run(const std::string& variables, const std::string& arguments) {
  const std::string command = "env " + variables + " " + program + " " + arguments + " 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  Ended ended;
  std::array<char, 1024> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) ended.text += buffer.data();
  ended.code = WEXITSTATUS(pclose(pipe));
  return ended;
}

const std::string open_mpi = "mpirun (Open MPI) 4.1.4";

class Launch : public ::testing::Test {
 protected:
  /// Makes an mpirun that logs its arguments, does `work`, and ends with these exit codes, one
  /// after the other.
  void put_mpirun(const std::string& codes, const std::string& version = open_mpi,
                  const std::string& work = "") {
    const std::string file = folder_ / "mpirun";
    std::ofstream script(file);
    script << "#!/bin/sh\n[ \"$1\" = --version ] && { echo '" << version << "'; exit 0; }\n"
           << "echo \"$@\" >>" << std::string(folder_ / "calls") << "\n"
           << "echo \"yield=$OMPI_MCA_mpi_yield_when_idle\" >>"
           << std::string(folder_ / "environment") << "\n"
           << work << "\nset -- " << codes << "\n"
           << "shift $(($(wc -l <" << std::string(folder_ / "calls") << ") - 1))\nexit $1\n";
    script.close();
    ASSERT_EQ(chmod(file.c_str(), 0755), 0);
  }
  Ended launch(const std::string& arguments) {
    return run("PATH=" + std::string(folder_ / "") + ":/usr/bin:/bin", "launch " + arguments);
  }
  std::vector<std::string> lines(const std::string& name) const {
    std::ifstream file(folder_ / name);
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }

  TemporaryFolder folder_;
};

TEST_F(Launch, StartsRanksOfThisProgram) {
  put_mpirun("0");
  EXPECT_EQ(launch("-n 3 -- train a.toml epochs=2 --resume").code, 0);
  EXPECT_THAT(lines("calls"),
              ElementsAre(AllOf(HasSubstr("-np 3 --oversubscribe --bind-to none "),
                                HasSubstr("/tandem train a.toml epochs=2 --resume"))));
  EXPECT_THAT(lines("environment"), ElementsAre("yield=1"));
}

TEST_F(Launch, TakesTheCommandWithoutDashes) {
  put_mpirun("0");
  EXPECT_EQ(launch("-n 2 train a.toml --dry-run --run-dir x").code, 0);
  EXPECT_THAT(lines("calls"), ElementsAre(HasSubstr("/tandem train a.toml --dry-run --run-dir x")));
}

TEST_F(Launch, AnotherMpiGetsNoOptionsOfOpenMpis) {
  put_mpirun("0", "HYDRA build details: Version: 4.0.2");
  EXPECT_EQ(launch("-n 2 -- train a.toml").code, 0);
  EXPECT_THAT(lines("calls"), ElementsAre(::testing::StartsWith("-np 2 /")));
}

TEST_F(Launch, RestartsResumeTheRunThatWasKilledOrFailed) {
  put_mpirun("137 1 0", open_mpi, "echo 'run /runs/a-0007' >>$TANDEM_LAUNCH_NOTE");
  const Ended ended = launch("-n 2 --restarts 5 -- train a.toml");
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.text, AllOf(HasSubstr("exit code 137; try 1 of 5 resumes /runs/a-0007"),
                                HasSubstr("exit code 1; try 2 of 5 resumes /runs/a-0007")));
  const std::vector<std::string> calls = lines("calls");
  ASSERT_THAT(calls, SizeIs(3));
  EXPECT_THAT(calls[0], HasSubstr("/tandem train a.toml"));
  EXPECT_THAT(calls[1], HasSubstr("/tandem train --resume --run-dir /runs/a-0007 a.toml"));
  EXPECT_EQ(calls[2], calls[1]);
}

// The command has -n, the file and all keys. None is printed if there is no checkpoint to resume.
TEST_F(Launch, ARunThatEndsEarlySaysHowItGoesOn) {
  const std::string run = folder_ / "a b-0001";
  put_mpirun("137", open_mpi, "echo 'run " + run + "' >>$TANDEM_LAUNCH_NOTE");
  EXPECT_THAT(launch("-n 3 -- train a.toml epochs=2").text, Not(HasSubstr("continue with")));
  std::filesystem::remove(folder_ / "calls");
  std::filesystem::create_directories(run + "/checkpoints/step-00000009");
  const std::string before = program + " launch -n 3 -- train";
  EXPECT_THAT(launch("-n 3 -- train a.toml epochs=2").text,
              HasSubstr("tandem launch: continue with: " + before + " --resume --run-dir '" + run +
                        "' a.toml epochs=2\n"));
  std::filesystem::remove(folder_ / "calls");
  EXPECT_THAT(launch("-n 3 -- train a.toml --run-dir b --resume").text,
              HasSubstr("continue with: " + before + " a.toml --run-dir b --resume\n"));
  std::filesystem::remove(folder_ / "calls");
  EXPECT_THAT(launch("-n 3 -- eval a").text, Not(HasSubstr("continue with")));
}

TEST_F(Launch, RestartsKeepADirectoryThatIsNamed) {
  put_mpirun("1 0", open_mpi, "echo 'run /x/b' >>$TANDEM_LAUNCH_NOTE");
  EXPECT_EQ(launch("-n 2 --restarts 5 -- train a.toml --run-dir b").code, 0);
  EXPECT_THAT(lines("calls"), ElementsAre(HasSubstr("/tandem train a.toml --run-dir b"),
                                          HasSubstr("/tandem train --resume a.toml --run-dir b")));
}

// A run directory with that name would belong to another run.
TEST_F(Launch, RestartsBeginAgainWhereThereWasNoRunDirectory) {
  put_mpirun("137 0");
  const Ended ended = launch("-n 2 --restarts 5 -- train a.toml");
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.text, HasSubstr("try 1 of 5 starts it again: there was no run directory yet"));
  EXPECT_THAT(lines("calls"),
              ElementsAre(HasSubstr("/tandem train a.toml"),
                          AllOf(HasSubstr("/tandem train a.toml"), Not(HasSubstr("--resume")))));
}

// After a request to stop: only 130 and 143 say that everything is saved.
TEST_F(Launch, AWishThatFailsIsNoWishFulfilled) {
  const std::string up = "printf 'up\\nup\\n' >>$TANDEM_LAUNCH_NOTE\n",
                    asks = "trap '' TERM USR1; kill -TERM $PPID; sleep 0.2\n";
  for (const auto& [code, expected] : {std::pair{"1", 1}, {"137", 137}, {"138", 143}, {"0", 143}}) {
    put_mpirun(code, open_mpi, up + asks);
    EXPECT_EQ(launch("-n 2 --restarts 3 -- train a.toml").code, expected) << code;
    EXPECT_THAT(lines("calls"), SizeIs(1)) << code;
    std::remove(std::string(folder_ / "calls").c_str());
  }
}

// mpirun itself exits with 1 if it got the signal, too, or if ranks had nothing to save yet.
TEST_F(Launch, AWishThatIsFulfilledTellsOfItself) {
  const std::string asks = "trap '' TERM USR1; kill -TERM $PPID; sleep 0.2\n";
  put_mpirun("1", open_mpi, "printf 'up\\nup\\nsaved\\n' >>$TANDEM_LAUNCH_NOTE\n" + asks);
  EXPECT_EQ(launch("-n 2 -- train a.toml").code, 143);
  std::remove(std::string(folder_ / "calls").c_str());
  put_mpirun("1", open_mpi, asks);
  EXPECT_EQ(launch("-n 2 -- train a.toml").code, 143);
}

// Ranks that do not catch signals yet would die of a request to stop, or miss it.
TEST_F(Launch, AWishGoesToRanksThatAreUp) {
  const std::string traps = "trap 'echo TERM >>$0.got' TERM; trap 'echo USR1 >>$0.got' USR1\n",
                    asks = "kill -INT $PPID; sleep 0.3; sleep 0.3";
  put_mpirun("0", open_mpi, traps + asks);
  EXPECT_EQ(launch("-n 2 -- train a.toml").code, 130);
  put_mpirun("0", open_mpi, traps + "printf 'up\\nup\\n' >>$TANDEM_LAUNCH_NOTE\n" + asks);
  std::remove(std::string(folder_ / "calls").c_str());
  EXPECT_EQ(launch("-n 2 -- train a.toml").code, 130);
  EXPECT_THAT(lines("mpirun.got"), ElementsAre("TERM", "USR1"));
}

TEST_F(Launch, RestartsMayTakeFewerRanks) {
  put_mpirun("137 137 137 0");
  EXPECT_EQ(launch("-n 3 --restarts 5 --least 2 -- train a.toml").code, 0);
  EXPECT_THAT(lines("calls"), ElementsAre(HasSubstr("-np 3 "), HasSubstr("-np 2 "),
                                          HasSubstr("-np 2 "), HasSubstr("-np 2 ")));
}

TEST_F(Launch, RestartsEndAndDoNotRepeatMistakes) {
  put_mpirun("137 137 137");
  EXPECT_EQ(launch("-n 2 --restarts 1 -- train a.toml").code, 137);
  EXPECT_THAT(lines("calls"), SizeIs(2));
  for (const char* code : {"2", "3", "4", "5", "143"}) {  // bad files, data, losses; interrupted
    std::remove(std::string(folder_ / "calls").c_str());
    put_mpirun(code);
    EXPECT_EQ(launch("-n 2 --restarts 3 -- train a.toml").code, std::atoi(code));
    EXPECT_THAT(lines("calls"), SizeIs(1)) << code;
  }
}

TEST_F(Launch, WhatCannotBe) {
  put_mpirun("0");
  const std::map<std::string, std::string> refused{
      {"-n 2 -- inspect a.onnx", "no command that works as several processes: got inspect"},
      {"-n 2 --least 1 -- train a.toml", "--least: nothing is restarted"},
      {"-n 2", "there is no command"},
      {"-n 0 -- train a.toml", "0"},
      {"-- train a.toml", "--ranks is required"}};
  for (const auto& [arguments, why] : refused) {
    const Ended ended = launch(arguments);
    EXPECT_EQ(ended.code, 2) << arguments;
    EXPECT_THAT(ended.text, HasSubstr(why)) << arguments;
  }
  EXPECT_THAT(lines("calls"), SizeIs(0));
  const Ended without = run("PATH=/nowhere", "launch -n 2 -- train a.toml");
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.text, AllOf(HasSubstr("needs mpirun, which is not in PATH"),
                                  HasSubstr("apt-get install openmpi-bin")));
  const Ended nested =
      run("PMI_RANK=1 PMI_SIZE=2 PATH=" + std::string(folder_ / ""), "launch -n 2 -- train a.toml");
  EXPECT_EQ(nested.code, 2);
  EXPECT_THAT(nested.text, HasSubstr("tandem launch works only as one process: got rank 1 of 2"));
}

TEST(StartedAsRanks, CommandsOfOneProcessRefuse) {
  for (const char* command : {"config keys", "inspect a.onnx", "data check a.toml"}) {
    const Ended ended = run("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4", command);
    EXPECT_EQ(ended.code, 2) << command;
    EXPECT_THAT(ended.text, AllOf(HasSubstr("works only as one process: got rank 1 of 4"),
                                  HasSubstr("start it without mpirun")));
  }
  EXPECT_EQ(run("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", "--version").code, 0);
  const Ended other = run("RANK=0 WORLD_SIZE=4",
                          "train " + source_folder() + "/models/digits/train.toml --dry-run");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.text, HasSubstr("PyTorch's torchrun"));
}

class Launched : public ::testing::Test {
 protected:
  void SetUp() override {
    if (mpi_report().launcher.empty()) GTEST_SKIP() << "there is no mpirun (openmpi-bin)";
    set_rank_environment();
  }
};

TEST_F(Launched, TwoRanksTrain) {
  const TemporaryFolder folder;
  const Ended ended =
      run("OMP_WAIT_POLICY=passive",
          "launch -n 2 -- train " + source_folder() + "/models/digits/train.toml --run-dir " +
              std::string(folder / "run") + " steps=6 batch_size=32 'log.every=1 step'");
  EXPECT_EQ(ended.code, 0) << ended.text;
  std::ifstream file(folder / "run/metrics.jsonl");
  int steps = 0;
  for (std::string line; std::getline(file, line);)
    steps += line.find("\"loss\"") != std::string::npos;
  EXPECT_GE(steps, 6) << ended.text;
}

TEST_F(Launched, ATerminationSavesOnceAndEndsAll) {
  const TemporaryFolder folder;
  const std::string log = folder / "log", run_folder = folder / "run";
  const pid_t pid = fork();
  if (pid == 0) {
    if (freopen(log.c_str(), "w", stderr) == nullptr) _exit(99);
    setenv("OMP_WAIT_POLICY", "passive", 1);
    const std::string config = source_folder() + "/models/digits/train.toml";
    execl(program.c_str(), "tandem", "launch", "-n", "2", "--", "train", config.c_str(),
          "--run-dir", run_folder.c_str(), "epochs=10000", "log.every=10 steps", nullptr);
    _exit(98);
  }
  const auto text = [&] {
    std::ifstream file(log);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  for (int i = 0; i < 600 && text().find("step 20/") == std::string::npos; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto begin = std::chrono::steady_clock::now();
  kill(pid, SIGTERM);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM) << text();
  EXPECT_THAT(text(), HasSubstr("interrupted and saved after "));
  EXPECT_TRUE(std::filesystem::exists(run_folder + "/checkpoints")) << text();
}

}  // namespace
}  // namespace tandem::testing
