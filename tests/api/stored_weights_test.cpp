// Runs over the committed digits whose frozen weights are packed (parameters.storage), and over a
// file with 16-bit weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "api/model/model.h"
#include "engine/formats/files.h"
#include "engine/formats/safetensors.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using namespace tandem::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string adapters = "parameters.lora=[{at='{fc1,fc2}:weight', rank=4, alpha=8}]";

std::string packed(const std::string& kind, const std::string& at = "fc1:weight") {
  return "parameters.storage=[{at='" + at + "', kind='" + kind + "'}]";
}

class StoredWeightsRun : public ::testing::Test {
 protected:
  std::string train(const std::string& name, std::vector<std::string> overrides, int steps = 6) {
    overrides.insert(overrides.begin(), "eval.every=6 steps");
    overrides.push_back("steps=" + std::to_string(steps));
    TrainOptions options;
    options.overrides = std::move(overrides);
    options.run_dir = folder_ / name;
    Trainer(digits + "train.toml", options).run();
    return options.run_dir;
  }
  static std::map<std::string, HostTensor> adapters_of(const std::string& run) {
    std::map<std::string, HostTensor> tensors;
    const SafetensorsFile saved(run + "/checkpoints/step-00000006/model.safetensors");
    for (const NamedTensor& tensor : saved.tensors()) tensors[tensor.name] = tensor.tensor.clone();
    return tensors;
  }
  /// The state of fc1's weight in the graph of a micro-batch.
  static TensorType stored_type(std::vector<std::string> overrides) {
    const Engine engine(1);
    ConfiguredModel model(engine, read_run_config(digits + "train.toml", overrides));
    return model.micro_batch().graph.find_state("fc1.weight")->start.type();
  }
  /// The digits in float16, as the usual converters write them.
  std::string file_of_halves() {
    const std::string run = train("whole", {}), to = folder_ / "halves.onnx";
    ExportSettings settings{.checkpoint = "latest"};
    settings.form.fp16 = true;
    export_run(run, to, settings);
    return to;
  }
  static bool agrees(const std::string& run, const std::string& file) {
    VerifyOptions options;
    options.checkpoint = "latest";
    options.python = "";
    return verify_export(run, file, options).agrees;
  }

  TemporaryFolder folder_;
};

TEST_F(StoredWeightsRun, EachKindTrainsAdaptersAndExportsWhatItStandsFor) {
  for (const std::string kind : {"int8", "int4", "nf4", "float16", "bfloat16"}) {
    SCOPED_TRACE(kind);
    const std::string run = train(kind, {adapters, packed(kind)}), to = folder_ / (kind + ".onnx");
    for (const char* lora : {"merged", "separate"}) {
      export_run(run, to, {.checkpoint = "latest", .adapters = {.lora = lora}});
      EXPECT_TRUE(agrees(run, to)) << lora;
    }
  }
}

TEST_F(StoredWeightsRun, BytesLieInMemory) {
  EXPECT_EQ(stored_type({adapters}), (TensorType{DType::float32, {64, 512}}));
  EXPECT_EQ(stored_type({adapters, packed("int4")}), (TensorType{DType::uint8, {64, 256}}));
  EXPECT_EQ(stored_type({adapters, packed("int8")}), (TensorType{DType::int8, {64, 512}}));
  EXPECT_EQ(stored_type({adapters, packed("bfloat16")}), (TensorType{DType::bfloat16, {64, 512}}));
}

TEST_F(StoredWeightsRun, AFrozenWeightNeedsNoAdapters) {
  const std::string freeze = "parameters.freeze=[{at='fc1:weight'}]";
  const std::string run = train("frozen", {freeze, packed("int8")}), to = folder_ / "frozen.onnx";
  export_run(run, to, {.checkpoint = "latest"});
  EXPECT_TRUE(agrees(run, to));
}

TEST_F(StoredWeightsRun, ARunGoesOn) {
  const std::vector<std::string> how{adapters, packed("nf4"), "eval.every=3 steps"};
  const std::string whole = train("whole", how), parts = train("parts", how, 3);
  TrainOptions rest;
  rest.run_dir = parts;
  rest.resume = true;
  rest.overrides = {"steps=6"};
  Trainer(digits + "train.toml", rest).run();
  const auto saved = [](const std::string& run) {
    return read_file(run + "/checkpoints/step-00000006/model.safetensors");
  };
  EXPECT_EQ(saved(whole), saved(parts));
}

TEST_F(StoredWeightsRun, WeightsOf16BitsStayInThemUnderAdapters) {
  const std::string model = "model={file='" + file_of_halves() + "'}";
  EXPECT_EQ(stored_type({model, adapters}).dtype, DType::float16);
  EXPECT_EQ(stored_type({model}).dtype, DType::float32);
  EXPECT_EQ(stored_type({model, adapters, packed("float32")}).dtype, DType::float32);
  EXPECT_EQ(stored_type({model, adapters, packed("int4")}).dtype, DType::uint8);
  EXPECT_EQ(stored_type({model, adapters, "parameters.train=['fc1:weight']"}).dtype,
            DType::float32);
  EXPECT_EQ(stored_type({model, "parameters.lora=[{at='fc1:weight', dora=true}]"}).dtype,
            DType::float32);
  const std::string kept = train("kept", {model, adapters});
  const std::string wide = train("wide", {model, adapters, packed("float32", "**")});
  const auto narrow = adapters_of(kept), whole = adapters_of(wide);
  ASSERT_EQ(narrow.size(), whole.size());
  for (const auto& [name, tensor] : narrow) {
    for (std::int64_t i = 0; i < tensor.type().elements(); ++i)
      ASSERT_NEAR(tensor.number(i), whole.at(name).number(i), 1e-6) << name << " " << i;
  }
  const std::string to = folder_ / "kept.onnx";
  export_run(kept, to, {.checkpoint = "latest", .adapters = {.lora = "separate"}});
  EXPECT_TRUE(agrees(kept, to));
}

// Policies place a packed weight by what reads it, as any other.
TEST_F(StoredWeightsRun, APolicyPlacesWhatIsPacked) {
  const std::string policy = "policy=" + folder_ / "policy.toml";
  write_file(folder_ / "policy.toml",
             "policy = 1\n[devices]\ngpu = { use = \"emulated:0\" }\n[[rules]]\nat = \"**\"\non = "
             "\"gpu\"\n"
             "[[rules]]\nat = \"fc1.**\"\nparam = \"cpu\"\n");
  for (const std::string kind : {"int4", "bfloat16"}) {
    SCOPED_TRACE(kind);
    const std::vector<std::string> how{adapters, packed(kind)};
    const auto on_host = adapters_of(train(kind, how));
    TrainOptions options;
    options.overrides = {adapters, packed(kind), policy, "steps=6", "eval.every=6 steps"};
    options.run_dir = folder_ / (kind + " placed");
    options.verbose = true;
    Trainer trainer(digits + "train.toml", options);
    EXPECT_THAT(trainer.summary(), AllOf(HasSubstr("parameters on cpu, read on gpu"),
                                         HasSubstr("fc1:weight: " + kind + ", error 0.0")));
    trainer.run();
    for (const auto& [name, tensor] : adapters_of(options.run_dir)) {
      for (std::int64_t i = 0; i < tensor.type().elements(); ++i)
        ASSERT_NEAR(tensor.number(i), on_host.at(name).number(i), 1e-6) << name << " " << i;
    }
  }
}

TEST_F(StoredWeightsRun, WrongRulesAreNamed) {
  const auto refusal = [&](std::vector<std::string> overrides) {
    return error_of([&] { train("wrong", std::move(overrides)); });
  };
  EXPECT_THAT(
      refusal({packed("int4")}),
      AllOf(HasSubstr("fc1:weight"), HasSubstr("parameters.lora"), HasSubstr("parameters.freeze")));
  EXPECT_THAT(refusal({adapters, packed("int4", "fc7:weight")}), HasSubstr("fc1:weight"));
  EXPECT_THAT(refusal({adapters, packed("int4", "**:bias")}), HasSubstr("no matrix"));
  EXPECT_THAT(refusal({adapters, "parameters.storage=[{at='**', kind='int4', block=12}]"}),
              HasSubstr("multiple of 8"));
  EXPECT_THAT(refusal({"parameters.lora=[{at='fc1:weight', dora=true}]", packed("int4")}),
              HasSubstr("packed"));
  const std::string before = train("before", {});
  EXPECT_THAT(refusal({adapters, packed("int4"), "parameters.load=[{from='" + before + "'}]"}),
              HasSubstr("packed"));
}

}  // namespace
}  // namespace tandem::api
