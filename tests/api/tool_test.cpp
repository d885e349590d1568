// The command line program: long lists of errors, mistakes as objects, signals. Its messages and
// exit codes: tests/expected/commands/tool.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/api/digits.h"
#include "tests/harness/program.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using tandem::testing::digits;
using tandem::testing::Ended;
using tandem::testing::program;
using tandem::testing::run_program;
using ::testing::HasSubstr;
using Json = nlohmann::json;

TEST(ToolTest, ManyErrorsAreCut) {
  tandem::testing::TemporaryFolder folder;
  {
    std::ofstream file(folder / "train.toml");
    file << "model = \"model.onnx\"\nepochs = 1\n";
    for (int i = 0; i < 60; ++i) file << "unknown_" << i << " = 1\n";
    file << "[optimizer]\nkind = \"sgd\"\n";
  }
  const Ended text = run_program("train " + (folder / "train.toml") + " 2>&1");
  EXPECT_EQ(text.code, 2);
  EXPECT_EQ(std::count(text.text.begin(), text.text.end(), '\n'), 51);
  EXPECT_THAT(text.text, HasSubstr("\n... and 11 more\n"));  // including the missing model
  const Ended json = run_program("train --json " + (folder / "train.toml") + " 2>/dev/null");
  EXPECT_EQ(Json::parse(json.text)["errors"].size(), 61u);
}

TEST(ToolTest, MistakesOfTheCommandLineAreObjectsToo) {
  const std::string config = digits + "train.toml";
  for (const std::string& line :
       std::vector<std::string>{"train --json",
                                "train --json --wrong " + config,
                                "train " + config + " --json --run-dir",
                                "eval --json",
                                "eval runs --json --data",
                                "predict --json",
                                "generate --json",
                                "generate runs --json",
                                "generate runs --json --prompt",
                                "export runs --json",
                                "inspect --json",
                                "inspect m.onnx --stage nothing --json",
                                "doctor --json more",
                                "data --json",
                                "data check --json",
                                "bench --json",
                                "bench --json --kernel",
                                "bench " + config + " --seconds soon --json",
                                "config --json keys",
                                "policy --json",
                                "policy plan --json",
                                "nothing --json",
                                "--json"}) {
    const Ended ended = run_program(line + " 2>/dev/null");
    EXPECT_EQ(ended.code, 2) << line;
    const Json errors = Json::parse(ended.text, nullptr, false);
    ASSERT_TRUE(errors.is_object() && errors.contains("errors")) << line << ": " << ended.text;
    ASSERT_EQ(errors["errors"].size(), 1u) << line;
    EXPECT_FALSE(errors["errors"][0]["message"].get<std::string>().empty()) << line;
    EXPECT_EQ(errors["errors"][0].size(), 8u) << line;
    const Ended text = run_program(line + " 2>&1 >/dev/null");
    EXPECT_THAT(text.text, HasSubstr("--help")) << line;
  }
  EXPECT_EQ(run_program("train --wrong 2>/dev/null").text, "");
  EXPECT_EQ(run_program("train --wrong -- --json 2>/dev/null").text, "");
  EXPECT_EQ(run_program("help train 2>&1").text, run_program("train --help 2>&1").text);
  EXPECT_EQ(run_program("help 2>&1").text, run_program("--help 2>&1").text);
}

TEST(ToolTest, KeysReachThePlan) {
  tandem::testing::TemporaryFolder folder;
  std::ofstream(folder / "gpu.toml") << "policy = 1\nrules = [ { at = \"**\", on = \"gpu\" } ]\n";
  const auto peak = [&](const std::string& key) {
    const Ended plan = run_program("policy plan " + (folder / "gpu.toml") + " --json --config " +
                                   digits + "train.toml --device gpu=emulated:0 " + key);
    return Json::parse(plan.text)["devices"]["gpu"]["peak"].get<std::size_t>();
  };
  EXPECT_LT(peak("batch_size=8"), peak(""));
}

TEST(ToolTest, AClosedTerminalSavesTheRun) {
  tandem::testing::TemporaryFolder folder;
  const std::string run_dir = folder / "run", config = digits + "train.toml";
  const pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stderr) == nullptr) _exit(126);
    signal(SIGHUP, SIG_DFL);
    execl(program.c_str(), program.c_str(), "train", config.c_str(), "steps=100000000",
          "epochs=1000000", "--run-dir", run_dir.c_str(), nullptr);
    _exit(127);
  }
  for (int i = 0; i < 600 && (!fs::exists(run_dir + "/metrics.jsonl") ||
                              fs::file_size(run_dir + "/metrics.jsonl") == 0);
       ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  kill(child, SIGHUP);
  kill(child, SIGHUP);  // the kernel and the shell each send one
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 129);
  EXPECT_FALSE(fs::is_empty(run_dir + "/checkpoints"));
}

}  // namespace
}  // namespace tandem::api
