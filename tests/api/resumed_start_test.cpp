// A resumed run uses the command that started it; later changes are reported, and refused where
// placement, devices or length differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/config/resume/resumed_config.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/optimizers/optimizer.h"
#include "tandem/tandem.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using tandem::testing::digits;
using tandem::testing::error_of;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

using Keys = std::vector<std::string>;

class ResumedStart : public ::testing::Test {
 protected:
  ResumedStart() {
    for (const char* file : {"model.onnx", "digits_train.npz"})
      fs::copy(digits + file, folder_ / file);
    put_config("");
    put_policy("cpu");
  }

  void put_config(const std::string& more) {
    write_file(folder_ / "train.toml", R"toml(model = "model.onnx"
batch_size = 32
epochs = 3
)toml" + more + R"toml(
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "sgd"
lr = 0.05
[data]
kind = "npz"
[data.train]
files = [ "digits_train.npz" ]
[data.fields]
image  = { from = "images", as = [ "scale(1/16)" ] }
labels = "labels"
[log]
every = "1 steps"
)toml");
  }
  void put_policy(const std::string& device) {
    write_file(folder_ / "policy.toml",
               "policy = 1\ndevices = { gpu = { use = \"emulated:0\" } }\nrules = [ { at = "
               "\"fc*.**\", on = \"" +
                   device + "\" } ]\n");
  }

  struct Call {
    Keys overrides = {};
    Keys devices = {}, place = {};
    std::uint64_t stop_after = 0;  // 0: at the end
    bool resume = false, accepts = false;
  };
  TrainResult train(const Call& call) {
    TrainOptions options;
    options.overrides = call.overrides;
    options.devices = call.devices;
    options.place = call.place;
    options.run_dir = folder_ / "run";
    options.resume = call.resume;
    options.accept_changes = call.accepts;
    messages_.clear();
    losses_.clear();
    options.on_message = [this](const std::string& text) { messages_.push_back(text); };
    options.on_progress = [&, stop = options.stop](const Progress& p) {
      losses_.push_back(p.values.at(0).second);
      if (call.stop_after > 0 && p.step >= call.stop_after) stop.request_stop();
    };
    return Trainer(folder_ / "train.toml", options).run();
  }
  std::string refusal(Call call) {
    call.resume = true;
    return error_of([&] { train(call); });
  }
  /// The device of each operator of the run.
  std::string placement() const {
    const Json json = Json::parse(read_file(folder_ / "run/placement.json"));
    std::string text;
    for (const Json& node : json["nodes"]) text += node["device"].get<std::string>() + " ";
    return text;
  }

  tandem::testing::TemporaryFolder folder_;
  std::vector<std::string> messages_;
  std::vector<double> losses_;
};

TEST_F(ResumedStart, TheFirstCommandLineHolds) {
  put_policy("gpu");
  const Keys first{"policy=" + (folder_ / "policy.toml"), "steps=6", "optimizer.lr=0.2"};
  train({.overrides = first, .devices = {"gpu=emulated:0,memory=64MiB"}});
  const std::vector<double> whole = losses_;
  const std::string where = placement();
  EXPECT_THAT(where, HasSubstr("gpu"));
  fs::remove_all(folder_ / "run");

  train({.overrides = first, .devices = {"gpu=emulated:0,memory=64MiB"}, .stop_after = 3});
  const std::size_t done = losses_.size();
  ASSERT_LT(done, 6u);
  const TrainResult rest = train({.resume = true});
  EXPECT_EQ(rest.steps, 6u);
  EXPECT_EQ(placement(), where);
  EXPECT_EQ(losses_, std::vector<double>(whole.begin() + static_cast<long>(done), whole.end()));
  EXPECT_THAT(messages_, Contains(AllOf(HasSubstr("continues with what it was started with"),
                                        HasSubstr("steps=6"), HasSubstr("--device gpu=emulated"))));
}

TEST_F(ResumedStart, WhatIsGivenAnewIsNotToldAsKept) {
  train({.overrides = {"steps=4", "optimizer.lr=0.2"}});
  train({.overrides = {"steps=6"}, .resume = true});
  EXPECT_THAT(messages_, Contains(AllOf(HasSubstr("continues with what it was started with"),
                                        HasSubstr("optimizer.lr=0.2"), Not(HasSubstr("steps=")))));
}

TEST_F(ResumedStart, WhereTheRunLiesIsNoChange) {
  train({.overrides = {"steps=4"}});
  fs::rename(folder_ / "run", folder_ / "elsewhere");
  TrainOptions options;
  options.run_dir = folder_ / "elsewhere";
  options.resume = true;
  messages_.clear();
  options.on_message = [this](const std::string& text) { messages_.push_back(text); };
  Trainer(folder_ / "train.toml", options).run();
  EXPECT_THAT(messages_, Each(Not(HasSubstr("run_dir"))));
}

TEST_F(ResumedStart, EverySecondResumeKnowsWhatTheOneBeforeWasGiven) {
  train({.overrides = {"steps=9"}, .stop_after = 2});
  train({.overrides = {"optimizer.lr=0.01"}, .stop_after = 4, .resume = true});
  EXPECT_EQ(train({.resume = true}).steps, 9u);
  EXPECT_THAT(read_file(folder_ / "run/train.resolved.toml"),
              AllOf(HasSubstr("lr = 0.01"), HasSubstr("steps = 9")));
}

TEST_F(ResumedStart, ThePolicyWasGivenRelativeToAFolderOfThen) {
  put_policy("gpu");
  const std::string here = current_folder();
  fs::current_path(folder_.path());
  fs::rename(folder_ / "policy.toml", folder_ / "mine.toml");
  fs::create_directory(folder_ / "sub");
  train({.overrides = {"policy=mine.toml", "steps=6"}, .stop_after = 2});
  const std::string where = placement();
  fs::current_path(folder_ / "sub");
  EXPECT_EQ(train({.resume = true}).steps, 6u);
  fs::current_path(here);
  EXPECT_EQ(placement(), where);
}

TEST_F(ResumedStart, AnotherLengthIsAskedFor) {
  train({.stop_after = 2});
  put_config("max_time = \"1 h\"");
  EXPECT_THAT(refusal({}), AllOf(HasSubstr("max_time: the run was started with another length"),
                                 HasSubstr("--accept-changes")));
  std::string text = read_file(folder_ / "train.toml");
  text.replace(text.find("epochs = 3"), 10, "epochs = 1");
  write_file(folder_ / "train.toml", text);
  EXPECT_THAT(refusal({}), AllOf(HasSubstr("epochs: the run was started with another length: "
                                           "expected 3"),
                                 HasSubstr("max_time"), HasSubstr("epochs=1")));
  // A key on the new command line shows that the change is wanted.
  EXPECT_EQ(train({.overrides = {"steps=4", "epochs=2", "max_time=\"2h\""}, .resume = true}).steps,
            4u);
}

TEST_F(ResumedStart, AnAcceptedLengthIsNamed) {
  train({.stop_after = 2});
  put_config("steps = 5");
  EXPECT_THAT(refusal({}), HasSubstr("expected not set, got 5"));
  EXPECT_EQ(train({.resume = true, .accepts = true}).steps, 5u);
  EXPECT_THAT(messages_, Contains(HasSubstr("accepted: the run was started with another length: "
                                            "steps: not set, now 5")));
}

TEST_F(ResumedStart, AnotherPlacementIsAskedFor) {
  const std::string policy = "policy=" + (folder_ / "policy.toml");
  train({.overrides = {policy, "steps=6"}, .stop_after = 2});
  const std::string before = read_file(folder_ / "run/policy.toml");
  put_policy("gpu");  // edited in the meantime
  EXPECT_THAT(refusal({}),
              AllOf(HasSubstr("rules.0.on: the run was started under another policy"),
                    HasSubstr("expected \"cpu\", got \"gpu\""), HasSubstr("--accept-changes")));
  put_policy("cpu");
  for (const Call& other : {Call{.devices = {"gpu=emulated:0,memory=1GiB"}},
                            Call{.place = {"{ at = \"fc1.**\", on = \"gpu\" }"}}})
    EXPECT_THAT(refusal(other), HasSubstr("other rules or devices on the command line"));
  EXPECT_THAT(refusal({.overrides = {"policy="}}), HasSubstr("another policy"));
  // Giving the old settings again is no change; nor is another spelling of the same rules.
  write_file(folder_ / "policy.toml", "# mine\n" + read_file(folder_ / "policy.toml"));
  train({.overrides = {policy}, .stop_after = 4, .resume = true});
  put_policy("gpu");
  write_file(folder_ / "kept.toml", before);
  EXPECT_EQ(
      train({.overrides = {"policy=" + (folder_ / "kept.toml")}, .stop_after = 5, .resume = true})
          .interrupted,
      true);
  EXPECT_EQ(train({.overrides = {policy}, .resume = true, .accepts = true}).steps, 6u);
  EXPECT_THAT(placement(), HasSubstr("gpu"));
  EXPECT_THAT(messages_, Contains(HasSubstr("accepted: the run was started under another policy")));
}

TEST_F(ResumedStart, EditsOfTheFileAreTakenAndNamed) {
  train({.overrides = {"steps=6", "log.every=1 steps"}, .stop_after = 2});
  std::string text = read_file(folder_ / "train.toml");
  text.replace(text.find("lr = 0.05"), 9, "lr = 0.02");
  text.replace(text.find("every = \"1 steps\""), 17, "every = \"9 steps\"");
  write_file(folder_ / "train.toml", text);
  EXPECT_EQ(train({.resume = true}).steps, 6u);
  EXPECT_THAT(messages_, Contains(HasSubstr("optimizer.lr: 0.05, now 0.02")));
  EXPECT_THAT(
      messages_,
      Contains(AllOf(HasSubstr("has log.every = \"9 steps\" now, and the run continues with "
                               "log.every=1 steps"))));
}

TEST_F(ResumedStart, ARecordThatIsDamagedMissingOrOfAnotherFormatIsNamed) {
  train({.stop_after = 2});
  const std::string file = folder_ / "run/started.json";
  Json record = Json::parse(read_file(file));
  write_file(file, "{");
  EXPECT_THAT(error_of([&] { train({.resume = true}); }, ErrorKind::data),
              HasSubstr("started.json"));
  record["format"] = 1;
  write_file(file, record.dump());
  EXPECT_THAT(refusal({}),
              AllOf(HasSubstr("started.json: format: another version of Tandem has"),
                    HasSubstr("expected format 2, got format 1"), HasSubstr("train in a new run")));
  fs::remove(file);
  EXPECT_THAT(refusal({}), HasSubstr("started.json: this run cannot be resumed: it lacks this"));
}

// A choice on the new command line drops options of the first one, as it does those of a file.
TEST(ResumedConfig, LaterCommandLinesOverrideEarlierOnes) {
  const tandem::testing::TemporaryFolder folder;
  write_file(folder / "m.onnx", "");
  write_file(folder / "train.toml",
             "model = \"m.onnx\"\nsteps = 1\n[optimizer]\nkind = \"adam\"\nlr = 0.1\n");
  StartRecord started;
  started.commands = {{{"optimizer.kind=sgd", "optimizer.momentum=0.9", "optimizer.lr=0.2"}, "/"},
                      {{"optimizer.lr=0.3"}, "/"}};
  const auto read = [&](const Keys& now) {
    return read_resumed_config(folder / "train.toml", started, MovedPaths(), now).optimizer.base;
  };
  EXPECT_EQ(read({}).lr, 0.3);
  EXPECT_EQ(read({}).number("momentum"), 0.9);
  EXPECT_EQ(read({"optimizer.lr=0.4"}).lr, 0.4);
  EXPECT_EQ(read({"optimizer.kind=adamw"}).kind->name, "adamw");  // adamw has no momentum
  started.commands.push_back({{"optimizer.kind=adamw"}, "/"});
  EXPECT_EQ(read({}).kind->name, "adamw");
  EXPECT_EQ(read({}).lr, 0.3);
  started.commands = {{{"optimizer.lrr=1"}, "/"}};
  EXPECT_THAT(error_of([&] { read({}); }), HasSubstr("command line that started the run"));
}

}  // namespace
}  // namespace tandem::api
