// kill -9 at every file operation of a run whose table has its own files: nothing is lost.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "engine/formats/arrays/npy.h"
#include "engine/formats/safetensors.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "importer/import_graph.h"
#include "tests/end_to_end/table_model.h"
#include "tests/harness/program.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;

class TablesKillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("tandem-tables-kill-" + std::to_string(getpid()));
    fs::create_directories(root_);
    write_table_model(root_ / "table.onnx", 16);
    HostTensor ids(TensorType{DType::int64, {64}}), t(TensorType{DType::float32, {64, 16}});
    for (std::int64_t i = 0; i < 64; ++i) ids.as<std::int64_t>()[i] = i * i * 7 % 50'000;
    for (std::int64_t i = 0; i < 1024; ++i) t.as<float>()[i] = static_cast<float>(i % 5);
    write_npz(root_ / "train.npz", {{"ids", ids}, {"t", t}});
    std::ofstream(root_ / "train.toml") << R"(model = "table.onnx"
batch_size = 16
steps = 2
[parameters]
shape = [ { at = "table:weight", rows = 50000 } ]
init = [ { at = "table:weight", kind = "normal" } ]
[loss]
terms = [ { name = "mse", kind = "mse", predictions = "y", targets = "t" } ]
[optimizer]
kind = "sgd"
[data]
kind = "npz"
[data.train]
files = [ "train.npz" ]
[checkpoint]
every = "1 steps"
shard_mib = 1
)";
  }
  void TearDown() override { fs::remove_all(root_); }

  /// Runs the program with these words; its messages go to `log`, if given.
  static int execute(std::vector<std::string> words, const std::string& log) {
    const pid_t child = fork();
    if (child == 0) {
      if (freopen(log.c_str(), "a", stderr) == nullptr ||
          freopen("/dev/null", "w", stdout) == nullptr)
        _exit(99);
      words.insert(words.begin(), program);
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      execv(program.c_str(), arguments.data());
      _exit(98);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }

  int run(const fs::path& directory, bool resume, int kill_at_operation) const {
    const char* const variable = "TANDEM_KILL_AT_FILE_OPERATION";
    if (kill_at_operation > 0) setenv(variable, std::to_string(kill_at_operation).c_str(), 1);
    std::vector<std::string> words{"train", root_ / "train.toml", "--run-dir", directory};
    if (resume) words.push_back("--resume");
    const int status = execute(words, directory.string() + ".log");
    unsetenv(variable);
    return status;
  }
  static std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path root_;
};

TEST_F(TablesKillTest, NothingIsLostAtAnyFileOperation) {
  const fs::path whole = root_ / "whole";
  ASSERT_EQ(run(whole, false, 0), 0) << contents(whole.string() + ".log");
  const fs::path last = fs::path("checkpoints") / "step-00000002";
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(whole / last)) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().filename());
  }
  ASSERT_EQ(files.size(), 6u);  // 3.05 MiB in 4 files, the rest of the model, the optimizer
  int operation = 1;
  for (;; ++operation) {
    const fs::path directory = root_ / ("operation-" + std::to_string(operation));
    const int status = run(directory, false, operation);
    if (status == 0) break;  // the run has fewer operations
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        << contents(directory.string() + ".log");
    for (int attempt = 0; attempt < 3 && !fs::exists(directory / "summary.json"); ++attempt) {
      const bool begun = fs::exists(directory / "metrics.jsonl");
      if (!begun) fs::remove_all(directory);
      ASSERT_EQ(run(directory, begun, 0), 0) << contents(directory.string() + ".log");
    }
    for (const fs::path& file : files) {
      ASSERT_EQ(contents(directory / last / file), contents(whole / last / file))
          << "killed at operation " << operation << ": " << file;
    }
    fs::remove_all(directory);
  }
  EXPECT_GT(operation, 60);
}

TEST_F(TablesKillTest, TheTableIsInTheExportedFile) {
  const fs::path whole = root_ / "whole";
  ASSERT_EQ(run(whole, false, 0), 0) << contents(whole.string() + ".log");
  const CheckpointContent trained =
      read_checkpoint((whole / "checkpoints" / "step-00000002").string());
  ASSERT_EQ(trained.model.size(), 1u);
  const std::string log = root_ / "export.log";
  for (const std::string ending : {"onnx", "safetensors"}) {
    const fs::path to = root_ / ("trained." + ending);
    ASSERT_EQ(execute({"export", whole, "--to", to}, log), 0) << contents(log);
    HostTensor table;
    if (ending == "onnx") {
      const ImportResult found = import_graph(OnnxFile::open(to), all_operators(), {});
      table = found.graph.find_state("table.weight")->start;
    } else {
      table = *SafetensorsFile(to).find("table.weight");
    }
    EXPECT_EQ(table.shape(), (Shape{50'000, 16}));
    EXPECT_TRUE(same_bytes(table, trained.model[0].tensor)) << ending;
  }
}

}  // namespace
}  // namespace tandem::testing
