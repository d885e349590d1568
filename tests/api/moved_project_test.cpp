// Runs whose project was moved or copied: its files are found next to the run. Keys of the
// configuration may occur wherever files are listed. Exports of weights only need no model file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "engine/formats/files.h"
#include "tandem/export.h"
#include "tandem/tandem.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/harness/program.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using tandem::testing::digits;
using tandem::testing::error_of;
using tandem::testing::run_program;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// FOLDER/cluster/project with model, policy and a run; the data is next to the project.
class MovedProject : public ::testing::Test {
 protected:
  MovedProject() {
    fs::create_directories(cluster() / "project/models");
    fs::create_directories(cluster() / "data");
    fs::copy(digits + "model.onnx", cluster() / "project/models/model.onnx");
    for (const char* file : {"digits_train.npz", "digits_test.npz"})
      fs::copy(digits + file, cluster() / "data" / file);
    write_file((cluster() / "project/policy.toml").string(),
               "policy = 1\nrules = [ { at = \"**\", on = \"cpu\" } ]\n");
    write_file((cluster() / "project/train.toml").string(), R"toml(model = "models/model.onnx"
policy = "policy.toml"
batch_size = 32
steps = 4
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "sgd"
lr = 0.05
[data]
kind = "npz"
root = "../data"
[data.train]
files = [ "digits_train.npz" ]
[data.eval]
files = [ "digits_test.npz" ]
[data.fields]
image  = { from = "images", as = [ "scale(1/16)" ] }
labels = "labels"
)toml");
  }

  fs::path cluster() const { return fs::path(folder_.path()) / "cluster"; }
  fs::path laptop() const { return fs::path(folder_.path()) / "laptop"; }
  std::string train(std::uint64_t stop_after = 0, const std::string& run_dir = "") {
    TrainOptions options;
    options.run_dir = run_dir;
    options.on_progress = [=, stop = options.stop](const Progress& p) {
      if (stop_after > 0 && p.step >= stop_after) stop.request_stop();
    };
    options.overrides = {"log.every=1 steps"};
    return Trainer((cluster() / "project/train.toml").string(), options).run().run_dir;
  }
  double loss_of(const std::string& run, TrainedOptions options = {}) {
    const EvaluationReport report = evaluate_run(run, options);
    warnings_ = report.warnings;
    return std::stod(report.json.substr(report.json.find("\"loss\":") + 7));
  }
  std::string to(const std::string& name) const { return folder_ / name; }

  tandem::testing::TemporaryFolder folder_;
  std::vector<std::string> warnings_;
};

TEST_F(MovedProject, IsFoundBesideTheRun) {
  const double loss = loss_of(train());
  fs::rename(cluster(), laptop());
  const std::string run = laptop() / "project/runs/project-0001";
  EXPECT_EQ(loss_of(run), loss);
  EXPECT_THAT(warnings_, Contains(AllOf(HasSubstr("the project was moved from"),
                                        HasSubstr("laptop/project: its files are read there"))));
  EXPECT_EQ(loss_of(run + "/checkpoints/step-00000004"), loss);
  PredictOptions predict;
  predict.data = {(laptop() / "data/digits_test.npz").string()};
  predict.to = to("p.npz");
  predict_run(run, predict);
  EXPECT_THAT(export_run(run, to("trained.onnx")), HasSubstr("trained.onnx"));
  EXPECT_TRUE(verify_export(run, to("trained.onnx"), {}).agrees);
}

TEST_F(MovedProject, GoesOn) {
  train(2);
  fs::rename(cluster(), laptop());
  TrainOptions options;
  options.resume = true;
  std::vector<std::string> messages;
  options.on_message = [&](const std::string& text) { messages.push_back(text); };
  const std::string config = laptop() / "project/train.toml";
  EXPECT_EQ(Trainer(config, options).run().steps, 4u);
  EXPECT_THAT(messages, Contains(HasSubstr("the project was moved from")));
  EXPECT_THAT(messages, Not(Contains(HasSubstr("the configuration has changed"))));
  EXPECT_THAT(read_file(laptop() / "project/runs/project-0001/train.resolved.toml"),
              Not(HasSubstr("cluster")));
}

// Both projects exist: the copy's run uses the copy's files.
TEST_F(MovedProject, ACopyHasItsOwnFiles) {
  const std::string run = train();
  const double loss = loss_of(run);
  EXPECT_THAT(warnings_, IsEmpty());
  fs::copy(cluster(), laptop(), fs::copy_options::recursive);
  fs::copy_file(cluster() / "data/digits_train.npz", laptop() / "data/digits_test.npz",
                fs::copy_options::overwrite_existing);
  EXPECT_NE(loss_of(laptop() / "project/runs/project-0001"), loss);
  EXPECT_EQ(loss_of(run), loss);
}

TEST_F(MovedProject, IsFoundThroughALink) {
  const double loss = loss_of(train());
  fs::rename(cluster(), laptop());
  fs::create_directory_symlink(laptop() / "project/runs/project-0001", to("link"));
  EXPECT_EQ(loss_of(to("link")), loss);
  // The folder of runs is elsewhere, and the project has a link to it.
  fs::rename(laptop() / "project/runs", to("scratch"));
  fs::create_directory_symlink(to("scratch"), laptop() / "project/runs");
  EXPECT_EQ(loss_of(laptop() / "project/runs/project-0001"), loss);
}

TEST_F(MovedProject, ARunThatWasMovedAloneHasTheProjectWhereItWas) {
  const std::string run = train();
  const double loss = loss_of(run);
  fs::rename(run, to("alone"));
  EXPECT_EQ(loss_of(to("alone")), loss);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(MovedProject, ARunAloneSaysWhatItLacks) {
  fs::rename(train(), to("alone"));
  fs::rename(cluster() / "project/models/model.onnx", to("mine.onnx"));
  for (const auto& use : std::vector<std::function<void()>>{
           [&] { loss_of(to("alone")); }, [&] { export_run(to("alone"), to("w.onnx")); }})
    EXPECT_THAT(error_of(use), AllOf(HasSubstr("cannot open the model"),
                                     HasSubstr("model.file=PATH on the command line")));
  ExportSettings settings;
  settings.overrides = {"model.file=" + to("mine.onnx")};
  EXPECT_THAT(export_run(to("alone"), to("w.onnx"), settings), HasSubstr("w.onnx"));
  TrainedOptions options;
  options.overrides = settings.overrides;
  EXPECT_GT(loss_of(to("alone"), options), 0);
}

TEST_F(MovedProject, WeightsNeedNoModelFile) {
  fs::rename(train(), to("alone"));
  fs::remove_all(cluster());
  for (const char* file : {"w.safetensors", "w.npz"}) {
    EXPECT_THAT(export_run(to("alone"), to(file)), HasSubstr(file));
    EXPECT_TRUE(fs::exists(to(file)));
  }
}

// On the command line keys may be anywhere, also among files.
TEST_F(MovedProject, KeysAreNoFiles) {
  fs::rename(train(), to("alone"));
  fs::rename(cluster() / "project/models/model.onnx", to("mine.onnx"));
  const std::string run = " " + to("alone"), key = " model.file=" + to("mine.onnx"),
                    data = " --data " + (cluster() / "data/digits_test.npz").string();
  for (const std::string& command :
       {"eval" + run + data + key, "eval" + run + key + data,
        "predict" + run + data + key + " --to " + to("p.npz"),
        "predict" + run + data + " --output logits" + key + " --to " + to("q.npz"),
        "export" + run + " --to " + to("w.onnx") + key,
        "export" + run + key + " --to " + to("x.onnx"),
        "export" + run + " --to " + to("y.onnx") + " --verify" + data + key}) {
    const auto ended = run_program(command + " 2>&1");
    EXPECT_EQ(ended.code, 0) << command << "\n" << ended.text;
  }
  EXPECT_THAT(run_program("eval" + run + key + data + " modle.file=x 2>&1").text,
              HasSubstr("modle.file=x"));
}

TEST(IsSetting, TellsKeysFromArraysAndFiles) {
  const tandem::testing::TemporaryFolder folder;
  write_file(folder / "x.npz", "");
  for (const std::string key : {"model.file=x", "policy=p.toml", "model=m.onnx", "batch_size=4",
                                "eval.metrics=[\"auc\"]", "optimizer.groups.0.lr=0.1"})
    EXPECT_TRUE(is_setting(key)) << key;
  for (const std::string& file :
       {std::string("rows.tsv"), "images=" + folder / "x.npz", std::string("-"),
        "data=" + folder / "x.npz", "seed=" + folder / "x.npz", "loss=" + folder / "x.npz",
        folder / "x.npz"})
    EXPECT_FALSE(is_setting(file)) << file;
}

}  // namespace
}  // namespace tandem::api
