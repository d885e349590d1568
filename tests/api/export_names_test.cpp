// Names of exported tensors whose own names an exporter made up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/formats/arrays/npy.h"
#include "engine/formats/files.h"
#include "engine/formats/safetensors.h"
#include "tandem/tandem.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::SmallModel;
using tandem::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

/// As optimum writes a decoder: matrices are transposed and have numbers for names, `both` is read
/// by two modules, and two matrices of `mixed` would get one name.
class ExportNames : public ::testing::Test {
 protected:
  ExportNames() {
    write_file(folder_ / "m.onnx",
               SmallModel()
                   .input("x", {4, 3})
                   .weight("onnx::MatMul_12", {3, 5}, 0.5f)
                   .weight("layers.0.q_proj.bias", {5}, 0.5f)
                   .weight("onnx::MatMul_13", {5, 5}, 0.25f)
                   .weight("onnx::MatMul_14", {5, 5}, 0.125f)
                   .weight("onnx::MatMul_15", {5, 2}, 0.5f)
                   .node("MatMul", "/layers.0/q_proj/MatMul", {"x", "onnx::MatMul_12"}, "a")
                   .node("Add", "/layers.0/q_proj/Add", {"a", "layers.0.q_proj.bias"}, "b")
                   .node("MatMul", "/layers.0/both/MatMul", {"b", "onnx::MatMul_13"}, "c")
                   .node("MatMul", "/layers.1/both/MatMul", {"c", "onnx::MatMul_13"}, "d")
                   .node("MatMul", "/mixed/MatMul", {"d", "onnx::MatMul_14"}, "e")
                   .node("MatMul", "/mixed/MatMul_1", {"e", "onnx::MatMul_15"}, "y")
                   .output("y", {4, 2})
                   .bytes());
    write_npz(folder_ / "d.npz", {{"x", HostTensor(TensorType{DType::float32, {8, 3}})},
                                  {"t", HostTensor(TensorType{DType::float32, {8, 2}})}});
    write_file(folder_ / "train.toml",
               "model = \"m.onnx\"\nbatch_size = 4\nsteps = 1\n[loss]\nterms = [ { kind = \"mse\", "
               "predictions = \"y\", targets = \"t\" } ]\n[optimizer]\nkind = \"sgd\"\nlr = 0.1\n"
               "[checkpoint]\nevery = \"1 steps\"\n[data]\nkind = \"npz\"\ntrain = { files = [ "
               "\"d.npz\" ] }\n[data.fields]\nx = \"x\"\nt = \"t\"\n");
    train("run", {});
  }
  void train(const std::string& run, std::vector<std::string> overrides) {
    TrainOptions options;
    options.run_dir = folder_ / run;
    options.overrides = std::move(overrides);
    Trainer(folder_ / "train.toml", options).run();
  }
  std::string exported(const ExportSettings& settings = {}) {
    return export_run(folder_ / "run", file_, settings);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    const SafetensorsFile file(file_);
    for (const NamedTensor& tensor : file.tensors()) all.push_back(tensor.name);
    return all;
  }

  TemporaryFolder folder_;
  const std::string file_ = folder_ / "w.safetensors";
};

TEST_F(ExportNames, AreThoseOfTheModulesThatReadTheTensors) {
  EXPECT_THAT(exported(),
              AllOf(HasSubstr("onnx::MatMul_12 is layers.0.q_proj.weight, [in, out]\n"),
                    HasSubstr("warning: 1 weight [in, out] as the file's MatMul reads them"),
                    HasSubstr("made up stays for 3 tensors, which no single module reads"),
                    Not(HasSubstr("_13 is"))));
  EXPECT_THAT(names(),
              UnorderedElementsAre("layers.0.q_proj.weight", "layers.0.q_proj.bias",
                                   "onnx::MatMul_13", "onnx::MatMul_14", "onnx::MatMul_15"));
  const SafetensorsFile file(file_);
  EXPECT_THAT(file.metadata(), Contains(Pair("alias:onnx::MatMul_12", "layers.0.q_proj.weight")));
  EXPECT_EQ(file.find("layers.0.q_proj.weight")->shape(), (Shape{3, 5})) << "as in the file";
}

TEST_F(ExportNames, AreFoundAgainByTheModelAndLoseAPrefix) {
  exported({.names = {.strip = "layers.", .add = ""}});
  EXPECT_THAT(names(), Contains("0.q_proj.weight"));
  exported();
  train("again", {"parameters.load=[{ from = \"" + file_ + "\" }]", "optimizer.lr=0"});
  export_run(folder_ / "again", folder_ / "again.safetensors");
  EXPECT_EQ(read_file(folder_ / "again.safetensors"), read_file(file_));
}

TEST_F(ExportNames, StayWithoutTheModel) {
  std::filesystem::remove(folder_ / "m.onnx");
  EXPECT_THAT(exported(), HasSubstr("warning: names that the exporter made up stay"));
  EXPECT_THAT(names(), Contains("onnx::MatMul_12"));
}

TEST_F(ExportNames, OfOtherFormatsAreTheFilesOwn) {
  EXPECT_THAT(export_run(folder_ / "run", folder_ / "w.npz", {}), Not(HasSubstr("names ")));
}

}  // namespace
}  // namespace tandem::api
