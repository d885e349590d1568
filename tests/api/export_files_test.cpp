// Output of an export: other files are kept, and a failure leaves everything unchanged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/config/run_config.h"
#include "engine/formats/arrays/npy.h"
#include "tests/api/error_of.h"
#include "tests/api/small_model.h"
#include "tests/api/trained_runs.h"
#include "tests/harness/failing_files.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using namespace tandem::testing;
using ::testing::HasSubstr;

class ExportFilesTest : public ::testing::Test {
 protected:
  ExportFilesTest() {
    write_clicks(folder_);
    testing::train(folder_);
    fs::create_directory(out_);
  }
  TemporaryFolder folder_;
  const std::string run_ = folder_ / "run", out_ = folder_ / "out";
};

TEST_F(ExportFilesTest, NeighboursStayAndFailuresLeaveNothing) {
  for (const std::string name : {"w.npz", "w.safetensors", "w.onnx"}) {
    SCOPED_TRACE(name);
    const std::string to = out_ + "/" + name;
    write_file(to, "old");
    write_file(to + ".new", "the user's");
    EXPECT_GE(expect_nothing_left(out_, [&] { export_run(run_, to); }), 4);
    EXPECT_NE(read_file(to), "old");
    EXPECT_EQ(read_file(to + ".new"), "the user's");
    fs::remove(to);
    fs::remove(to + ".new");
    EXPECT_EQ(list_directory(out_), std::vector<std::string>{"w.vocabulary.ids.tsv"});
    fs::remove(out_ + "/w.vocabulary.ids.tsv");
  }
}

TEST_F(ExportFilesTest, LinksAndPermissionsStay) {
  for (const std::string name : {"w.npz", "w.safetensors", "w.onnx"}) {
    SCOPED_TRACE(name);
    const std::string real = out_ + "/real", to = out_ + "/" + name;
    write_file(real, "old");
    fs::permissions(real, fs::perms::owner_read | fs::perms::owner_write);
    fs::remove(to);
    fs::create_symlink("real", to);
    export_run(run_, to);
    EXPECT_TRUE(fs::is_symlink(to));
    EXPECT_NE(read_file(real), "old");
    EXPECT_EQ(fs::status(real).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    fs::permissions(real, fs::perms::owner_read);
    EXPECT_THAT(error_of([&] { export_run(run_, to); }), HasSubstr("must not be written to"));
    fs::permissions(real, fs::perms::owner_all);
  }
}

TEST_F(ExportFilesTest, WeightsAndVocabulariesAreReplacedTogether) {
  const std::string to = out_ + "/w.npz", vocabulary = out_ + "/w.vocabulary.ids.tsv";
  write_file(to, "old");
  write_file(vocabulary, "old");
  fs::permissions(vocabulary, fs::perms::owner_read);
  EXPECT_THAT(error_of([&] { export_run(run_, to); }), HasSubstr("must not be written to"));
  EXPECT_EQ(read_file(to), "old");
  EXPECT_EQ(list_directory(out_).size(), 2u);
}

TEST_F(ExportFilesTest, WhatTheRunWasMadeFromStays) {
  const RunConfig config = read_run_config(run_ + "/train.resolved.toml");
  std::vector<std::string> files{config.model.file, config.data->train.files[0].paths[0],
                                 run_ + "/summary.json"};
  for (const auto& entry : fs::recursive_directory_iterator(run_ + "/checkpoints"))
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  EXPECT_GE(files.size(), 5u);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const std::string before = read_file(file), link = out_ + "/w.onnx";
    fs::remove(link);
    fs::create_symlink(file, link);
    EXPECT_THAT(error_of([&] { export_run(run_, link); }), HasSubstr("--to: this "));
    EXPECT_EQ(read_file(file), before);
  }
  fs::copy_file(config.model.file, out_ + "/model.npz");
  EXPECT_NO_THROW(export_run(run_, out_ + "/model.npz")) << "a copy of it";
}

// External weights of the model are kept, wherever they are, even where large exported weights
// would go.
TEST_F(ExportFilesTest, WeightsBesideTheModelStay) {
  const std::vector<float> numbers(15, 0.5f);
  const std::string raw(reinterpret_cast<const char*>(numbers.data()), 60);
  for (const std::string beside : {"trained.onnx.data", "w.safetensors"}) {
    SCOPED_TRACE(beside);
    const TemporaryFolder folder;
    write_file(folder / beside, raw);
    write_file(folder / "m.onnx", SmallModel()
                                      .input("x", {4, 5})
                                      .output("y", {4, 3})
                                      .external_weight("w", {5, 3}, beside)
                                      .node("MatMul", "product", {"x", "w"}, "y")
                                      .bytes());
    write_npz(folder / "d.npz", {{"x", HostTensor(TensorType{DType::float32, {8, 5}})},
                                 {"label", HostTensor(TensorType{DType::int64, {8}})}});
    write_file(folder / "train.toml", R"toml(
model = "m.onnx"
batch_size = 4
steps = 1
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "y", labels = "label" } ]
[optimizer]
kind = "sgd"
lr = 0.1
[data]
kind = "npz"
[data.train]
files = [ "d.npz" ]
[data.fields]
x = "x"
label = "label"
)toml");
    testing::train(folder);
    const std::string run = folder / "run";
    const std::string to = beside.ends_with(".data") ? "trained.onnx" : beside;
    EXPECT_THAT(error_of([&] { export_run(run, folder / to); }),
                HasSubstr("--to: this file is read"));
    PredictOptions predict;
    predict.data = {folder / "d.npz"};
    predict.to = folder / "link.tsv";
    fs::create_symlink(beside, predict.to);
    EXPECT_THAT(error_of([&] { predict_run(run, predict); }), HasSubstr("--to: this file is read"));
    EXPECT_EQ(read_file(folder / beside), raw);
    EXPECT_NO_THROW(export_run(run, out_ + "/" + to));
  }
}

}  // namespace
}  // namespace tandem::api
