// mpirun: several processes train as one does, end together if one of them dies, and continue from
// their checkpoint. Skipped with a message if there is no mpirun.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/formats/arrays/npy.h"
#include "kernels/mpi/join_ranks.h"
#include "tests/harness/folders.h"
#include "tests/harness/program.h"
#include "tests/harness/rank_environment.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::program;
using testing::TemporaryFolder;
using Clock = std::chrono::steady_clock;

const std::string digits = source_folder() + "/models/digits/train.toml";

std::string text_of_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class RankProcessesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const MpiReport mpi = mpi_report();
    if (!mpi.usable) GTEST_SKIP() << "MPI: " << mpi.problem;
    if (mpi.launcher.empty()) GTEST_SKIP() << "there is no mpirun";
    mpirun_ = mpi.launcher;
    testing::set_rank_environment();
  }

  /// Starts `tandem` with these arguments as that many ranks, without mpirun for one process; its
  /// output goes to NAME.log.
  pid_t start(int ranks, const std::string& name, const std::vector<std::string>& arguments) const {
    std::vector<std::string> words;
    if (ranks > 1)
      words = {mpirun_, "--oversubscribe", "--bind-to", "none", "-np", std::to_string(ranks)};
    words.push_back(program);
    words.insert(words.end(), arguments.begin(), arguments.end());
    const pid_t child = fork();
    if (child != 0) return child;
    const std::string log = folder_ / (name + ".log");
    if (freopen(log.c_str(), "a", stderr) == nullptr || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
      _exit(99);
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execv(pointers[0], pointers.data());
    _exit(98);
  }
  pid_t start_training(int ranks, const std::string& run, const std::vector<std::string>& more,
                       bool resume = false) const {
    std::vector<std::string> words{
        "train",    digits, "--run-dir", folder_ / run, "log.every=1 step", "eval.every=10 steps",
        "threads=1"};
    if (resume) words.push_back("--resume");
    words.insert(words.end(), more.begin(), more.end());
    return start(ranks, run, words);
  }
  int finish(pid_t child) const {
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }
  void train(int ranks, const std::string& run, const std::vector<std::string>& more,
             bool resume = false) const {
    ASSERT_EQ(finish(start_training(ranks, run, more, resume)), 0) << log(run);
  }
  std::string log(const std::string& run) const { return text_of_file(folder_ / (run + ".log")); }

  /// Numbers of a key of metrics.jsonl, by phase and step.
  std::map<std::string, double> metrics(const std::string& run, const std::string& key) const {
    std::map<std::string, double> found;
    std::ifstream file(folder_ / (run + "/metrics.jsonl"));
    for (std::string line; std::getline(file, line);) {
      const auto json = nlohmann::json::parse(line);
      const std::string at = json.value("phase", "train") + json["step"].dump();
      EXPECT_EQ(found.count(at), 0u) << "twice: " << line;
      if (json.contains(key)) found[at] = json[key];
    }
    return found;
  }
  void expect_equal_files(const std::string& a, const std::string& b,
                          const std::string& step) const {
    for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
      const std::string name = "/checkpoints/" + step + "/" + file;
      EXPECT_TRUE(text_of_file(folder_ / (a + name)) == text_of_file(folder_ / (b + name))) << name;
    }
  }
  /// The process of a rank in a run that is in progress; 0 if there is none.
  pid_t process_of(int rank, const std::string& run) const {
    const std::string path = folder_ / run;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      if (text_of_file(entry.path() / "cmdline").find(path) == std::string::npos) continue;
      const std::string variables = text_of_file(entry.path() / "environ");
      if (variables.find("OMPI_COMM_WORLD_RANK=" + std::to_string(rank) + '\0') !=
          std::string::npos)
        return std::stoi(name);
    }
    return 0;
  }

  TemporaryFolder folder_;
  std::string mpirun_;
};

TEST_F(RankProcessesTest, TrainAsOneProcess) {
  const std::vector<std::string> keys{"steps=24"};
  train(1, "one", keys);
  for (const int ranks : {2, 3}) {
    const std::string run = "ranks-" + std::to_string(ranks);
    train(ranks, run, keys);
    for (const char* key : {"loss", "accuracy"}) {
      const auto expected = metrics("one", key), found = metrics(run, key);
      ASSERT_EQ(found.size(), expected.size());
      for (const auto& [at, value] : expected)
        EXPECT_NEAR(found.at(at), value, 1e-5 * (1 + value)) << run << " " << key << " " << at;
    }
    EXPECT_THAT(log(run), HasSubstr("ranks      " + std::to_string(ranks)));
  }
}

TEST_F(RankProcessesTest, ADeadRankEndsAllAndTheRunGoesOn) {
  const std::vector<std::string> keys{"steps=400", "checkpoint.every=50 steps",
                                      "checkpoint.keep=2"};
  train(2, "whole", keys);
  for (const int victim : {1, 0}) {
    const std::string run = "killed-" + std::to_string(victim);
    const pid_t launcher = start_training(2, run, keys);
    const std::string begun = folder_ / (run + "/checkpoints/step-00000050");
    const auto limit = Clock::now() + std::chrono::seconds(60);
    while (!fs::exists(begun) && Clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const pid_t process = process_of(victim, run);
    ASSERT_GT(process, 0) << log(run);
    kill(process, SIGKILL);
    const auto dead = Clock::now();
    EXPECT_NE(finish(launcher), 0);
    EXPECT_LT(Clock::now() - dead, std::chrono::seconds(10));
    EXPECT_EQ(process_of(1 - victim, run), 0);
    train(2, run, keys, true);
    expect_equal_files("whole", run, "step-00000400");
    EXPECT_EQ(metrics("whole", "loss"), metrics(run, "loss"));
  }
}

TEST_F(RankProcessesTest, AnErrorOfAllIsToldOnce) {
  EXPECT_EQ(WEXITSTATUS(finish(start_training(2, "wrong", {"optimizer.lrr=1"}))), 2);
  const std::string text = log("wrong");
  const std::size_t first = text.find("optimizer.lrr");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("tandem: ", text.find("tandem: ") + 1), std::string::npos) << text;
}

// All ranks check the labels before the first step, and one reports the bad label.
TEST_F(RankProcessesTest, ABadLabelIsNamedOnce) {
  std::vector<NamedTensor> arrays = read_npz(fs::path(digits).replace_filename("digits_train.npz"));
  for (NamedTensor& array : arrays) {
    if (array.name != "labels") continue;
    HostTensor copy(array.tensor.type());
    std::memcpy(copy.data(), array.tensor.data(), copy.bytes());
    ASSERT_EQ(copy.dtype(), DType::int64);
    copy.as<std::int64_t>()[20] = 99;
    array.tensor = std::move(copy);
  }
  const std::string bad = folder_ / "bad.npz";
  write_npz(bad, arrays);
  const int status = finish(start_training(
      2, "bad", {"data.train.files=[\"" + bad + "\"]", "data.train.shuffle=none", "steps=3"}));
  EXPECT_EQ(WEXITSTATUS(status), 4) << log("bad");
  const std::string text = log("bad"), place = "bad.npz:21";
  const std::size_t first = text.find(place);
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find(place, first + 1), std::string::npos) << text;
}

TEST_F(RankProcessesTest, EvaluateAndPredictAsOneProcess) {
  train(1, "trained", {"steps=12"});
  const std::string run = folder_ / "trained";
  const auto evaluated = [&](int ranks) {
    const std::string name = "eval-" + std::to_string(ranks);
    EXPECT_EQ(finish(start(ranks, name, {"eval", run, "threads=1", "--json"})), 0) << log(name);
    return nlohmann::json::parse(log(name));  // only one rank prints
  };
  const nlohmann::json one = evaluated(1), three = evaluated(3);
  EXPECT_EQ(three["samples"], one["samples"]);
  EXPECT_EQ(three["metrics"]["accuracy"], one["metrics"]["accuracy"]);
  EXPECT_NEAR(three["metrics"]["loss"].get<double>(), one["metrics"]["loss"].get<double>(), 1e-6);

  // 7 micro-batches of 50 samples and one of 10: they cannot be divided evenly among three ranks.
  for (const int ranks : {1, 2, 3}) {
    const std::string name = "predict-" + std::to_string(ranks);
    const std::string to = folder_ / (name + ".tsv");
    ASSERT_EQ(finish(start(ranks, name,
                           {"predict", run, "threads=1", "--batch", "50", "--to", to, "--data",
                            fs::path(digits).replace_filename("digits_test.npz")})),
              0)
        << log(name);
    EXPECT_EQ(text_of_file(to), text_of_file(folder_ / "predict-1.tsv")) << name;
    EXPECT_EQ(std::ranges::count(text_of_file(to), '\n'), 360) << name;
  }
  EXPECT_EQ(WEXITSTATUS(finish(start(2, "input", {"predict", run, "--data", "-"}))), 2);
  EXPECT_THAT(log("input"), HasSubstr("several processes cannot share standard input"));
}

TEST_F(RankProcessesTest, DoctorMeasuresWhatLiesBetweenThem) {
  ASSERT_EQ(finish(start(2, "doctor", {"doctor", "--ranks", "--json"})), 0) << log("doctor");
  const nlohmann::json found = nlohmann::json::parse(log("doctor"));
  EXPECT_EQ(found["network"]["ranks"], 2);
  EXPECT_GT(found["network"]["bytes_per_second"].get<double>(), 1e6);
  EXPECT_LT(found["network"]["latency_seconds"].get<double>(), 1.0);
  EXPECT_EQ(WEXITSTATUS(finish(start(1, "alone", {"doctor", "--ranks"}))), 2);
  EXPECT_THAT(log("alone"), HasSubstr("tandem launch -n 2 -- doctor --ranks"));
}

}  // namespace
}  // namespace tandem
