// Checkpoints are written whole or not at all; all damage is noticed, and the one before is used
// instead.
#include "engine/train/checkpoints/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/runtime/program.h"
#include "engine/train/divergence/finite_check.h"
#include "tests/harness/program_check.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CheckpointContent content_of(std::uint64_t step) {
  CheckpointContent content;
  content.position = testing::position_at(step, 32);
  content.position.seed = 5;
  content.position.held_out = 0.1;
  const float k = static_cast<float>(step);
  content.model.push_back({"fc1.weight", HostTensor::from<float>({2, 3}, {k, 1, 2, 3, 4, 5})});
  content.model.push_back({"bn.running_mean", HostTensor::from<float>({2}, {0.5, -0.5})});
  content.optimizer.push_back(
      {"fc1.weight/exp_avg", HostTensor::from<float>({2, 3}, {6, 5, 4, 3, 2, 1})});
  content.aliases["decoder.weight"] = "fc1.weight";
  return content;
}

void expect_equal(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    ASSERT_EQ(a[i].tensor.type(), b[i].tensor.type());
    EXPECT_EQ(std::memcmp(a[i].tensor.data(), b[i].tensor.data(), a[i].tensor.bytes()), 0)
        << a[i].name;
  }
}

class CheckpointTest : public ::testing::Test {
 protected:
  std::string path(std::uint64_t step) const { return folder_ / checkpoint_name(step); }
  void write(std::uint64_t step) { write_checkpoint(folder_.path(), content_of(step)); }
  std::vector<std::string> names() const { return list_checkpoints(folder_.path()); }

  testing::TemporaryFolder folder_;
};

TEST_F(CheckpointTest, NamesSortByStep) {
  EXPECT_EQ(checkpoint_name(0), "step-00000000");
  EXPECT_EQ(checkpoint_name(1000), "step-00001000");
  EXPECT_EQ(checkpoint_name(123456789), "step-123456789");
}

TEST_F(CheckpointTest, ReadsWhatWasWritten) {
  CheckpointContent written = content_of(7);
  written.position.best = 0.25;
  written.position.best_step = 4;
  written.position.best_metric = "auc";
  written.position.larger_is_better = true;
  written.position.evaluated = 5;
  written.position.evaluations_without_better = 1;
  written.position.finished = true;
  written.position.thawed = {{"fc1 until 1.5 epochs", true}, {"fc2 until 9 steps", false}};
  write_checkpoint(folder_.path(), written);
  const CheckpointContent read = read_checkpoint(path(7));
  expect_equal(read.model, written.model);
  expect_equal(read.optimizer, written.optimizer);
  EXPECT_EQ(read.aliases, written.aliases);
  const TrainingPosition &a = read.position, &b = written.position;
  EXPECT_EQ(std::tie(a.step, a.samples, a.seed, a.held_out, a.batch_size, a.best, a.best_step,
                     a.best_metric, a.larger_is_better, a.evaluations_without_better, a.finished),
            std::tie(b.step, b.samples, b.seed, b.held_out, b.batch_size, b.best, b.best_step,
                     b.best_metric, b.larger_is_better, b.evaluations_without_better, b.finished));
  EXPECT_EQ(a.data, b.data);
  EXPECT_EQ(a.thawed, b.thawed);
}

TEST_F(CheckpointTest, TheManifestListsEveryFile) {
  write(7);
  std::ifstream file(path(7) + "/manifest.json");
  const auto manifest = nlohmann::json::parse(file);
  EXPECT_EQ(manifest["files"].size(), 3u);
  for (const auto& [name, entry] : manifest["files"].items()) {
    const WrittenFile found = hash_file(path(7) + "/" + name);
    EXPECT_EQ(entry["bytes"].get<std::uint64_t>(), found.bytes);
    EXPECT_EQ(entry["sha256"].get<std::string>(), found.sha256);
  }
}

TEST_F(CheckpointTest, AnExistingStepIsReplaced) {
  write(7);
  CheckpointContent other = content_of(7);
  other.position.seed = 100;
  write_checkpoint(folder_.path(), other);
  EXPECT_EQ(read_checkpoint(path(7)).position.seed, 100u);
  EXPECT_EQ(list_directory(folder_.path()), (std::vector<std::string>{checkpoint_name(7)}));
}

TEST_F(CheckpointTest, NothingThereIsNoCheckpoint) {
  std::vector<std::string> messages;
  EXPECT_FALSE(newest_checkpoint(folder_.path(), messages));
  EXPECT_FALSE(newest_checkpoint(folder_ / "none", messages));
  EXPECT_THAT(messages, IsEmpty());
  EXPECT_THAT(testing::error_text([&] { read_checkpoint(folder_ / "none"); }),
              HasSubstr("there is no checkpoint here"));
}

// ---------------------------------------------------------------- damage

class DamageTest : public CheckpointTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    write(7);
    write(8);
  }
  std::string file() const { return path(8) + "/" + GetParam(); }

  /// The message names the newest with the file, and the one before it is used.
  void expect_fallback() {
    std::vector<std::string> messages;
    std::string used;
    const auto content = newest_checkpoint(folder_.path(), messages, &used);
    ASSERT_TRUE(content);
    EXPECT_EQ(content->position.step, 7u);
    EXPECT_EQ(used, path(7));
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_THAT(messages[0], HasSubstr("step-00000008"));
    EXPECT_THAT(messages[0], HasSubstr("broken"));
    try {
      read_checkpoint(path(8));
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      EXPECT_THAT(error.what(), HasSubstr("step-00000008"));
    }
  }
};

TEST_P(DamageTest, AMissingFile) {
  fs::remove(file());
  expect_fallback();
}

TEST_P(DamageTest, AFileCutShort) {
  fs::resize_file(file(), fs::file_size(file()) / 2);
  expect_fallback();
}

TEST_P(DamageTest, AnEmptyFile) {
  fs::resize_file(file(), 0);
  expect_fallback();
}

TEST_P(DamageTest, OneByteChanged) {
  std::fstream stream(file(), std::ios::in | std::ios::out | std::ios::binary);
  // The manifest has no hash of itself: change a hash in it; elsewhere any byte will do.
  std::string text((std::istreambuf_iterator<char>(stream)), {});
  const std::size_t hash = text.find("sha256");
  const std::size_t at = std::string(GetParam()) == "manifest.json" ? hash + 15 : text.size() - 2;
  stream.seekp(static_cast<std::streamoff>(at));
  stream.put(static_cast<char>(text[at] == '5' ? '6' : '5'));
  stream.close();
  expect_fallback();
}

TEST_P(DamageTest, OtherContents) {
  std::ofstream(file()) << "{ \"files\": [1, 2";
  expect_fallback();
}

INSTANTIATE_TEST_SUITE_P(EachFile, DamageTest,
                         ::testing::Values("model.safetensors", "optimizer.safetensors",
                                           "state.json", "manifest.json"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.substr(0, name.find('.'));
                         });

TEST_F(CheckpointTest, ManifestsOfAnotherShape) {
  write(7);
  for (const char* text :
       {"[]", "3", "null", "{}", R"({"files": {}})", R"({"files": {"model.safetensors": 3}})",
        R"({"files": {"model.safetensors": {"bytes": "many"}}})"}) {
    std::ofstream(path(7) + "/manifest.json") << text;
    EXPECT_NE(testing::error_text([&] { read_checkpoint(path(7)); }), "no error") << text;
  }
}

TEST_F(CheckpointTest, BrokenOnesAreSetAside) {
  for (const std::uint64_t step : {7, 8, 9}) write(step);
  fs::remove(path(9) + "/state.json");
  set_broken_checkpoints_aside(folder_.path(), 8);
  EXPECT_THAT(names(), ElementsAre("step-00000007", "step-00000008"));
  EXPECT_TRUE(fs::exists(folder_ / "broken-step-00000009"));
  write(9);
  EXPECT_EQ(read_checkpoint(path(9)).position.step, 9u);
}

/// Gives up superuser rights while it lives, so that permissions count.
class PlainUser {
 public:
  PlainUser() : is_plain_(::geteuid() != 0 || ::seteuid(65534) == 0) {}
  ~PlainUser() {
    if (::geteuid() != ::getuid()) {
      EXPECT_EQ(::seteuid(::getuid()), 0);
    }
  }
  bool is_plain() const { return is_plain_; }

 private:
  bool is_plain_;
};

TEST_F(CheckpointTest, OneThatMustNotBeReadIsNotBroken) {
  for (const std::uint64_t step : {7, 8}) write(step);
  fs::permissions(folder_.path(), static_cast<fs::perms>(0755));
  for (const std::string& locked : {path(8), path(8) + "/state.json"}) {
    const fs::perms before = fs::status(locked).permissions();
    fs::permissions(locked, fs::perms::none);
    std::vector<std::string> messages;
    std::string newest, named;
    {
      const PlainUser user;
      if (!user.is_plain() || !is_directory(path(7))) GTEST_SKIP() << "permissions do not count";
      newest = testing::error_text([&] { newest_checkpoint(folder_.path(), messages); });
      named = testing::error_text([&] { read_checkpoint(path(8)); });
    }
    fs::permissions(locked, before);
    EXPECT_THAT(newest, HasSubstr(locked + ": the checkpoint cannot be read: permission denied"));
    EXPECT_EQ(named, newest);
    EXPECT_THAT(messages, IsEmpty());
  }
}

// ---------------------------------------------------------------- interrupted writes

/// Stops a write before its n-th file operation.
struct Stopped {};
class StopAt {
 public:
  explicit StopAt(int operation) {
    set_file_hook([operation, count = 0](std::string_view, std::string_view) mutable {
      if (++count == operation) throw Stopped{};
    });
  }
  ~StopAt() { set_file_hook({}); }
};

TEST_F(CheckpointTest, AnInterruptedWriteLeavesTheOneBeforeNewest) {
  write(7);
  int operation = 1;
  for (;; ++operation) {
    bool stopped = false;
    try {
      const StopAt stop(operation);
      write(8);
    } catch (const Stopped&) {
      stopped = true;
    }
    if (!stopped) break;
    EXPECT_FALSE(fs::exists(folder_ / "step-00000008.new"))
        << "takes room, stopped at " << operation;
    std::vector<std::string> messages;
    const auto content = newest_checkpoint(folder_.path(), messages);
    ASSERT_TRUE(content);
    EXPECT_THAT(messages, IsEmpty());  // leftovers are no broken checkpoints
    if (content->position.step == 8) fs::remove_all(path(8));  // stopped after the rename
    for (const std::string& name : names()) EXPECT_EQ(name, "step-00000007");
  }
  EXPECT_GT(operation, 15);
  EXPECT_EQ(read_checkpoint(path(8)).position.step, 8u);
}

TEST_F(CheckpointTest, LeftoversDisappear) {
  write(7);
  fs::create_directories(folder_ / "step-00000008.new");
  std::ofstream(folder_ / "step-00000008.new/model.safetensors") << "torn";
  EXPECT_THAT(names(), ElementsAre("step-00000007"));
  write(8);
  EXPECT_EQ(read_checkpoint(path(8)).position.step, 8u);
  fs::create_directories(folder_ / "step-00000009.new");
  prune_checkpoints(folder_.path(), 0, 0);
  EXPECT_FALSE(fs::exists(folder_ / "step-00000009.new"));
}

// ---------------------------------------------------------------- how many are kept

TEST_F(CheckpointTest, TheNewestAndTheBestAreKept) {
  for (std::uint64_t step = 1; step <= 6; ++step) write(step);
  std::ofstream(folder_ / "best") << "step-00000002\n";
  prune_checkpoints(folder_.path(), 2, 2);
  EXPECT_THAT(names(), ElementsAre("step-00000002", "step-00000005", "step-00000006"));
  EXPECT_TRUE(fs::exists(folder_ / "best"));
  prune_checkpoints(folder_.path(), 0, 2);
  EXPECT_EQ(names().size(), 3u);
  prune_checkpoints(folder_.path(), 2, 0);
  EXPECT_THAT(names(), ElementsAre("step-00000005", "step-00000006"));
}

TEST_F(CheckpointTest, AnInterruptedRemovalLeavesWholeOnes) {
  int operation = 1;
  for (bool stopped = true; stopped; ++operation) {
    for (std::uint64_t step = 7; step <= 10; ++step) write(step);
    stopped = false;
    try {
      const StopAt stop(operation);
      prune_checkpoints(folder_.path(), 2, 0);
    } catch (const Stopped&) {
      stopped = true;
    }
    for (const std::string& name : names())
      EXPECT_NO_THROW(read_checkpoint(folder_ / name)) << name;
    remove_unfinished_checkpoints(folder_.path());
  }
  EXPECT_GT(operation, 8);
  EXPECT_THAT(names(), ElementsAre("step-00000009", "step-00000010"));
}

// ---------------------------------------------------------------- states

class StatesTest : public ::testing::Test {
 protected:
  StatesTest() {
    GraphBuilder g(engine_.operators);
    auto add = [&](const std::string& name, StateKind kind, float value) {
      State state;
      state.name = name;
      state.kind = kind;
      state.start = HostTensor::from<float>({3}, {value, value, value});
      g.output("read." + name, g.add_node("Neg", {g.state(state)}));
    };
    add("w", StateKind::parameter, 1);
    add("mean", StateKind::buffer, 2);
    add("w/exp_avg", StateKind::optimizer, 3);
    add("w/gradient_sum", StateKind::optimizer, 4);
    own_ = testing::make_program(g.finish(), engine_.operators, *engine_.cpu);
  }
  testing::SmallEngine engine_;
  testing::OwnProgram own_;
};

TEST_F(StatesTest, AreSplitAsTheFilesAre) {
  CheckpointContent content;
  collect_states(own_.states, content);
  auto names = [](const std::vector<NamedTensor>& tensors) {
    std::vector<std::string> result;
    for (const NamedTensor& t : tensors) result.push_back(t.name);
    return result;
  };
  EXPECT_THAT(names(content.model), ElementsAre("w", "mean"));
  EXPECT_THAT(names(content.optimizer), ElementsAre("w/exp_avg"));  // sums live within a step
  for (float& x : content.model[0].tensor.as<float>()) x = 9;
  restore_states(own_.states, content);
  EXPECT_EQ(own_.states.read("w").as<float>()[2], 9);
  EXPECT_EQ(own_.states.read("mean").as<float>()[2], 2);
}

TEST_F(StatesTest, ThoseThatAreNotFiniteAreNamedTogether) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(not_finite_states(own_.states, {}), IsEmpty());
  own_.states.write("mean", HostTensor::from<float>({3}, {1, -infinity, 2}));
  EXPECT_THAT(not_finite_states(own_.states, {"mean"}), IsEmpty());
  own_.states.write("w", HostTensor::from<float>({3}, {1, 1, std::nanf("")}));
  const std::vector<NotFiniteState> bad = not_finite_states(own_.states, {"w"});
  ASSERT_EQ(bad.size(), 2u);
  EXPECT_EQ(bad[0].name, "w");
  EXPECT_EQ(bad[0].worst, Finiteness::nan);
  EXPECT_EQ(bad[1].name, "mean");
  EXPECT_EQ(bad[1].worst, Finiteness::infinite);
  EXPECT_THAT(to_string(diagnostic_of(bad[0], " at step 7")),
              HasSubstr("w: a parameter or running statistic is not finite at step 7"));
}

TEST_F(StatesTest, MissingAndOtherStatesAreNamedTogether) {
  CheckpointContent content;
  collect_states(own_.states, content);
  content.model[0].tensor = HostTensor(TensorType{DType::float32, {4}});
  content.optimizer.clear();
  try {
    restore_states(own_.states, content);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    ASSERT_EQ(error.diagnostics().size(), 2u);
    EXPECT_THAT(error.what(), HasSubstr("w: the checkpoint has another type for this state"));
    EXPECT_THAT(error.what(), HasSubstr("w/exp_avg: the checkpoint does not have this state"));
  }
}

}  // namespace
}  // namespace tandem
