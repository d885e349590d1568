// Bad data on several ranks of a real mpirun: they end as one process does, and save the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "kernels/mpi/join_ranks.h"
#include "tests/api/small_model.h"
#include "tests/harness/folders.h"
#include "tests/harness/rank_environment.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct EndOfRun {
  int code = 0;
  std::string text;
  std::vector<std::string> saved;  // names of checkpoints
};

void expect_alike(const std::vector<NamedTensor>& one, const std::vector<NamedTensor>& two) {
  std::map<std::string, HostTensor> others;
  for (const NamedTensor& tensor : two) others.emplace(tensor.name, tensor.tensor);
  ASSERT_EQ(others.size(), one.size());
  for (const NamedTensor& tensor : one) {
    ASSERT_TRUE(others.contains(tensor.name)) << tensor.name;
    const HostTensor& other = others.at(tensor.name);
    ASSERT_EQ(other.type(), tensor.tensor.type()) << tensor.name;
    for (std::int64_t i = 0; i < tensor.tensor.type().elements(); ++i)
      ASSERT_NEAR(other.number(i), tensor.tensor.number(i), 1e-5) << tensor.name << " " << i;
  }
}

class BadDataOnRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (mpi_report().launcher.empty()) GTEST_SKIP() << "there is no mpirun (openmpi-bin)";
    set_rank_environment();
  }

  /// Writes a train.toml for this model, with steps of 8 samples; all steps are logged.
  void configure(const std::string& model, const std::string& data, const std::string& more = "") {
    write_file(folder_ / "train.toml", "model = \"" + model +
                                           "\"\nbatch_size = 8\nepochs = 3\nthreads = 1\n"
                                           "optimizer = { kind = \"adam\", lr = 0.05 }\n"
                                           "log = { every = \"1 steps\" }\n" +
                                           more +
                                           "loss = { terms = [ { kind = \"softmax_cross_entropy\", "
                                           "logits = \"logits\", labels = \"labels\" } ] }\n"
                                           "[data]\n" +
                                           data);
  }
  /// Writes a model with a dense layer of `width` numbers.
  void write_dense(const std::string& width_of, std::int64_t width, const Shape& shape) {
    SmallModel model;
    model.input("x", shape);
    std::string x = "x";
    if (shape.size() > 2) {
      model.node("Flatten", "flatten", {"x"}, "flat");
      x = "flat";
    }
    model.weight("weight", {width, 2}, 0.1f)
        .node("MatMul", "fc", {x, "weight"}, "logits")
        .output("logits", {8, 2});
    write_file(folder_ / width_of, model.bytes());
  }
  /// Writes 40 pictures of two classes; the one that the fifth step reads last is cut short.
  void write_pictures() {
    const std::string picture = read_file(source_folder() + "/tests/data/images/rgb.png");
    for (int i = 0; i < 40; ++i) {
      const std::string name = std::to_string(100 + i) + ".png";
      std::filesystem::create_directories(folder_ / "pictures/a");
      std::filesystem::create_directories(folder_ / "pictures/b");
      const bool is_cut = i == 39;
      write_file(folder_ / ((i < 20 ? "pictures/a/" : "pictures/b/") + name),
                 is_cut ? picture.substr(0, picture.size() / 2) : picture);
    }
    write_dense("dense.onnx", 741, {8, 3, 13, 19});
  }
  static constexpr const char* picture_data =
      "kind = \"images\"\ntrain = { files = [ \"pictures\" ], shuffle = \"none\" }\n"
      "fields = { x = { from = \"images\", as = [ \"scale(1/255)\" ] }, labels = \"labels\" }\n";
  static constexpr const char* row_data =
      "kind = \"csv\"\ntrain = { files = [ \"rows.csv\" ], shuffle = \"none\" }\n"
      "fields = { x = { from = [ \"a\", \"b\" ], as = [ \"float32\" ] }, "
      "labels = { from = \"label\", as = [ \"int64\" ] } }\n";

  /// Writes 40 rows; line 39 is `bad`.
  void write_rows(const std::string& bad) {
    std::string text = "a,b,label\n";
    for (int i = 0; i < 40; ++i) {
      const std::string row = std::to_string(i * 7 % 5 - 2) + "," + std::to_string(i * 3 % 4) +
                              "," + std::to_string(i % 2);
      text += (i == 37 ? bad : row) + "\n";
    }
    write_file(folder_ / "rows.csv", text);
    write_dense("dense.onnx", 2, {8, 2});
  }

  EndOfRun train(int ranks, const std::string& run, const std::string& more = "") {
    const std::string command = "cd " + std::string(folder_ / "") + " && OMP_WAIT_POLICY=passive " +
                                build_folder() + "/tandem " +
                                (ranks > 1 ? "launch -n " + std::to_string(ranks) + " -- " : "") +
                                "train train.toml --run-dir " + run + " " + more + " 2>&1";
    FILE* const pipe = popen(command.c_str(), "r");
    EndOfRun end;
    std::array<char, 1024> buffer{};
    while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) end.text += buffer.data();
    end.code = WEXITSTATUS(pclose(pipe));
    if (path_exists(checkpoints(run))) end.saved = list_checkpoints(checkpoints(run));
    return end;
  }
  std::string checkpoints(const std::string& run) const { return folder_ / (run + "/checkpoints"); }

  /// Both runs must end with this code and text and have saved equal checkpoints after the same
  /// steps.
  void expect_equal_ends(int code, const std::string& text, const std::vector<std::string>& saved,
                         const std::string& prefix = "") {
    const EndOfRun one = train(1, prefix + "one"), two = train(2, prefix + "two");
    for (const EndOfRun* end : {&one, &two}) {
      EXPECT_EQ(end->code, code) << end->text;
      EXPECT_THAT(end->text, HasSubstr(text));
      EXPECT_EQ(end->saved, saved) << end->text;
    }
    if (one.saved != two.saved) return;
    for (const std::string& name : one.saved) {
      const CheckpointContent first = read_checkpoint(checkpoints(prefix + "one") + "/" + name);
      const CheckpointContent second = read_checkpoint(checkpoints(prefix + "two") + "/" + name);
      EXPECT_EQ(first.position.samples, second.position.samples);
      expect_alike(first.model, second.model);
      expect_alike(first.optimizer, second.optimizer);
    }
  }

  TemporaryFolder folder_;
};

TEST_F(BadDataOnRanks, APictureThatIsCut) {
  write_pictures();
  configure("dense.onnx", picture_data);
  expect_equal_ends(4, "139.png", {"step-00000004"});
  write_file(folder_ / "pictures/b/139.png", read_file(folder_ / "pictures/b/138.png"));
  EXPECT_EQ(train(2, "two", "--resume --accept-changes").code, 0);  // continues after it
}

TEST_F(BadDataOnRanks, APictureThatIsCutWithStatesThatRanksShareOut) {
  write_pictures();
  write_file(folder_ / "policy.toml",
             "policy = 1\nrules = [ { at = \"**\", shard = \"state\" } ]\n");
  configure("dense.onnx", picture_data, "policy = \"policy.toml\"\n");
  expect_equal_ends(4, "139.png", {"step-00000004"});
}

TEST_F(BadDataOnRanks, ACellThatIsNoNumber) {
  write_rows("1,oops,0");
  configure("dense.onnx", row_data);
  expect_equal_ends(4, "rows.csv:39:2: data.fields.x: column `b`: not a number", {});
}

TEST_F(BadDataOnRanks, ALabelThatIsNoClass) {
  write_rows("1,2,2");
  configure("dense.onnx", row_data);
  expect_equal_ends(4, "expected 0 to 1, got 2", {});
}

// The step has clamped the id, so its result is dropped; earlier checkpoints are kept.
TEST_F(BadDataOnRanks, AnIdThatTheModelComputes) {
  std::string text = "id,label\n";
  for (int i = 0; i < 40; ++i)
    text += std::to_string(i == 37 ? 7 : i % 6) + "," + std::to_string(i % 2) + "\n";
  write_file(folder_ / "rows.csv", text);
  write_file(folder_ / "squares.onnx", SmallModel()
                                           .input("ids", {8}, 7)
                                           .weight("table", {40, 2}, 0.1f)
                                           .node("Mul", "square", {"ids", "ids"}, "squares")
                                           .node("Gather", "lookup", {"table", "squares"}, "logits")
                                           .output("logits", {8, 2})
                                           .bytes());
  configure("squares.onnx",
            "kind = \"csv\"\ntrain = { files = [ \"rows.csv\" ], shuffle = \"none\" }\n"
            "fields = { ids = { from = \"id\", as = [ \"int64\" ] }, "
            "labels = { from = \"label\", as = [ \"int64\" ] } }\n",
            "checkpoint = { every = \"2 steps\", keep = 0 }\n");
  expect_equal_ends(4, "an index is out of range at step 5: got 49",
                    {"step-00000002", "step-00000004"});
}

TEST_F(BadDataOnRanks, AnInfinity) {
  write_dense("dense.onnx", 2, {8, 2});
  std::vector<float> x;
  std::vector<std::int64_t> labels;
  for (int i = 0; i < 40; ++i) {
    x.push_back(static_cast<float>(i * 7 % 5 - 2));
    x.push_back(i == 37 ? std::numeric_limits<float>::infinity() : static_cast<float>(i * 3 % 4));
    labels.push_back(i % 2);
  }
  write_npz(folder_ / "rows.npz", {{"x", HostTensor::from<float>({40, 2}, x)},
                                   {"labels", HostTensor::from<std::int64_t>({40}, labels)}});
  configure("dense.onnx",
            "kind = \"npz\"\ntrain = { files = [ \"rows.npz\" ], shuffle = \"none\" }\n"
            "fields = { x = \"x\", labels = \"labels\" }\n",
            "checkpoint = { every = \"2 steps\", keep = 0 }\n");
  expect_equal_ends(5, "rows.npz:38: data.fields.x: an infinity in the data",
                    {"step-00000002", "step-00000004"});
}

TEST_F(BadDataOnRanks, AFullDisk) {
  write_rows("1,2,0");
  configure("dense.onnx", row_data, "checkpoint = { every = \"2 steps\", keep = 0 }\n");
  const std::string small = folder_ / "small";
  std::filesystem::create_directories(small);
  if (mount("none", small.c_str(), "tmpfs", 0, "size=128k") != 0)
    GTEST_SKIP() << "no small disk can be made (that takes the rights of root)";
  std::vector<std::vector<std::string>> saved;
  for (const int ranks : {1, 2}) {
    const EndOfRun end = train(ranks, "small/run", "epochs=200");
    EXPECT_EQ(end.code, 1) << end.text;
    EXPECT_THAT(end.text, HasSubstr("No space left on device (make room on that disk)"));
    EXPECT_THAT(end.saved, ::testing::Not(IsEmpty()));
    for (const std::string& name : end.saved)
      EXPECT_THAT(read_checkpoint(checkpoints("small/run") + "/" + name).model, SizeIs(1));
    saved.push_back(end.saved);
    std::filesystem::remove_all(small + "/run");
  }
  EXPECT_EQ(umount(small.c_str()), 0);
  EXPECT_EQ(saved[0].front(), saved[1].front());
}

}  // namespace
}  // namespace tandem::testing
