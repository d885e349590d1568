// export --verify: files that compute what their run computes, and files that do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/export/differences.h"
#include "engine/formats/arrays/npy.h"
#include "tandem/trained.h"
#include "tests/api/error_of.h"
#include "tests/api/small_model.h"
#include "tests/api/trained_runs.h"
#include "tests/harness/program.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class ExportVerify : public ::testing::Test {
 protected:
  ExportVerify() {
    write_digits(folder_);
    testing::train(folder_);
    without_python_.python = "";
  }
  /// Adds to the first number of the first weight in the file.
  void change_a_weight(const std::string& file, float difference) const {
    export_run(run_, folder_ / "w.npz");
    const HostTensor weight = read_npz(folder_ / "w.npz")[0].tensor;
    const std::string bytes(static_cast<const char*>(weight.data()), weight.bytes());
    std::string content = read_file(file);
    const std::size_t at = content.find(bytes);
    ASSERT_NE(at, std::string::npos);
    const float changed = weight.as<float>()[0] + difference;
    std::memcpy(content.data() + at, &changed, sizeof changed);
    write_file(file, content);
  }

  TemporaryFolder folder_;
  const std::string run_ = folder_ / "run", file_ = folder_ / "trained.onnx";
  VerifyOptions without_python_;
};

TEST_F(ExportVerify, AWrittenFileComputesWhatTheRunDoes) {
  export_run(run_, file_);
  const VerifyReport report = verify_export(run_, file_, without_python_);
  EXPECT_TRUE(report.agrees) << report.text;
  EXPECT_THAT(report.text, AllOf(HasSubstr("8, the run's held-out data"),
                                 HasSubstr("engine      logits: largest difference"),
                                 HasSubstr("agrees within 1e-05 + 0.0001 |x| + 1e-05 max |x|")));
  const Json json = Json::parse(report.json);
  EXPECT_EQ(json["agrees"], true);
  EXPECT_EQ(json["samples"], 8);
  ASSERT_EQ(json["differences"].size(), 1u);
  EXPECT_LT(json["differences"][0]["absolute"].get<double>(), 1e-5);
}

TEST_F(ExportVerify, APartThatIsHeldOutComesFirst) {
  const std::string part = folder_ / "part";
  TrainOptions options;
  options.run_dir = part;
  options.overrides = {"data.eval={ fraction = 0.2 }", "steps=2"};
  Trainer(folder_ / "train.toml", options).run();
  export_run(part, file_);
  const VerifyReport report = verify_export(part, file_, without_python_);
  EXPECT_TRUE(report.agrees) << report.text;
  EXPECT_THAT(report.text, HasSubstr("8, the run's held-out data"));
}

// 100, and 0.001 as the remainder of equally large summands: both may be off by 1e-3, but not by
// 2e-3.
TEST(DifferenceBound, GrowsWithTheLargestValue) {
  const HostTensor x = HostTensor::from<float>({2}, {100, 0.001f});
  const HostTensor near = HostTensor::from<float>({2}, {100, 0.0019f});
  const HostTensor off = HostTensor::from<float>({2}, {100, 0.003f});
  const Bound bound{1e-5, 1e-4, 1e-5};
  EXPECT_TRUE(difference_of("a", "x", near, x, bound).agrees);
  EXPECT_FALSE(difference_of("a", "x", off, x, bound).agrees);
  EXPECT_FALSE(difference_of("a", "x", near, x, {1e-5, 1e-4, 0}).agrees);
}

TEST_F(ExportVerify, AChangedWeightIsFound) {
  export_run(run_, file_);
  change_a_weight(file_, 0.5f);
  const VerifyReport report = verify_export(run_, file_, without_python_);
  EXPECT_FALSE(report.agrees) << report.text;
  EXPECT_THAT(report.text, AllOf(HasSubstr("logits"), HasSubstr("DIFFERS by more than")));
  EXPECT_GT(Json::parse(report.json)["differences"][0]["absolute"].get<double>(), 1e-4);
  VerifyOptions wide = without_python_;
  wide.absolute = wide.relative = 1e6;
  EXPECT_TRUE(verify_export(run_, file_, wide).agrees);
}

TEST_F(ExportVerify, InputsAreMadeUpWhereTheDataIsGone) {
  export_run(run_, file_);
  for (const char* file : {"train-images", "test-images"}) fs::remove(folder_ / file);
  const VerifyReport report = verify_export(run_, file_, without_python_);
  EXPECT_TRUE(report.agrees) << report.text;
  EXPECT_THAT(report.text, AllOf(HasSubstr("generated from a seed"), HasSubstr("test-images")));
  EXPECT_EQ(verify_export(run_, file_, without_python_).text, report.text);
  change_a_weight(file_, 0.5f);
  EXPECT_FALSE(verify_export(run_, file_, without_python_).agrees);
  VerifyOptions named = without_python_;
  named.data = {"images=" + (folder_ / "nothing")};
  EXPECT_THROW(verify_export(run_, file_, named), Error);
}

TEST_F(ExportVerify, OtherFormsAreComparedByName) {
  ExportSettings settings;
  settings.form.fp16 = true;
  export_run(run_, file_, settings);
  const VerifyReport half = verify_export(run_, file_, without_python_);
  EXPECT_TRUE(half.agrees) << half.text;
  EXPECT_THAT(half.text, HasSubstr("agrees within 0.01 + 0.01 |x|"));
  EXPECT_GT(Json::parse(half.json)["differences"][0]["absolute"].get<double>(), 0);
  VerifyOptions tight = without_python_;
  tight.absolute = tight.relative = 1e-12;
  EXPECT_FALSE(verify_export(run_, file_, tight).agrees);
  settings.form = {};
  settings.form.outputs = {"logits"};
  export_run(run_, file_, settings);
  EXPECT_TRUE(verify_export(run_, file_, without_python_).agrees);
}

TEST_F(ExportVerify, PythonIsNamedWhereItIsNoHelp) {
  export_run(run_, file_);
  VerifyOptions options;
  options.python = folder_ / "no-python";
  VerifyReport report = verify_export(run_, file_, options);
  EXPECT_TRUE(report.agrees);
  EXPECT_THAT(report.text, HasSubstr("onnxruntime not compared: cannot start"));
  write_file(folder_ / "python", "#!/bin/sh\necho onnxruntime\nexit 3\n");
  fs::permissions(folder_ / "python", fs::perms::owner_all);
  options.python = folder_ / "python";
  report = verify_export(run_, file_, options);
  EXPECT_THAT(report.text, HasSubstr("has no module onnxruntime (--python, or TANDEM_PYTHON, "));
  write_file(folder_ / "python", "#!/bin/sh\necho 'Fail: no such operator' >&2\nexit 1\n");
  report = verify_export(run_, file_, options);
  EXPECT_THAT(report.text, HasSubstr("it fails: Fail: no such operator"));
  options.python = "python3";  // whether or not it has the module
  report = verify_export(run_, file_, options);
  EXPECT_TRUE(report.agrees) << report.text;
  EXPECT_THAT(report.text, HasSubstr("onnxruntime"));
}

/// A model whose second output adds random numbers that the graph draws.
TEST_F(ExportVerify, OtherEnginesAreNotAskedForWhatIsDrawn) {
  write_file(folder_ / "noisy.onnx", SmallModel()
                                         .input("x", {8, 4})
                                         .weight("w", {4, 3}, 0.5f)
                                         .node("MatMul", "fc", {"x", "w"}, "y")
                                         .node("RandomNormalLike", "noise", {"y"}, "e")
                                         .node("Add", "sum", {"y", "e"}, "noisy")
                                         .output("y", {8, 3})
                                         .output("noisy", {8, 3})
                                         .bytes());
  write_file(folder_ / "noisy.toml", R"(model = { file = "noisy.onnx", random = "always" }
batch_size = 8
steps = 1
[loss]
terms = [ { kind = "mse", predictions = "noisy", targets = "y_wanted" } ]
[optimizer]
kind = "sgd"
[data]
kind = "npz"
[data.train]
files = [ "noisy.npz" ]
[data.fields]
x = "x"
y_wanted = "t"
)");
  write_npz(folder_ / "noisy.npz", {{"x", HostTensor(TensorType{DType::float32, {16, 4}})},
                                    {"t", HostTensor(TensorType{DType::float32, {16, 3}})}});
  TrainOptions how;
  how.run_dir = folder_ / "noisy";
  Trainer(folder_ / "noisy.toml", how).run();
  export_run(how.run_dir, folder_ / "drawn.onnx");
  // A script that prints its arguments, and fails.
  write_file(folder_ / "python", "#!/bin/sh\nshift 2\necho \"asked: $*\" >&2\nexit 1\n");
  fs::permissions(folder_ / "python", fs::perms::owner_all);
  VerifyOptions options;
  options.python = folder_ / "python";
  const VerifyReport report = verify_export(how.run_dir, folder_ / "drawn.onnx", options);
  EXPECT_TRUE(report.agrees) << report.text;
  EXPECT_THAT(report.text,
              AllOf(HasSubstr("engine      noisy: largest difference 0"),
                    HasSubstr("onnxruntime not asked for noisy"), HasSubstr("it fails: asked: ")));
  EXPECT_THAT(report.text, HasSubstr(" x y\n"));
  EXPECT_EQ(Json::parse(report.json)["drawn"], Json({"noisy"}));
}

TEST_F(ExportVerify, WhatCannotBeComparedIsRefused) {
  export_run(run_, folder_ / "w.npz");
  EXPECT_THAT(error_of([&] { verify_export(run_, folder_ / "w.npz", without_python_); }),
              HasSubstr("only an exported model can be run"));
  export_run(run_, file_);
  VerifyOptions none = without_python_;
  none.samples = 0;
  EXPECT_THAT(error_of([&] { verify_export(run_, file_, none); }), HasSubstr("out of range"));
  ExportSettings settings;
  settings.form.fold_batch_norm = true;
  EXPECT_THAT(error_of([&] { export_run(run_, folder_ / "w.npz", settings); }),
              HasSubstr("only the graph of an .onnx file can be changed"));
}

TEST_F(ExportVerify, TheCommandEndsInSixWhereItDiffers) {
  const std::string to = "export " + run_ + " --to " + file_;
  const Ended agrees = run_program(to + " --verify 2>&1");
  EXPECT_EQ(agrees.code, 0) << agrees.text;
  EXPECT_THAT(agrees.text, HasSubstr("agrees within"));
  const Ended differs = run_program(to + " --fp16 --verify --verify-bound 1e-12 2>&1");
  EXPECT_EQ(differs.code, 6) << differs.text;
  EXPECT_THAT(differs.text, HasSubstr("DIFFERS"));
  const Ended weights =
      run_program("export " + run_ + " --to " + (folder_ / "v.npz") + " --verify 2>&1");
  EXPECT_EQ(weights.code, 2);
  EXPECT_FALSE(fs::exists(folder_ / "v.npz"));
  const Ended json = run_program(to + " --verify --json 2>/dev/null");
  EXPECT_EQ(Json::parse(json.text)["agrees"], true);
}

}  // namespace
}  // namespace tandem::api
