// Output of predictions, and what must stay unchanged: other files, inputs, files of the run,
// permissions, links, and all of these if the command is interrupted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/api/error_of.h"
#include "tests/api/trained_runs.h"
#include "tests/api/waiting_program.h"
#include "tests/harness/program.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777;
}

class PredictionFilesTest : public ::testing::Test {
 protected:
  PredictionFilesTest() {
    write_clicks(folder_);
    testing::train(folder_);
    fs::create_directory(out_);
  }
  PredictOptions options(const std::string& to) const {
    PredictOptions options;
    options.data = {eval_};
    options.to = to;
    return options;
  }
  void predict(const std::string& to) const { predict_run(run_, options(to)); }
  std::string refusal(const std::string& to) const {
    return error_of([&] { predict(to); }, ErrorKind::usage);
  }
  std::string out(const std::string& name) const { return out_ + "/" + name; }

  TemporaryFolder folder_;
  const std::string run_ = folder_ / "run", eval_ = folder_ / "eval.tsv", out_ = folder_ / "out";
};

TEST_F(PredictionFilesTest, NeighboursStay) {
  for (const char* name : {"u.tsv.new", "v.npz.new", "v.npz.new.0", "v.npz.new.1"})
    write_file(out(name), "mine");
  predict(out("u.tsv"));
  predict(out("v.npz"));
  predict(out("v.npz"));  // overwrites itself
  EXPECT_THAT(list_directory(out_), ElementsAre("u.tsv", "u.tsv.new", "v.npz", "v.npz.new",
                                                "v.npz.new.0", "v.npz.new.1"));
  for (const char* name : {"u.tsv.new", "v.npz.new", "v.npz.new.0", "v.npz.new.1"})
    EXPECT_EQ(read_file(out(name)), "mine") << name;
  EXPECT_EQ(read_npz(out("v.npz"))[0].tensor.shape(), (Shape{click_samples, 1}));
}

TEST_F(PredictionFilesTest, InputsAreNotWrittenOver) {
  const std::string input = out("ev.tsv"), text = read_file(eval_);
  write_file(input, text);
  fs::create_symlink("ev.tsv", out("symbolic.tsv"));
  fs::create_hard_link(input, out("hard.tsv"));
  const std::string predict = "predict " + run_ + " --data ";
  for (const char* name : {"ev.tsv", "symbolic.tsv", "hard.tsv"}) {
    SCOPED_TRACE(name);
    for (const std::string& from : {input, "- < " + input}) {
      const Ended ended = run_program(predict + from + " --to " + out(name) + " 2>&1");
      EXPECT_EQ(ended.code, 2);
      EXPECT_THAT(ended.text, AllOf(HasSubstr("--to: this file is read"), HasSubstr(name)));
    }
  }
  const Ended appended = run_program(predict + input + " 2>" + out("errors") + " >>" + input);
  EXPECT_EQ(appended.code, 2);
  EXPECT_THAT(read_file(out("errors")), HasSubstr("this file is read: expected another file to "
                                                  "write, got standard output"));
  EXPECT_EQ(read_file(input), text);
  EXPECT_THAT(list_directory(out_), ElementsAre("errors", "ev.tsv", "hard.tsv", "symbolic.tsv"));
}

TEST_F(PredictionFilesTest, WhatTheConfigurationNamesIsNotWrittenOver) {
  write_file(out("policy.toml"), "policy = 1\n");
  fs::create_symlink("policy.toml", out("policy.tsv"));
  write_file(out("start.npz"), "weights");
  PredictOptions how = options(out("policy.tsv"));
  how.overrides = {"policy=" + out("policy.toml"),
                   "parameters.load=[{from='" + out("start.npz") + "'}]"};
  for (const char* name : {"policy.tsv", "start.npz"}) {
    how.to = out(name);
    EXPECT_THAT(error_of([&] { predict_run(run_, how); }, ErrorKind::usage),
                HasSubstr("--to: this file is read"));
  }
}

TEST_F(PredictionFilesTest, FilesOfTheRunAreNotWrittenOver) {
  const std::string vocabulary = read_file(run_ + "/vocabulary.ids.tsv");
  fs::create_symlink(run_ + "/train.resolved.toml", out("symbolic.tsv"));
  fs::create_symlink(run_ + "/vocabulary.more.tsv", out("dangling.tsv"));
  const std::string step = run_ + "/checkpoints/step-00000010/";
  fs::create_hard_link(step + "model.safetensors", out("hard.npz"));
  for (const std::string& to :
       {run_ + "/vocabulary.ids.tsv", run_ + "/vocabulary.more.tsv", out("dangling.tsv"),
        out("hard.npz"), step + "mine.tsv", run_ + "/checkpoints/mine.npz"}) {
    EXPECT_THAT(refusal(to), HasSubstr("--to: this is a file of the run")) << to;
  }
  EXPECT_THAT(refusal(out("symbolic.tsv")), HasSubstr("--to: this file is read"));
  EXPECT_EQ(read_file(run_ + "/vocabulary.ids.tsv"), vocabulary);
  EXPECT_FALSE(fs::exists(run_ + "/vocabulary.more.tsv"));
  EXPECT_THAT(refusal(folder_ / "train.tsv"), HasSubstr("this file is data of the configuration"));
  // Other files may be there, and may be overwritten.
  predict(run_ + "/predictions.tsv");
  predict(run_ + "/predictions.tsv");
  EXPECT_EQ(Json::parse(evaluate_run(run_, {}).json)["samples"], click_samples);

  const std::string model = folder_ / "out.onnx";
  export_run(run_, model);
  fs::create_hard_link(model, out("model.tsv"));
  for (const std::string& to : {folder_ / "out.vocabulary.ids.tsv", out("model.tsv")}) {
    PredictOptions exported = options(to);
    exported.config = folder_ / "train.toml";
    EXPECT_THAT(error_of([&] { predict_run(model, exported); }, ErrorKind::usage),
                HasSubstr("this file is read"))
        << to;
  }
}

TEST_F(PredictionFilesTest, PermissionsAndLinksStay) {
  const mode_t mask = umask(0);
  umask(mask);
  for (const char* ending : {".tsv", ".npy"}) {
    SCOPED_TRACE(ending);
    const std::string fresh = out("fresh") + ending, secret = out("secret") + ending,
                      locked = out("locked") + ending;
    predict(fresh);
    EXPECT_EQ(mode_of(fresh), 0666 & ~mask);
    write_file(secret, "old");
    write_file(locked, "old");
    chmod(secret.c_str(), 0600);
    chmod(locked.c_str(), 0444);
    predict(secret);
    EXPECT_EQ(mode_of(secret), 0600u);
    EXPECT_EQ(read_file(secret), read_file(fresh));
    EXPECT_THAT(refusal(locked), HasSubstr("must not be written to"));
    EXPECT_EQ(read_file(locked), "old");

    fs::create_directories(out("there"));
    for (const std::string real : {"real", "later"}) {
      const std::string link = out("link to " + real) + ending,
                        target = out("there/" + real) + ending;
      if (real == "real") write_file(target, "old");
      fs::create_symlink("there/" + real + ending, link);
      predict(link);
      EXPECT_TRUE(fs::is_symlink(link));
      EXPECT_EQ(read_file(target), read_file(fresh));
    }
    fs::create_symlink(std::string("circle") + ending, out("circle") + ending);
    EXPECT_THAT(refusal(out("circle") + ending), HasSubstr("leads to itself"));
  }
  EXPECT_THAT(list_directory(out("there")),
              ElementsAre("later.npy", "later.tsv", "real.npy", "real.tsv"));
}

TEST_F(PredictionFilesTest, AStopLeavesNothing) {
  const std::string to = out("keep.tsv");
  write_file(to, "old");
  PredictOptions how = options(to);
  how.batch = 1;
  int micro_batches = 0;
  how.on_progress = [&](std::int64_t, double, double) {
    ++micro_batches;
    how.stop.request_stop();
  };
  EXPECT_THAT(error_of([&] { predict_run(run_, how); }, ErrorKind::runtime),
              HasSubstr("interrupted"));
  EXPECT_EQ(micro_batches, 1);
  how.to = out("keep.npz");
  how.stop = StopToken();
  EXPECT_THAT(error_of([&] { predict_run(run_, how); }, ErrorKind::runtime),
              HasSubstr("interrupted"));
  EXPECT_THAT(list_directory(out_), ElementsAre("keep.tsv"));
  EXPECT_EQ(read_file(to), "old");
  how.stop = StopToken();
  EXPECT_THAT(error_of([&] { evaluate_run(run_, how); }, ErrorKind::runtime),
              HasSubstr("interrupted"));
}

TEST_F(PredictionFilesTest, EvalTellsHowFarItIs) {
  TrainedOptions how;
  std::vector<std::int64_t> rows;
  std::vector<double> parts;
  how.on_progress = [&](std::int64_t row, double part, double) {
    rows.push_back(row);
    parts.push_back(part);
  };
  evaluate_run(run_, how);
  const auto reading = std::count(rows.begin(), rows.end(), 0);
  ASSERT_GE(reading, 1);
  EXPECT_EQ(parts[static_cast<std::size_t>(reading) - 1], 1);  // the whole file
  rows.erase(rows.begin(), rows.begin() + reading);
  parts.erase(parts.begin(), parts.begin() + reading);
  EXPECT_THAT(rows, ElementsAre(16, 32, 48, click_samples));
  EXPECT_THAT(parts, ElementsAre(16.0 / 53, 32.0 / 53, 48.0 / 53, 1));
}

TEST_F(PredictionFilesTest, SignalsLeaveNothing) {
  const std::string to = out("keep.tsv"), temporary = folder_ / "temporary";
  fs::create_directory(temporary);
  write_file(to, "old");
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    SCOPED_TRACE(number);
    // More than one micro-batch, and a part of the next row.
    WaitingProgram predict({"predict", run_, "--to", to, "--data", "-"},
                           read_file(eval_).substr(0, 2500), temporary);
    EXPECT_EQ(predict.interrupt(number, [&] { return list_directory(out_).size() > 1; }),
              128 + number);
    EXPECT_THAT(list_directory(out_), ElementsAre("keep.tsv"));
    EXPECT_EQ(read_file(to), "old");
    WaitingProgram eval({"eval", run_, "--data", "-"}, read_file(eval_).substr(0, 2500), temporary);
    EXPECT_EQ(eval.interrupt(number, [&] { return !list_directory(temporary).empty(); }),
              128 + number);
    EXPECT_THAT(list_directory(temporary), IsEmpty());
  }
}

TEST_F(PredictionFilesTest, TheFolderForRowsIsNamed) {
  const Ended ended = run_program("eval " + run_ + " 2>&1", "TMPDIR=" + out("none") + " ");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.text, AllOf(HasSubstr("TMPDIR: cannot make a folder"),
                                HasSubstr("got " + out("none")), HasSubstr("TMPDIR=FOLDER")));
}

TEST_F(PredictionFilesTest, OtherMetricsThanThatOfTheBestCheckpoint) {
  TrainedOptions how;
  how.overrides = {"eval.metrics=[\"auc\"]"};
  const Json json = Json::parse(evaluate_run(run_, how).json);
  EXPECT_EQ(json["which"], "best");
  EXPECT_TRUE(json["metrics"].contains("auc"));
  EXPECT_FALSE(json["metrics"].contains("log_loss"));
  how.overrides.push_back("eval.best=log_loss");  // given for this call
  EXPECT_THAT(error_of([&] { evaluate_run(run_, how); }, ErrorKind::usage),
              HasSubstr("not one of the metrics"));
}

TEST_F(PredictionFilesTest, ABrokenPlacementIsNamed) {
  const std::string path = run_ + "/placement.json", text = read_file(path);
  for (const std::string& broken :
       {std::string("{\"arguments\":[]}"), std::string("{\"arguments\":{\"device\":\"gpu\"}}"),
        std::string("{\"arguments\":{\"place\":[1]}}"), std::string("[]"), std::string(),
        text.substr(0, text.size() / 2)}) {
    write_file(path, broken);
    EXPECT_THAT(error_of([&] { evaluate_run(run_, {}); }, ErrorKind::usage),
                AllOf(HasSubstr(path + ":"), HasSubstr("take a whole copy of the run directory")))
        << broken;
  }
  fs::remove(path);
  EXPECT_EQ(Json::parse(evaluate_run(run_, {}).json)["samples"], click_samples);
}

TEST_F(PredictionFilesTest, PassesThatDoNotFitAreMadeSmallerByTheirOption) {
  PredictOptions how = options(out("p.tsv"));
  how.batch = 1000;
  how.devices = {"cpu=memory=4KiB"};
  EXPECT_THAT(error_of([&] { predict_run(run_, how); }, ErrorKind::does_not_fit),
              AllOf(HasSubstr("use a smaller --batch"), Not(HasSubstr("batch_size"))));
  EXPECT_THAT(list_directory(out_), IsEmpty());
}

}  // namespace
}  // namespace tandem::api
