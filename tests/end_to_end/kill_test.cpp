// kill -9 at any moment: resume gives the same weights, bit for bit, and no metrics line twice.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "engine/formats/events/event.h"
#include "engine/formats/events/record.h"
#include "tests/harness/folders.h"
#include "tests/harness/program.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using testing::program;

const std::string config = source_folder() + "/models/digits/train.toml";

pid_t start(const fs::path& run, std::vector<std::string> words, bool resume,
            int kill_at_operation) {
  const pid_t child = fork();
  if (child != 0) return child;
  if (kill_at_operation > 0)
    setenv("TANDEM_KILL_AT_FILE_OPERATION", std::to_string(kill_at_operation).c_str(), 1);
  const std::string log = run.string() + ".log";
  if (freopen(log.c_str(), "a", stderr) == nullptr || freopen("/dev/null", "w", stdout) == nullptr)
    _exit(99);
  words.insert(words.begin(), {program, "train"});
  words.insert(words.end(), {"--run-dir", run.string()});
  if (resume) words.push_back("--resume");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  _exit(98);
}

pid_t start(const fs::path& run, bool resume, int kill_at_operation) {
  return start(
      run,
      {config, "steps=40", "log.every=5 steps", "eval.every=20 steps", "checkpoint.every=8 steps",
       "checkpoint.keep=2", "optimizer.kind=adamw", "log.also=[\"csv\", \"tensorboard\"]"},
      resume, kill_at_operation);
}

int finish(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class KillTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = fs::temp_directory_path() / ("tandem-kill-" + std::to_string(getpid()));
    fs::create_directories(root_);
    ASSERT_EQ(finish(start(root_ / "whole", false, 0)), 0) << contents(root_ / "whole.log");
  }
  static void TearDownTestSuite() { fs::remove_all(root_); }

  /// Resumes (or restarts, if nothing was written) until the run is done; then compares.
  static void finish_and_compare(const fs::path& run) {
    for (int attempt = 0; attempt < 3 && !fs::exists(run / "summary.json"); ++attempt) {
      const bool begun = fs::exists(run / "metrics.jsonl");
      if (!begun) fs::remove_all(run);
      ASSERT_EQ(finish(start(run, begun, 0)), 0) << contents(run.string() + ".log");
    }
    for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
      const fs::path name = fs::path("checkpoints") / "step-00000040" / file;
      ASSERT_EQ(contents(run / name), contents(root_ / "whole" / name)) << file;
    }
    std::set<std::string> seen;
    std::ifstream metrics(run / "metrics.jsonl");
    for (std::string line; std::getline(metrics, line);) {
      const auto json = nlohmann::json::parse(line);
      const std::string key = json.value("phase", "train") + json["step"].dump();
      EXPECT_TRUE(seen.insert(key).second) << "twice: " << line;
    }
    for (const char* key : {"train1", "train20", "train40", "eval20", "eval40"})
      EXPECT_EQ(seen.count(key), 1u) << key;
    expect_same_in_other_formats(run, seen);
  }
  /// The table and the event files must have the lines of metrics.jsonl, each once.
  static void expect_same_in_other_formats(const fs::path& run,
                                           const std::set<std::string>& lines) {
    std::multiset<std::string> rows, events;
    std::ifstream table(run / "metrics.csv");
    std::string line;
    std::getline(table, line);
    EXPECT_EQ(line.substr(0, 11), "step,phase,");
    while (std::getline(table, line)) {
      const std::size_t step = line.find(','), phase = line.find(',', step + 1);
      rows.insert(line.substr(step + 1, phase - step - 1) + line.substr(0, step));
    }
    for (const auto& file : fs::directory_iterator(run / "tensorboard")) {
      const std::string text = contents(file.path());
      TfRecords records(text);
      while (const auto record = records.next()) {
        const EventFacts facts = facts_of_event(*record);
        if (!facts.tag.empty())
          events.insert(facts.tag.substr(0, facts.tag.find('/')) + std::to_string(facts.step));
      }
      EXPECT_EQ(records.offset(), text.size()) << file.path();
    }
    const std::multiset<std::string> expected(lines.begin(), lines.end());
    EXPECT_EQ(rows, expected);
    EXPECT_EQ(events, expected);
  }
  static inline fs::path root_;
};

TEST_F(KillTest, AtEveryFileOperation) {
  int operation = 1;
  for (;; ++operation) {
    const fs::path run = root_ / ("operation-" + std::to_string(operation));
    const int status = finish(start(run, false, operation));
    if (status == 0) break;  // the run has fewer operations
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << contents(run.string() + ".log");
    finish_and_compare(run);
    if (HasFatalFailure()) return;
    fs::remove_all(run);
  }
  EXPECT_GT(operation, 40);
}

// The run has reached the length of its command line, and continues to that of its file.
TEST_F(KillTest, LongAsItGoesOnToALongerLength) {
  const fs::path folder = fs::path(config).parent_path(), file = root_ / "longer.toml";
  std::ofstream(file) << "model = \"" << (folder / "model.onnx").string() << "\"\n"
                      << "batch_size = 64\nsteps = 4\n"
                      << R"toml([loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "adam"
[data]
kind = "npz"
fields = { image = { from = "images", as = [ "scale(1/16)" ] }, labels = "labels" }
train = { files = [ ")toml"
                      << (folder / "digits_train.npz").string() << "\" ] }\n";
  const fs::path whole = root_ / "longer", first = root_ / "first", run = root_ / "goes-on";
  ASSERT_EQ(finish(start(whole, {file}, false, 0)), 0) << contents(whole.string() + ".log");
  ASSERT_EQ(finish(start(first, {file, "steps=2"}, false, 0)), 0)
      << contents(first.string() + ".log");
  const fs::path weights = fs::path("checkpoints") / "step-00000004" / "model.safetensors";
  int operation = 1;
  for (;; ++operation) {
    fs::remove_all(run);
    fs::copy(first, run, fs::copy_options::recursive);
    if (finish(start(run, {file}, true, operation)) == 0) break;
    for (int attempt = 0; attempt < 2; ++attempt)
      ASSERT_EQ(finish(start(run, {file}, true, 0)), 0) << contents(run.string() + ".log");
    ASSERT_EQ(contents(run / weights), contents(whole / weights)) << "operation " << operation;
    ASSERT_TRUE(fs::exists(run / "summary.json")) << "operation " << operation;
  }
  EXPECT_GT(operation, 20);
}

TEST_F(KillTest, AtRandomTimes) {
  std::mt19937 random(20);
  for (int i = 0; i < 20; ++i) {
    const fs::path run = root_ / ("random-" + std::to_string(i));
    const pid_t child = start(run, false, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 300));
    kill(child, SIGKILL);
    finish(child);
    finish_and_compare(run);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tandem
