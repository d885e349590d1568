// The length of a resumed run: an interrupted run continues to the length that it was started with;
// one that has reached it continues to that of its train.toml.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;
using Keys = std::vector<std::string>;

constexpr const char* goes_on = "the run has reached the length that it was started with";

/// Batches of 480 of the 1437 digits: 3 steps per epoch.
class ResumedLength : public ::testing::Test {
 protected:
  ResumedLength() {
    for (const char* file : {"model.onnx", "digits_train.npz"})
      fs::copy(digits + file, folder_ / file);
  }

  void put_config(const std::string& length) {
    write_file(folder_ / "train.toml", "model = \"model.onnx\"\nbatch_size = 480\n" + length +
                                           R"toml(
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "adam"
lr = 0.01
[data]
kind = "npz"
eval = { fraction = 0.1 }
[data.train]
files = [ "digits_train.npz" ]
[data.fields]
image  = { from = "images", as = [ "scale(1/16)" ] }
labels = "labels"
[eval]
metrics = [ "loss" ]
[log]
every = "1 steps"
[checkpoint]
every = "1 steps"
keep = 0
)toml");
  }
  TrainResult train(const Keys& overrides, bool resume, std::uint64_t stop_after = 0) {
    TrainOptions options;
    options.overrides = overrides;
    options.run_dir = folder_ / run_;
    options.resume = resume;
    messages_.clear();
    options.on_message = [this](const std::string& text) { messages_.push_back(text); };
    options.on_progress = [&, stop = options.stop](const Progress& p) {
      if (stop_after > 0 && p.step >= stop_after) stop.request_stop();
    };
    return Trainer(folder_ / "train.toml", options).run();
  }
  TrainResult start(const Keys& overrides, std::uint64_t stop_after = 0) {
    fs::remove_all(folder_ / run_);
    return train(overrides, false, stop_after);
  }
  TrainResult resume(const Keys& overrides = {}, std::uint64_t stop_after = 0) {
    return train(overrides, true, stop_after);
  }
  /// The bytes of a file of the run.
  std::string bytes_of(const std::string& file) const {
    return read_file(folder_ / (run_ + "/" + file));
  }
  std::string weights_at(int step) const {
    return bytes_of("checkpoints/step-0000000" + std::to_string(step) + "/model.safetensors");
  }
  Keys recorded_keys() const {
    Keys all;
    const Json record = Json::parse(bytes_of("started.json"));
    for (const Json& command : record["commands"]) {
      for (const Json& key : command["keys"]) all.push_back(key);
    }
    return all;
  }

  tandem::testing::TemporaryFolder folder_;
  std::string run_ = "run";
  Keys messages_;
};

TEST_F(ResumedLength, OneThatHasReachedItGoesOnToThatOfTheFile) {
  put_config("steps = 6");
  start({"optimizer.lr=0.02"});
  const std::string whole = weights_at(6);
  for (const int first : {1, 2, 5}) {
    start({"steps=" + std::to_string(first), "optimizer.lr=0.02"});
    EXPECT_EQ(resume().steps, 6u) << first;
    EXPECT_THAT(messages_, Contains(AllOf(HasSubstr(goes_on),
                                          HasSubstr("(steps = " + std::to_string(first) + ")"),
                                          HasSubstr("train.toml (steps = 6)"))));
    EXPECT_EQ(weights_at(6), whole) << first;
    EXPECT_THAT(recorded_keys(), ElementsAre("optimizer.lr=0.02"));
  }
}

TEST_F(ResumedLength, EpochsAreALengthAsWell) {
  put_config("epochs = 2");
  start({"epochs=1"});
  EXPECT_EQ(resume().steps, 6u);
  start({"epochs=0.7"});  // two steps
  EXPECT_EQ(resume().steps, 6u);
  start({"steps=2"});
  EXPECT_EQ(resume().steps, 6u);
  EXPECT_THAT(messages_, Contains(HasSubstr("(epochs = 2.0)")));
  put_config("steps = 5");
  start({"epochs=1"});
  EXPECT_EQ(resume().steps, 5u);
  put_config("steps = 5\nepochs = 1");
  start({"steps=2"});
  EXPECT_EQ(resume().steps, 3u);
}

TEST_F(ResumedLength, AnInterruptedRunKeepsIts) {
  put_config("steps = 6");
  start({"steps=4"}, 2);
  EXPECT_EQ(resume({}, 3).steps, 3u);
  EXPECT_EQ(resume().steps, 4u);
  EXPECT_THAT(messages_, Not(Contains(HasSubstr(goes_on))));
  EXPECT_EQ(resume({}, 5).steps, 5u);  // interrupted again: the length is that of the present file
  EXPECT_EQ(resume().steps, 6u);
  EXPECT_THAT(messages_, Not(Contains(HasSubstr(goes_on))));
  EXPECT_EQ(resume().steps, 6u);
  EXPECT_THAT(messages_, Contains(HasSubstr("nothing left to do")));
}

TEST_F(ResumedLength, TheNewCommandLineHasTheLastWord) {
  put_config("steps = 6");
  start({"steps=2"});
  EXPECT_EQ(resume({"steps=2"}).steps, 2u);
  EXPECT_THAT(messages_, Contains(HasSubstr("it continues with more steps or epochs")));
  EXPECT_EQ(resume({"steps=4"}).steps, 4u);
  EXPECT_EQ(resume({"steps=3"}).steps, 4u);
  EXPECT_EQ(resume().steps, 6u);
  start({"epochs=0.4"});  // one step
  EXPECT_EQ(resume({"steps=4"}).steps, 4u);
  EXPECT_THAT(messages_, Contains(HasSubstr("this command line (steps = 4)")));
  EXPECT_EQ(resume().steps, 6u);
}

TEST_F(ResumedLength, AFileThatWasEditedForItIsTaken) {
  put_config("steps = 3");
  start({});
  put_config("steps = 5");
  EXPECT_EQ(resume().steps, 5u);
  EXPECT_THAT(messages_, Contains(AllOf(HasSubstr(goes_on), HasSubstr("(steps = 3)"))));
  put_config("steps = 4");
  EXPECT_THAT(error_of([&] { resume(); }), HasSubstr("started with another length"));
  EXPECT_TRUE(fs::exists(folder_ / "run/summary.json"));  // a refusal leaves the run as it is
}

TEST_F(ResumedLength, AFileThatSaysLessChangesNothing) {
  put_config("steps = 3");
  start({"steps=5"});
  EXPECT_EQ(resume().steps, 5u);
  EXPECT_THAT(messages_, Contains(HasSubstr("nothing left to do: the run is at step 5 of 5")));
  EXPECT_THAT(recorded_keys(), ElementsAre("steps=5"));
}

TEST_F(ResumedLength, ThePolicyStaysThatOfTheStart) {
  put_config("steps = 5");
  write_file(folder_ / "policy.toml",
             "policy = 1\ndevices = { gpu = { use = \"emulated:0\" } }\n"
             "rules = [ { at = \"fc*.**\", on = \"gpu\" } ]\n");
  start({"policy=" + (folder_ / "policy.toml"), "steps=2"});
  const std::string policy = bytes_of("policy.toml");
  EXPECT_THAT(policy, HasSubstr("emulated:0"));
  EXPECT_EQ(resume().steps, 5u);
  EXPECT_EQ(bytes_of("policy.toml"), policy);
  EXPECT_THAT(recorded_keys(), ElementsAre(HasSubstr("policy=")));
}

// An early end is no length: first the recorded one applies, then that of the file.
TEST_F(ResumedLength, OneThatStoppedEarlyHasNotReachedIt) {
  put_config("steps = 7");
  const Keys keys{"steps=5", "optimizer.lr=0.0", "eval.every=1 steps", "eval.best=loss",
                  "eval.patience=1"};
  start(keys);
  EXPECT_THAT(messages_, Contains(HasSubstr("stopped early")));
  EXPECT_EQ(resume().steps, 2u);
  EXPECT_THAT(messages_, Contains(HasSubstr("it continues with a larger eval.patience")));
  EXPECT_EQ(resume({"eval.patience=0"}).steps, 5u);
  EXPECT_THAT(messages_, Not(Contains(HasSubstr(goes_on))));
  EXPECT_EQ(resume().steps, 7u);
}

// Killed after the record was written and before anything else.
TEST_F(ResumedLength, OneThatWasKilledAsItWentOnGoesOn) {
  put_config("steps = 5");
  start({"steps=2"});
  Json record = Json::parse(bytes_of("started.json"));
  record["commands"] = Json::array();
  write_file(folder_ / "run/started.json", record.dump());
  EXPECT_EQ(resume({}, 3).steps, 3u);
  EXPECT_EQ(resume().steps, 5u);
  start({"steps=2"});
  write_file(folder_ / "run/started.json", record.dump());
  fs::remove(folder_ / "run/summary.json");
  EXPECT_EQ(resume().steps, 5u);
}

}  // namespace
}  // namespace tandem::api
