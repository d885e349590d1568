// Checkpoints with correct hashes that hold numbers which no run can have written.
#include <filesystem>

#include "engine/graph/error.h"
#include "engine/operators/update_kind.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::infinity;
using ::testing::Not;
using testing::Trained;

const float not_a_number = std::nanf("");

struct Spoiled {
  const char* tensor;
  float value;
  const char* reason;  // nullptr: a run may have written it
};

// An infinite mean of squares, from gradients beyond 1.8e19, keeps its parameter where it is.
const std::vector<Spoiled>& cases() {
  static const std::vector<Spoiled> all{
      {"fc1.weight", not_a_number, "expected numbers, got nan"},
      {"fc1.weight", -infinity, "expected finite numbers, got inf"},
      {"fc1.weight", -1e30f, nullptr},
      {"fc2.bias/exp_avg", not_a_number, "expected numbers, got nan"},
      {"fc2.bias/exp_avg", infinity, "expected finite numbers, got inf"},
      {"fc2.bias/exp_avg", -2, nullptr},
      {"fc2.bias/exp_avg_sq", not_a_number, "expected numbers, got nan"},
      {"fc2.bias/exp_avg_sq", -1e-30f, "expected squares, 0 or more, got a number below 0"},
      {"fc2.bias/exp_avg_sq", -0.0f, nullptr},
      {"fc2.bias/exp_avg_sq", infinity, nullptr},
  };
  return all;
}

/// Writes the checkpoint anew with this value in the last element of the tensor.
void spoil(const std::string& path, const std::string& tensor, float value) {
  CheckpointContent content = read_checkpoint(path);
  bool found = false;
  for (std::vector<NamedTensor>* part : {&content.model, &content.optimizer}) {
    for (NamedTensor& t : *part) t.tensor = t.tensor.clone();  // not mapped from the files
    for (NamedTensor& t : *part) {
      if (t.name != tensor) continue;
      found = true;
      t.tensor.as<float>().back() = value;
    }
  }
  ASSERT_TRUE(found) << tensor;
  fs::remove_all(path);
  write_checkpoint(fs::path(path).parent_path().string(), content);
}

class CheckpointNumbers : public testing::TrainingRun {
 protected:
  /// A copy of a run that stopped at step 5, with checkpoints of steps 4 and 5.
  std::string copy() {
    if (stopped_.empty()) stopped_ = run(keys_, 5).result.run_dir;
    const std::string to = folder_ / ("copy-" + std::to_string(++copies_));
    fs::copy(stopped_, to, fs::copy_options::recursive);
    return to;
  }
  const std::vector<std::string> keys_{"optimizer.kind=adam", "checkpoint.every=\"2 steps\"",
                                       "checkpoint.keep=0"};
  std::string stopped_;
  int copies_ = 0;
};

TEST_F(CheckpointNumbers, WhatNoRunHasWrittenIsSetAside) {
  const Trained whole = run(keys_);
  for (const Spoiled& c : cases()) {
    SCOPED_TRACE(::testing::Message() << c.tensor << " " << c.value);
    const std::string run_dir = copy();
    spoil(run_dir + "/checkpoints/step-00000005", c.tensor, c.value);
    const Trained resumed = run(keys_, 0, run_dir);
    const bool set_aside = fs::exists(run_dir + "/checkpoints/broken-step-00000005");
    EXPECT_EQ(set_aside, c.reason != nullptr);
    if (c.reason == nullptr) {
      EXPECT_THAT(resumed.messages, Contains("resumed at step 5"));
      continue;
    }
    EXPECT_THAT(resumed.messages,
                Contains(AllOf(HasSubstr("checkpoint step-00000005 is broken and is not used: "),
                               HasSubstr(std::string("step-00000005: ") + c.tensor +
                                         ": holds a number that no run has written"),
                               HasSubstr(c.reason))));
    EXPECT_THAT(resumed.messages, Contains("resumed at step 4"));
    EXPECT_EQ(testing::difference(resumed.training->states(), whole.training->states()), "");
  }
}

TEST_F(CheckpointNumbers, ACheckpointAloneIsRefusedByTheNameOfTheTensor) {
  for (const Spoiled& c : cases()) {
    // The infinities of the model are not known here.
    if (c.reason == nullptr || std::string(c.reason).ends_with("inf")) continue;
    SCOPED_TRACE(c.tensor);
    const std::string path = copy() + "/checkpoints/step-00000005";
    spoil(path, c.tensor, c.value);
    try {
      read_checkpoint(path);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      EXPECT_THAT(error.what(), AllOf(HasSubstr(path + ": " + c.tensor), HasSubstr(c.reason)));
    }
  }
}

TEST_F(CheckpointNumbers, InfinitiesThatTheModelHasStay) {
  const std::string path = copy() + "/checkpoints/step-00000005";
  spoil(path, "fc1.weight", -infinity);
  EXPECT_NO_THROW(read_checkpoint(path));
  EXPECT_NO_THROW(
      read_checkpoint(path, [](const std::string& name) { return name == "fc1.weight"; }));
  EXPECT_THAT(testing::error_text([&] {
                read_checkpoint(path, [](const std::string& name) { return name == "fc2.weight"; });
              }),
              AllOf(HasSubstr("fc1.weight"), Not(HasSubstr("fc2"))));
}

// Two files of rows in several ranges; the last range has the bad number.
TEST(CheckpointNumbersOfTables, AreLookedAtToTheLastRow) {
  testing::TemporaryFolder folder;
  CheckpointContent content;
  content.position = testing::position_at(0);
  content.model.push_back({"table", HostTensor(TensorType{DType::float32, {5 << 10, 1 << 10}})});
  CheckpointOptions options;
  options.shard_bytes = std::uint64_t{12} << 20;
  write_checkpoint(folder.path(), content, options);
  const std::string path = folder / checkpoint_name(0);
  ASSERT_TRUE(fs::exists(path + "/model.table1-00002-of-00002.safetensors"));
  EXPECT_NO_THROW(read_checkpoint(path));
  content.model[0].tensor.as<float>().back() = not_a_number;
  fs::remove_all(path);
  write_checkpoint(folder.path(), content, options);
  EXPECT_THAT(testing::error_text([&] { read_checkpoint(path); }), HasSubstr("table: holds a"));
}

TEST(StatesOfSquares, AreThoseWhoseRootAStepTakes) {
  for (const char* name : {"exp_avg_sq", "sum", "row_sum", "accumulator"})
    EXPECT_TRUE(is_state_of_squares(name)) << name;
  for (const char* name : {"exp_avg", "momentum_buffer", "linear", "weight", ""})
    EXPECT_FALSE(is_state_of_squares(name)) << name;
}

}  // namespace
}  // namespace tandem
