// Commands that read a run's checkpoints, where values are wrong although hashes are right, and
// where `checkpoints/best` names none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "tests/api/trained_runs.h"
#include "tests/training/edited_checkpoint.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using OrderedJson = EditedCheckpoint::Json;

/// "no error", or the number of the error's kind and its text.
std::string outcome_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.kind())) + " " + error.what();
  }
  return "no error";
}

class CheckpointConsumers : public ::testing::Test {
 protected:
  CheckpointConsumers() {
    write_digits(folder_);
    TrainOptions options;
    options.overrides = {"steps=4", "checkpoint.every=2 steps", "eval.best=accuracy"};
    testing::train(folder_, options);
  }
  /// The outcome of eval, predict and export for a checkpoint, which must be equal.
  std::string outcome(const std::string& checkpoint) {
    PredictOptions options;
    options.checkpoint = checkpoint;
    const std::string evaluated = outcome_of([&] { evaluate_run(run_, options); });
    options.to = folder_ / "predicted.tsv";
    options.data = {"images=" + (folder_ / "test-images")};
    EXPECT_EQ(outcome_of([&] { predict_run(run_, options); }), evaluated);
    const std::string to = folder_ / "weights.safetensors";
    const std::string which = checkpoint.empty() ? "best" : checkpoint;
    EXPECT_EQ(outcome_of([&] { export_run(run_, to, {.checkpoint = which}); }), evaluated);
    for (const char* words : {"json.exception", "filesystem error", "basic_string"})
      EXPECT_THAT(evaluated, Not(HasSubstr(words)));
    return evaluated;
  }

  TemporaryFolder folder_;
  const std::string run_ = folder_ / "run", checkpoints_ = run_ + "/checkpoints/",
                    newest_ = checkpoints_ + "step-00000004";
};

TEST_F(CheckpointConsumers, ThePointerToTheBestNamesACheckpoint) {
  EXPECT_EQ(outcome("best"), "no error");
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("step-00000004\0\n", 15),
        std::string("\0\0\0\0", 4), std::string("step-4"), std::string("../../run"),
        std::string("step-00000002\nstep-00000004\n"), std::string(4096, 'x')}) {
    write_file(checkpoints_ + "best", text);
    for (const char* checkpoint : {"best", ""}) {
      EXPECT_THAT(outcome(checkpoint),
                  AllOf(::testing::StartsWith("4 " + checkpoints_ +
                                              "best: does not name a "
                                              "checkpoint: expected a name like step-00001000"),
                        HasSubstr("choose \"latest\" or a step")));
    }
  }
  EXPECT_EQ(outcome("latest"), "no error");
  write_file(checkpoints_ + "best", "step-00000003\n");
  EXPECT_THAT(outcome("best"), HasSubstr("there is no such checkpoint (there are: step-"));
  EXPECT_THAT(outcome("step-4"), HasSubstr("\"step-4\" is not a checkpoint"));
  EXPECT_THAT(outcome("99999999999999999999"), HasSubstr("is not a checkpoint"));
}

TEST_F(CheckpointConsumers, WrongValuesAreRefusedByAll) {
  const EditedCheckpoint whole(newest_);
  const std::vector<std::tuple<const char*, const char*, OrderedJson, const char*>> cases{
      {"state.json", "/data/epoch", -1, "4 "},
      {"state.json", "/step", std::uint64_t{1} << 63, "4 "},
      {"state.json", "/format", nullptr, "4 "},
      {"state.json", "/format", 1, "2 "},
      {"fingerprint.json", "/format", 3, "2 "},
      {"manifest.json", "/format", std::uint64_t{1} << 63, "2 "},
      {"manifest.json", "/files", OrderedJson::array(), "4 "},
  };
  for (const auto& [file, place, value, code] : cases) {
    EditedCheckpoint changed = whole;
    changed.json(file)[OrderedJson::json_pointer(place)] = value;
    changed.write(newest_);
    EXPECT_THAT(outcome("4"), ::testing::StartsWith(code + newest_)) << file << place;
    // Only a damaged checkpoint is replaced by an older one.
    const std::string newest = outcome("latest");
    EXPECT_EQ(newest == "no error", *code == '4') << newest;
    EXPECT_TRUE(fs::exists(newest_));
  }
}

TEST_F(CheckpointConsumers, ADamagedOneNamesTheOthers) {
  const std::string file = newest_ + "/model.safetensors";
  std::string content = read_file(file);
  content.back() = static_cast<char>(content.back() ^ 1);
  write_file(file, content);
  EXPECT_THAT(outcome("4"), HasSubstr("(--checkpoint takes another one: step-00000002)"));
  fs::remove_all(checkpoints_ + "step-00000002");
  EXPECT_THAT(outcome("4"), HasSubstr("(take a whole copy of the run directory)"));
}

TEST_F(CheckpointConsumers, PathsMayEndInASlashAndAreNotEmpty) {
  EXPECT_EQ(outcome_of([&] { evaluate_run(newest_ + "/", {}); }), "no error");
  EXPECT_EQ(outcome_of([&] { evaluate_run(run_ + "/", {}); }), "no error");
  for (const auto& action : std::vector<std::function<void()>>{
           [] { evaluate_run("", {}); },
           [&] { export_run("", folder_ / "m.onnx", {.checkpoint = "best"}); },
           [] { Session("", 1, {}); }}) {
    EXPECT_THAT(outcome_of(action), AllOf(::testing::StartsWith("2 "), HasSubstr("empty")));
  }
  const fs::path before = fs::current_path();
  fs::create_directory(folder_ / "gone");
  fs::current_path(folder_ / "gone");
  fs::remove(folder_ / "gone");
  const std::string text = outcome_of([] { absolute_path("x"); });
  fs::current_path(before);
  EXPECT_THAT(text, HasSubstr("1 the current folder cannot be read: No such file or directory"));
}

}  // namespace
}  // namespace tandem::api
