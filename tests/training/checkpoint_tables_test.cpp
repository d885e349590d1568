// Checkpoints whose large tensors have files of their own: read back unchanged, all damage noticed,
// interrupted anywhere without loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/formats/files.h"
#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "tests/harness/program_check.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

HostTensor numbers_from(Shape shape, float first) {
  HostTensor tensor(TensorType{DType::float32, std::move(shape)});
  std::iota(tensor.as<float>().begin(), tensor.as<float>().end(), first);
  return tensor;
}

CheckpointContent table_content_of(std::uint64_t step) {
  CheckpointContent content;
  content.position = testing::position_at(step);
  const float k = static_cast<float>(step);
  content.model.push_back({"deep.weight", numbers_from({40'000, 5}, k)});
  content.model.push_back({"fc.weight", numbers_from({2, 3}, k)});
  content.model.push_back({"wide.weight", numbers_from({90'000, 1}, 2 * k)});
  content.optimizer.push_back({"deep.weight/exp_avg", numbers_from({40'000, 5}, 3 * k)});
  content.aliases["decoder.weight"] = "deep.weight";
  return content;
}

class CheckpointTables : public ::testing::Test {
 protected:
  std::string path(std::uint64_t step) const { return folder_ / checkpoint_name(step); }
  void write(std::uint64_t step) {
    write_checkpoint(folder_.path(), table_content_of(step), small_);
  }
  std::vector<std::string> shard_files(std::uint64_t step) const {
    std::vector<std::string> files;
    for (const std::string& name : list_directory(path(step))) {
      if (name.find(".table") != std::string::npos) files.push_back(name);
    }
    return files;
  }
  const CheckpointOptions small_{300'000};
  testing::TemporaryFolder folder_;
};

TEST_F(CheckpointTables, AreReadBack) {
  write(7);
  const CheckpointContent written = table_content_of(7), read = read_checkpoint(path(7));
  ASSERT_EQ(read.model.size(), 3u);
  for (const NamedTensor& tensor : written.model) {
    const auto same = std::find_if(read.model.begin(), read.model.end(),
                                   [&](const NamedTensor& t) { return t.name == tensor.name; });
    ASSERT_NE(same, read.model.end()) << tensor.name;
    EXPECT_TRUE(testing::same_bytes(same->tensor, tensor.tensor)) << tensor.name;
  }
  ASSERT_EQ(read.optimizer.size(), 1u);
  EXPECT_TRUE(testing::same_bytes(read.optimizer[0].tensor, written.optimizer[0].tensor));
  EXPECT_EQ(read.aliases, written.aliases);
}

TEST_F(CheckpointTables, AreListedWithTheirRows) {
  write(7);
  EXPECT_EQ(shard_files(7).size(), 8u);  // 3 of deep, 2 of wide, 3 of its moment
  const auto manifest = nlohmann::json::parse(read_file(path(7) + "/manifest.json"));
  EXPECT_EQ(manifest["files"].size(), 11u);
  const auto& first = manifest["files"].at("model.table1-00001-of-00003.safetensors");
  EXPECT_EQ(first["tensor"], "deep.weight");
  EXPECT_EQ(first["first_row"], 0);
  EXPECT_EQ(first["part"], "model");
  for (const auto& [name, entry] : manifest["files"].items()) {
    const WrittenFile found = hash_file(path(7) + "/" + name);
    EXPECT_EQ(entry["sha256"].get<std::string>(), found.sha256) << name;
  }
  const SafetensorsFile rest(path(7) + "/model.safetensors");
  EXPECT_EQ(rest.tensors().size(), 1u);
  EXPECT_EQ(rest.metadata().at("table:wide.weight"), "model.table2-00001-of-00002.safetensors");
}

TEST_F(CheckpointTables, DamageOfAnyFileIsNoticed) {
  write(7);
  write(8);
  for (const std::string& name : shard_files(8)) {
    SCOPED_TRACE(name);
    const std::string file = path(8) + "/" + name, whole = read_file(file);
    for (const int damage : {0, 1, 2}) {
      std::string text = whole;
      if (damage == 0) text[text.size() - 9] ^= 1;
      if (damage == 1) text.resize(text.size() / 2);
      if (damage == 2) {
        fs::remove(file);
      } else {
        std::ofstream(file, std::ios::binary) << text;
      }
      std::vector<std::string> messages;
      const auto content = newest_checkpoint(folder_.path(), messages);
      ASSERT_TRUE(content);
      EXPECT_EQ(content->position.step, 7u);
      ASSERT_EQ(messages.size(), 1u);
      EXPECT_THAT(messages[0], HasSubstr(name));
    }
    std::ofstream(file, std::ios::binary) << whole;
  }
  EXPECT_EQ(read_checkpoint(path(8)).position.step, 8u);
}

TEST_F(CheckpointTables, AManifestThatLeavesRowsOutIsNoticed) {
  write(7);
  const std::string file = path(7) + "/manifest.json", whole = read_file(file);
  const auto error_without = [&](const std::vector<std::string>& names) {
    auto manifest = nlohmann::ordered_json::parse(whole);
    for (const std::string& name : names) manifest["files"].erase(name);
    std::ofstream(file) << manifest.dump();
    return testing::error_text([&] { read_checkpoint(path(7)); });
  };
  const std::string first = "model.table2-00001-of-00002.safetensors",
                    last = "model.table2-00002-of-00002.safetensors";
  EXPECT_THAT(error_without({last}), HasSubstr("rows are missing after it: expected 90000 rows"));
  EXPECT_THAT(error_without({first}), HasSubstr("does not list the rows of \"wide.weight\""));
  EXPECT_THAT(error_without({first, last}), HasSubstr("does not list the rows of \"wide.weight\""));
  EXPECT_EQ(error_without({}), "no error");
}

/// Stops a write before its n-th file operation, whatever thread makes it.
struct WriteStopped {};
class StopFrom {
 public:
  explicit StopFrom(int operation) {
    set_file_hook([this, operation](std::string_view, std::string_view) {
      if (++count_ >= operation) throw WriteStopped{};
    });
  }
  ~StopFrom() { set_file_hook({}); }

 private:
  std::atomic<int> count_{0};
};

TEST_F(CheckpointTables, AnInterruptedWriteLeavesTheOneBeforeNewest) {
  write(7);
  int operation = 1;
  for (;; ++operation) {
    bool stopped = false;
    try {
      const StopFrom stop(operation);
      write(8);
    } catch (const WriteStopped&) {
      stopped = true;
    }
    if (!stopped) break;
    std::vector<std::string> messages;
    const auto content = newest_checkpoint(folder_.path(), messages);
    ASSERT_TRUE(content);
    EXPECT_THAT(messages, IsEmpty());
    if (content->position.step == 8) fs::remove_all(path(8));  // stopped after the rename
  }
  EXPECT_GT(operation, 40);
  EXPECT_EQ(read_checkpoint(path(8)).position.step, 8u);
}

TEST(CheckpointStates, GoFromAndToTheStatesInRows) {
  testing::SmallEngine engine;
  GraphBuilder g(engine.operators);
  State state;
  state.name = "deep.weight";
  state.start = numbers_from({700'000, 5}, 1);  // 14 MB: several ranges
  g.output("y", g.add_node("Neg", {g.state(state)}));
  const Graph graph = g.finish();
  testing::OwnProgram trained = testing::make_program(graph, engine.operators, *engine.cpu);
  testing::TemporaryFolder folder;
  for (const std::uint64_t shard_bytes : {std::uint64_t{1} << 30, std::uint64_t{3'000'000}}) {
    CheckpointSources sources = sources_of(trained.states);
    sources.position = testing::position_at(shard_bytes);
    write_checkpoint(folder.path(), sources, {shard_bytes});
    testing::OwnProgram resumed = testing::make_program(graph, engine.operators, *engine.cpu);
    resumed.states.write("deep.weight", HostTensor(state.start.type()));
    restore_states(resumed.states, read_checkpoint(folder / checkpoint_name(shard_bytes)));
    EXPECT_EQ(testing::difference(resumed.states, trained.states), "");
  }
}

}  // namespace
}  // namespace tandem
