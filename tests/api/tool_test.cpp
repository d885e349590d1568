// The command line program: numbers out of range, long lists of errors, signals, disabled passes.
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

TEST(ToolTest, NumbersOutOfRangeAreRefused) {
  for (const char* number : {"-1", "0", "nan", "inf", "soon"}) {
    const Ended seconds =
        run_program("bench " + digits + "train.toml --seconds " + std::string(number) + " 2>&1");
    EXPECT_EQ(seconds.code, 2) << number;
    EXPECT_THAT(seconds.text, HasSubstr("--seconds")) << number;
    const Ended elements =
        run_program("bench --kernel sgd --elements " + std::string(number) + " 2>&1");
    EXPECT_EQ(elements.code, 2) << number;
    EXPECT_THAT(elements.text, HasSubstr("--elements")) << number;
  }
}

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
  EXPECT_THAT(run_program("polcy 2>&1").text, HasSubstr("unknown subcommand or option: polcy"));
  EXPECT_THAT(run_program("trian 2>&1").text, HasSubstr("did you mean `tandem train`?"));
  EXPECT_THAT(run_program("frobnicate 2>&1").text, HasSubstr("run tandem --help"));
  EXPECT_THAT(run_program("predict run --data x --haeder 2>&1").text,
              HasSubstr("did you mean --header? tandem predict --help lists all"));
  EXPECT_THAT(run_program("policy plan a.toml --confg=b.toml 2>&1").text,
              HasSubstr("did you mean --config?"));
  EXPECT_THAT(run_program("predict run --data x --frobnicate 2>&1").text,
              HasSubstr("run tandem predict --help"));
  EXPECT_EQ(run_program("help train 2>&1").text, run_program("train --help 2>&1").text);
  EXPECT_EQ(run_program("help 2>&1").text, run_program("--help 2>&1").text);
  EXPECT_THAT(run_program("export nothing --to x.pt 2>&1").text,
              HasSubstr("PyTorch reads .safetensors"));
  EXPECT_EQ(run_program("train --help --json").code, 0);
}

TEST(ToolTest, PolicyCommandsEndInTheirCodes) {
  tandem::testing::TemporaryFolder folder;
  std::ofstream(folder / "gpu.toml")
      << "policy = 1\nrules = [\n  { at = \"**\", on = \"gpu\" },\n]\n";
  std::ofstream(folder / "bad.toml") << "policy = 1\nrules = [\n  { at = \"**\", onn = \"cpu\" "
                                        "},\n  { at = \"**\", on = \"gpx\" },\n]\n";
  const std::string with = " --json --config " + digits + "train.toml --device gpu=emulated:0 ";
  const Ended plan = run_program("policy plan " + (folder / "gpu.toml") + with);
  EXPECT_EQ(plan.code, 0);
  EXPECT_TRUE(Json::parse(plan.text)["fits"]);
  const Ended full =
      run_program("policy plan " + (folder / "gpu.toml") + with + "--device gpu=memory=4KiB");
  EXPECT_EQ(full.code, 3);
  EXPECT_FALSE(Json::parse(full.text)["fits"]);
  EXPECT_EQ(run_program("policy diff " + (folder / "gpu.toml") + with + "--exit-code").code, 6);
  EXPECT_EQ(run_program("policy diff " + (folder / "gpu.toml") + with).code, 0);
  const Ended keys = run_program("policy plan " + (folder / "gpu.toml") + with + "batch_size=8");
  EXPECT_LT(Json::parse(keys.text)["devices"]["gpu"]["peak"],
            Json::parse(plan.text)["devices"]["gpu"]["peak"]);
  const Ended bad = run_program("policy check " + (folder / "bad.toml") + with + "2>/dev/null");
  EXPECT_EQ(bad.code, 2);
  const Json errors = Json::parse(bad.text)["errors"];
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_EQ(errors[1]["line"], 3);
  EXPECT_THAT(errors[1]["fix"].get<std::string>(), HasSubstr("did you mean `rules.0.on`?"));
  EXPECT_EQ(errors[2]["line"], 4);
  setenv("CUDA_VISIBLE_DEVICES", "", 1);  // no GPU, whatever this machine has
  const Ended unplaced = run_program("train --dry-run " + digits +
                                     "train.toml policy=" + (folder / "gpu.toml") + " 2>&1");
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(unplaced.code, 2);
  EXPECT_THAT(unplaced.text, HasSubstr("--device gpu=emulated:0"));
}

TEST(ToolTest, WhatIsNoPolicyFileIsMisuse) {
  tandem::testing::TemporaryFolder folder;
  const std::string with = " --config " + digits + "train.toml 2>&1";
  const std::string change = " --at '**' --set on=cpu 2>&1";
  const auto refused = [](const Ended& ended, const char* why) {
    EXPECT_EQ(ended.code, 2) << ended.text;
    EXPECT_THAT(ended.text, HasSubstr(why));
  };
  refused(run_program("policy plan /dev/zero" + with), "not a regular file");
  refused(run_program("policy edit /dev/zero" + change), "not a regular file");
  refused(run_program("policy plan " + (folder / "") + with), "this is a folder");
  refused(run_program("policy edit " + (folder / "") + change), "this is a folder");
  refused(run_program("policy plan " + (folder / "none.toml") + with),
          "there is no such policy file");
  refused(run_program("policy edit " + (folder / "none.toml") + change), "policy = 1");
  std::ofstream(folder / "empty.toml");
  EXPECT_EQ(run_program("policy edit " + (folder / "empty.toml") + change).code, 0);
  EXPECT_EQ(run_program("policy check " + (folder / "empty.toml") + with).code, 0);
  refused(run_program("policy edit " + (folder / "empty.toml") + " --at '**' --set on=gpx 2>&1"),
          "did you mean \"gpu\"?");
}

TEST(ToolTest, PassesCanBeLeftOut) {
  const Ended unknown = run_program("inspect " + digits + "model.onnx --without fuze 2>&1");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.text, HasSubstr("did you mean \"fuse\"?"));
  const std::string lowered = "inspect " + digits + "model.onnx --bind batch=4 --stage lowered";
  const Ended with = run_program(lowered),
              without = run_program(lowered + " --without convolution_epilogues --without fuse");
  EXPECT_EQ(without.code, 0);
  EXPECT_THAT(with.text, HasSubstr("ConvFused"));
  EXPECT_THAT(without.text, ::testing::Not(HasSubstr("ConvFused")));
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

TEST(ToolTest, PathsOfPoliciesMayHoldAnEqualsSign) {
  tandem::testing::TemporaryFolder folder;
  std::ofstream(folder / "a=b.toml") << "policy = 1\nrules = [ { at = \"**\", on = \"cpu\" } ]\n";
  const std::string config = " --config " + digits + "train.toml";
  const Ended path = run_program("policy check " + (folder / "a=b.toml") + config + " 2>&1");
  EXPECT_EQ(path.code, 0) << path.text;
  EXPECT_THAT(path.text, HasSubstr("ok: 1 rule"));
  const std::string there = "cd " + (folder / "") + " && " + program + " policy check a=b.toml";
  FILE* pipe = popen((there + config + " 2>&1").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text(4096, '\0');
  text.resize(fread(text.data(), 1, text.size(), pipe));
  EXPECT_EQ(WEXITSTATUS(pclose(pipe)), 2);
  EXPECT_THAT(text, HasSubstr("a file has this name, and it could set a key: expected ./a=b.toml "
                              "for the file"));
  const Ended key = run_program("policy check" + config + " batch_size=16 2>&1");
  EXPECT_EQ(key.code, 0) << key.text;
}

}  // namespace
}  // namespace tandem::api
