// Models with ONNX's training_info: results of their training, compared with PyTorch and ONNX's own
// evaluator (tests/scripts/training_info.py) and with the same run from settings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "engine/formats/arrays/npz_file.h"
#include "engine/formats/files.h"
#include "engine/formats/safetensors.h"
#include "tandem/tandem.h"
#include "tests/api/error_of.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::error_of;
using tandem::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string training_info_folder = source_folder() + "/tests/data/training_info/";
const std::vector<std::string> parameters{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
constexpr std::int64_t training_info_steps = 6, training_info_batch = 8;

const NpzFile& expected_training() {
  static const NpzFile file(training_info_folder + "expected.npz");
  return file;
}

Tensors feeds(std::int64_t step) {
  const HostTensor x = expected_training().read("x", DType::float32);
  const HostTensor labels = expected_training().read("labels", DType::int64);
  const auto values = x.as<float>().subspan(
      static_cast<std::size_t>(step * training_info_batch * 4), training_info_batch * 4);
  const auto classes =
      labels.as<std::int64_t>().subspan(static_cast<std::size_t>(step * training_info_batch),
                                        static_cast<std::size_t>(training_info_batch));
  return {{"x", Tensor::copy_of({training_info_batch, 4},
                                std::vector<float>(values.begin(), values.end()))},
          {"labels", Tensor::copy_of({training_info_batch},
                                     std::vector<std::int64_t>(classes.begin(), classes.end()))}};
}

struct Trained {
  std::vector<double> losses;
  Tensors parameters;
};

Trained trained(const std::string& model, const std::vector<std::string>& settings = {}) {
  Session session(training_info_folder + model + ".onnx", training_info_batch, settings);
  Trained result;
  for (std::int64_t step = 0; step < training_info_steps; ++step)
    result.losses.push_back(session.step(feeds(step)));
  result.parameters = session.parameters();
  return result;
}

class TrainingInfo : public ::testing::TestWithParam<const char*> {};

TEST_P(TrainingInfo, AgreesWithThePublication) {
  const std::string name = GetParam();
  const Trained made = trained(name);
  const HostTensor losses = expected_training().read(name + "/losses", DType::float64);
  for (std::size_t i = 0; i < training_info_steps; ++i)
    EXPECT_NEAR(made.losses[i], losses.as<double>()[i], 2e-6) << "step " << i + 1;
  for (const std::string& parameter : parameters) {
    const HostTensor wanted = expected_training().read(name + "/" + parameter, DType::float64);
    const std::vector<float> values = made.parameters.at(parameter).floats();
    ASSERT_EQ(values.size(), wanted.as<double>().size());
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(values[i], wanted.as<double>()[i], 5e-6) << parameter << " " << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Updates, TrainingInfo,
                         ::testing::Values("sgd", "adam", "adam_from_zero", "adam_with_decay",
                                           "adagrad", "momentum", "nesterov"),
                         [](const auto& info) { return info.param; });

// A network equal to the file's that ends in its loss, with the optimizer in settings. Attributes
// in the file are float32, so settings have exactly these numbers.
struct SameTraining {
  std::string model;
  std::vector<std::string> settings;
};
class TrainingInfoBits : public ::testing::TestWithParam<SameTraining> {};

TEST_P(TrainingInfoBits, EqualTheRunFromSettings) {
  const Trained own = trained(GetParam().model);
  const Trained from_settings = trained("own_loss", GetParam().settings);
  EXPECT_EQ(own.losses, from_settings.losses);
  for (const std::string& parameter : parameters) {
    EXPECT_EQ(own.parameters.at(parameter), from_settings.parameters.at(parameter)) << parameter;
  }
}
INSTANTIATE_TEST_SUITE_P(
    Updates, TrainingInfoBits,
    ::testing::Values(
        SameTraining{"sgd", {"optimizer.kind=sgd", "optimizer.lr=0.5"}},
        SameTraining{
            "adam",
            {"optimizer.kind=adam", "optimizer.lr=0.1", "optimizer.epsilon_form=onnx",
             "optimizer.betas=[0.8999999761581421, 0.9900000095367432]",
             "optimizer.eps=9.999999747378752e-06", "optimizer.weight_decay=0.009999999776482582"}},
        SameTraining{
            "adagrad",
            {"optimizer.kind=adagrad", "optimizer.lr=0.1", "optimizer.eps=9.999999747378752e-05",
             "optimizer.lr_decay=0.10000000149011612"}},
        SameTraining{"momentum",
                     {"optimizer.kind=momentum", "optimizer.lr=0.1", "optimizer.beta=0.5",
                      "optimizer.momentum=0.8999999761581421",
                      "optimizer.weight_decay=0.009999999776482582"}},
        SameTraining{"nesterov",
                     {"optimizer.kind=momentum", "optimizer.lr=0.1", "optimizer.nesterov=true",
                      "optimizer.momentum=0.8999999761581421"}}),
    [](const auto& info) { return info.param.model; });

TEST(TrainingInfoTest, TheInitializationRunsOnce) {
  Session session(training_info_folder + "initialization.onnx", training_info_batch, {"seed=3"});
  const auto start = session.parameters();
  EXPECT_THAT(start.at("fc1.bias").floats(), ::testing::Each(0.25f));
  double sum = 0;
  for (const float x : start.at("fc1.weight").floats()) sum += x;
  EXPECT_NEAR(sum / 24, 1, 0.3);  // mean 1, deviation 0.25
  for (const float x : start.at("fc2.weight").floats()) EXPECT_LE(std::abs(x), 0.5f);
  // Parameters without an initialization keep the file's values.
  Session file(training_info_folder + "adam.onnx", training_info_batch, {});
  EXPECT_EQ(start.at("fc2.bias"), file.parameters().at("fc2.bias"));
  EXPECT_NE(start.at("fc1.weight"), file.parameters().at("fc1.weight"));
  // Random numbers depend on the run's seed.
  EXPECT_EQ(start.at("fc1.weight"),
            Session(training_info_folder + "initialization.onnx", training_info_batch, {"seed=3"})
                .parameters()
                .at("fc1.weight"));
  EXPECT_NE(start.at("fc1.weight"),
            Session(training_info_folder + "initialization.onnx", training_info_batch, {"seed=4"})
                .parameters()
                .at("fc1.weight"));
  session.step(feeds(0));
  EXPECT_NE(session.parameters().at("fc1.bias"), start.at("fc1.bias"));
}

TEST(TrainingInfoTest, PredictsWithoutLabels) {
  Session session(training_info_folder + "adam.onnx", training_info_batch, {});
  auto fed = feeds(0);
  fed.erase("labels");
  const auto made = session.predict(fed);
  EXPECT_THAT(made, ::testing::ElementsAre(::testing::Key("logits")));
}

std::string toml_of_file(const std::string& model, const std::string& more = "") {
  return "model = \"" + training_info_folder + model + ".onnx\"\nbatch_size = 8\nsteps = 6\n" +
         more +
         "[checkpoint]\nevery = \"2 steps\"\nkeep = 9\n[log]\nevery = \"1 steps\"\n[data]\n"
         "kind = \"npz\"\n[data.train]\nfiles = [ \"" +
         training_info_folder + "data.npz\" ]\nshuffle = \"none\"\n[data.eval]\nfiles = [ \"" +
         training_info_folder + "data.npz\" ]\n";
}

struct ShortRun {
  TemporaryFolder place;
  explicit ShortRun(const std::string& toml) { write_file(place / "train.toml", toml); }
  TrainResult train(std::vector<std::string> overrides = {}, bool resume = false,
                    std::vector<std::string> rules = {}) const {
    TrainOptions options;
    options.run_dir = place / "run";
    options.overrides = std::move(overrides);
    options.resume = resume;
    options.place = std::move(rules);
    if (!options.place.empty()) options.devices = {"gpu=emulated:0"};
    return Trainer(place / "train.toml", options).run();
  }
  std::string states(int step) const {
    const std::string of = place / ("run/checkpoints/step-0000000" + std::to_string(step));
    return read_file(of + "/model.safetensors", 1 << 20) +
           read_file(of + "/optimizer.safetensors", 1 << 20);
  }
};

TEST(TrainingInfoTest, TrainsAndResumesFromAFewLines) {
  const ShortRun whole(toml_of_file("adam"));
  const TrainResult done = whole.train();
  EXPECT_EQ(done.steps, 6u);
  const HostTensor losses = expected_training().read("adam/losses", DType::float64);
  EXPECT_NEAR(done.loss, losses.as<double>()[5], 2e-6);
  EXPECT_EQ(done.evaluation.count("loss"), 1u);
  EXPECT_THAT(read_file(whole.place / "run/metrics.jsonl", 1 << 20), Not(HasSubstr("\"lr\"")));
  EXPECT_THAT(read_file(whole.place / "run/train.resolved.toml", 1 << 20),
              Not(HasSubstr("[optimizer]")));

  const ShortRun cut(toml_of_file("adam"));
  cut.train({"steps=4"});
  EXPECT_EQ(cut.train({}, true).steps, 6u);
  EXPECT_EQ(cut.states(6), whole.states(6));
  EXPECT_NE(whole.states(4), whole.states(6));
}

TEST(TrainingInfoTest, AnInitializationIsNotRunAgainOnResume) {
  const ShortRun whole(toml_of_file("initialization"));
  whole.train();
  const ShortRun cut(toml_of_file("initialization"));
  cut.train({"steps=2"});
  cut.train({}, true);
  EXPECT_EQ(cut.states(6), whole.states(6));
}

TEST(TrainingInfoTest, ASplitOverDevicesChangesNothing) {
  for (const std::string model : {"sgd", "adam", "adam_with_decay"}) {
    const ShortRun here(toml_of_file(model)), split(toml_of_file(model));
    here.train();
    split.train({}, false,
                {R"({ at = "fc1.**", run = "gpu", acts = "recompute" })",
                 R"({ at = "fc1:weight", param = "gpu", state = "cpu" })"});
    const SafetensorsFile a(here.place / "run/checkpoints/step-00000006/model.safetensors");
    const SafetensorsFile b(split.place / "run/checkpoints/step-00000006/model.safetensors");
    for (const std::string& parameter : parameters) {
      const auto left = a.find(parameter)->as<float>(), right = b.find(parameter)->as<float>();
      for (std::size_t i = 0; i < left.size(); ++i)
        EXPECT_NEAR(left[i], right[i], 1e-6) << model << " " << parameter;
    }
  }
}

TEST(TrainingInfoTest, ExportKeepsIt) {
  const ShortRun run(toml_of_file("adam"));
  run.train();
  export_run(run.place / "run", run.place / "trained.onnx");
  const InspectReport report = inspect(run.place / "trained.onnx");
  EXPECT_THAT(report.text, HasSubstr("training_info: 4 gradients of 'loss'"));
  const SafetensorsFile weights(run.place / "run/checkpoints/step-00000006/model.safetensors");
  const auto exported = Session(run.place / "trained.onnx", training_info_batch, {}).parameters();
  for (const std::string& parameter : parameters) {
    const auto left = weights.find(parameter)->as<float>();
    EXPECT_EQ(exported.at(parameter).floats(), std::vector<float>(left.begin(), left.end()));
  }
}

TEST(TrainingInfoTest, InspectTellsIt) {
  const InspectReport report = inspect(training_info_folder + "initialization.onnx");
  EXPECT_FALSE(report.blocks_training) << report.text;
  EXPECT_THAT(report.text,
              AllOf(HasSubstr("training_info: 4 gradients of 'loss', 13 initializers that a step "
                              "changes, 4 that start from its graph"),
                    HasSubstr("4 trainable"), HasSubstr("ready to train")));
  EXPECT_THAT(report.json, HasSubstr("\"training_info\""));
  InspectOptions options;
  options.stage = "training";
  EXPECT_THAT(inspect(training_info_folder + "adam.onnx", options).text, HasSubstr("AdamUpdate"));
  EXPECT_THAT(inspect(training_info_folder + "adam_with_decay.onnx", options).text,
              AllOf(HasSubstr("Assign"), Not(HasSubstr("AdamUpdate"))));
}

TEST(TrainingInfoTest, KeysThatSayHowToTrainAreRefused) {
  const auto refusal = [](const std::string& more, std::vector<std::string> overrides = {}) {
    const ShortRun run(toml_of_file("adam", more));
    return error_of([&] { run.train(overrides); });
  };
  EXPECT_THAT(
      refusal("[optimizer]\nkind = \"sgd\"\n"),
      AllOf(HasSubstr("train.toml:4"), HasSubstr("optimizer: the model's training_info says "
                                                 "how it is trained")));
  EXPECT_THAT(refusal("[loss]\nterms = [ { kind = \"softmax_cross_entropy\", logits = \"logits\", "
                      "labels = \"labels\" } ]\n"),
              HasSubstr("loss.terms: the model's training_info says"));
  EXPECT_THAT(refusal("micro_batch = 4\n"), HasSubstr("micro_batch: the model's training_info"));
  EXPECT_THAT(refusal("[parameters]\nfreeze = [ { at = \"fc1:weight\" } ]\n"),
              HasSubstr("parameters.freeze: the model's training_info"));
  EXPECT_THAT(refusal("[precision]\ncompute = \"float16\"\n"),
              HasSubstr("precision.compute: the model's training_info"));
  EXPECT_THAT(refusal("[loss]\noutput = \"logits\"\n"),
              AllOf(HasSubstr("loss.output: the model's training has no such loss to log"),
                    HasSubstr("'logits': float32[8, 3]")));
}

TEST(TrainingInfoTest, OtherModelsNeedAnOptimizer) {
  const ShortRun run(toml_of_file("own_loss"));
  EXPECT_THAT(error_of([&] { run.train(); }),
              AllOf(HasSubstr("optimizer: this key is missing"), HasSubstr("training_info")));
}

}  // namespace
}  // namespace tandem::api
