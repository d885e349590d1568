// Trainers of the C library: callbacks, stopping, samples of the program, and what becomes of runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "tandem/data_source.h"
#include "tandem/tandem.h"
#include "tandem/train_config.h"
#include "tests/api/c_calls.h"
#include "tests/api/digits.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using testing::by_name;
using testing::Digits;
using testing::digits;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::sized;
using testing::training_digits;
using Json = nlohmann::json;

const std::string config_path = digits + "train.toml";

/// What callbacks have got, and what they return.
struct Heard {
  std::vector<std::uint64_t> steps, evaluations, checkpoints;
  std::map<std::string, double> last_values;
  std::vector<std::string> checkpoint_paths, messages;
  TandemTrainer* stopped = nullptr;  // on the first step
  int result = 0;                    // on steps
};

TandemCallbacks callbacks_into(Heard& heard) {
  auto callbacks = sized<TandemCallbacks>();
  callbacks.user = &heard;
  callbacks.on_step = [](void* user, const TandemProgress* progress) {
    Heard& to = *static_cast<Heard*>(user);
    to.steps.push_back(progress->step);
    tandem_trainer_stop(to.stopped);
    return to.result;
  };
  callbacks.on_evaluation = [](void* user, const TandemProgress* progress) {
    Heard& to = *static_cast<Heard*>(user);
    to.evaluations.push_back(progress->step);
    to.last_values = by_name(progress->values);
    return 0;
  };
  callbacks.on_checkpoint = [](void* user, const char* path, std::uint64_t step) {
    static_cast<Heard*>(user)->checkpoints.push_back(step);
    static_cast<Heard*>(user)->checkpoint_paths.emplace_back(path);
    return 0;
  };
  callbacks.on_message = [](void* user, const char* text) {
    static_cast<Heard*>(user)->messages.emplace_back(text);
    return 0;
  };
  return callbacks;
}

class CTrainerTest : public ::testing::Test {
 protected:
  CTrainerTest() : run_dir_(folder_ / "run") {
    config_.path = config_path.c_str();
    config_.run_dir = run_dir_.c_str();
    config_.callbacks = &callbacks_;
  }
  void TearDown() override {
    tandem_trainer_close(&trainer_);
    EXPECT_EQ(trainer_, nullptr);
  }
  void create(const std::vector<const char*>& overrides) {
    config_.overrides = testing::texts_in(overrides);
    ASSERT_OK(tandem_trainer_create(&config_, &trainer_));
  }

  testing::TemporaryFolder folder_;
  std::string run_dir_;
  Heard heard_;
  TandemCallbacks callbacks_ = callbacks_into(heard_);
  TandemTrainerConfig config_ = sized<TandemTrainerConfig>();
  TandemTrainer* trainer_ = nullptr;
  TandemTrainResult result_ = sized<TandemTrainResult>();
};

TEST_F(CTrainerTest, RunsLikeTheCppTrainer) {
  create({"steps=90", "log.every=30 steps", "checkpoint.every=45 steps"});
  EXPECT_THAT(tandem_trainer_summary(trainer_), HasSubstr("38282 parameters"));
  ASSERT_OK(tandem_trainer_run(trainer_, &result_));

  api::TrainOptions options;
  options.overrides = {"steps=90", "log.every=30 steps", "checkpoint.every=45 steps"};
  options.run_dir = folder_ / "expected";
  const api::TrainResult expected = api::Trainer(config_path, options).run();
  EXPECT_EQ(result_.loss, expected.loss);
  EXPECT_EQ(result_.steps, 90u);
  EXPECT_EQ(result_.run_dir, run_dir_);
  EXPECT_EQ(result_.best_metric, expected.best_metric);
  EXPECT_EQ(result_.best_value, expected.best_value);
  EXPECT_EQ(result_.best_step, expected.best_step);
  EXPECT_EQ(result_.interrupted, 0);
  EXPECT_EQ(by_name(result_.evaluation), expected.evaluation);

  EXPECT_THAT(heard_.steps, ElementsAre(1, 30, 60, 90));
  EXPECT_THAT(heard_.evaluations, ElementsAre(45, 90));  // an epoch has 45 steps
  EXPECT_EQ(heard_.last_values.at("accuracy"), expected.evaluation.at("accuracy"));
  EXPECT_THAT(heard_.checkpoints, ::testing::IsSupersetOf({45, 90}));
  for (const std::string& path : heard_.checkpoint_paths)
    EXPECT_THAT(path, HasSubstr(run_dir_ + "/checkpoints/"));

  EXPECT_EQ(tandem_trainer_run(trainer_, nullptr), TANDEM_USAGE);  // a second time
  EXPECT_STRNE(tandem_error_message(), "");
}

// The configuration names the policy of the digits, which has four rules.
TEST_F(CTrainerTest, TakesThePolicyOfAFileOfATextOrNone) {
  const std::string file = digits + "policy.toml", named = "policy=\"" + file + "\"";
  const std::string text = "policy = 1\nrules = [ { at = \"fc*.**\", on = \"cpu\" } ]\n";
  const auto policy_of_run = [&](const std::string& run) {
    run_dir_ = folder_ / run;
    config_.run_dir = run_dir_.c_str();
    create({"steps=2", "checkpoint.every=2 steps", named.c_str()});
    EXPECT_OK(tandem_trainer_run(trainer_, &result_));
    tandem_trainer_close(&trainer_);
    return read_file(run_dir_ + "/policy.toml");
  };
  EXPECT_EQ(policy_of_run("configuration"), read_file(file));
  config_.policy = "";
  EXPECT_EQ(policy_of_run("none"), "policy = 1\n");
  config_.policy = nullptr;
  config_.policy_text = text.c_str();
  EXPECT_EQ(policy_of_run("text"), text);
  config_.struct_size = offsetof(TandemTrainerConfig, policy);  // as before there were these
  EXPECT_EQ(policy_of_run("earlier"), read_file(file));
  config_.struct_size = sizeof config_;

  config_.overrides = {};
  config_.policy = file.c_str();
  EXPECT_EQ(tandem_trainer_create(&config_, &trainer_), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("config.policy_text"));
  config_.policy_text = nullptr;
  EXPECT_EQ(policy_of_run("file"), read_file(file));
  config_.overrides = {};
  config_.policy = "absent.toml";
  EXPECT_EQ(tandem_trainer_create(&config_, &trainer_), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("absent.toml"));
}

TEST_F(CTrainerTest, IsStoppedAndResumed) {
  create({"steps=90", "log.every=10 steps"});
  heard_.stopped = trainer_;
  ASSERT_OK(tandem_trainer_run(trainer_, &result_));
  EXPECT_EQ(result_.interrupted, 1);
  EXPECT_GE(result_.steps, 1u);
  EXPECT_LT(result_.steps, 10u);
  tandem_trainer_close(&trainer_);

  heard_.stopped = nullptr;
  config_.resume = 1;
  create({});
  ASSERT_OK(tandem_trainer_run(trainer_, &result_));
  EXPECT_EQ(result_.steps, 90u);
  EXPECT_EQ(result_.interrupted, 0);
}

TEST_F(CTrainerTest, ACallbackEndsTheRun) {
  create({"steps=90", "log.every=10 steps"});
  heard_.result = 7;
  EXPECT_EQ(tandem_trainer_run(trainer_, &result_), TANDEM_RUNTIME);
  EXPECT_STREQ(tandem_error_message(), "on_step: this callback ended the run: expected 0, got 7");
  EXPECT_EQ(heard_.steps.size(), 1u);
  EXPECT_EQ(result_.steps, 0u);  // nothing was written
}

TEST_F(CTrainerTest, ADryRunWritesNothing) {
  config_.dry_run = 1;
  create({"steps=5"});
  ASSERT_OK(tandem_trainer_run(trainer_, &result_));
  EXPECT_FALSE(std::filesystem::exists(run_dir_));
}

TEST_F(CTrainerTest, ConfigurationsAreFilesOrTexts) {
  config_.path = nullptr;
  EXPECT_EQ(tandem_trainer_create(&config_, &trainer_), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("config.path: this argument is NULL"));
  const std::string path = folder_ / "nowhere.toml";
  config_.path = path.c_str();
  EXPECT_EQ(tandem_trainer_create(&config_, &trainer_), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("nowhere.toml"));
  config_.toml = "model = \"none.onnx\"\nstepss = 5\n";
  EXPECT_EQ(tandem_trainer_create(&config_, &trainer_), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("nowhere.toml:2:"));
  EXPECT_EQ(trainer_, nullptr);
}

TEST_F(CTrainerTest, RunsAreExportedEvaluatedAndUsed) {
  create({"steps=45"});
  ASSERT_OK(tandem_trainer_run(trainer_, nullptr));

  const char* text = nullptr;
  const std::string file = folder_ / "trained.onnx";
  ASSERT_OK(tandem_export_run(run_dir_.c_str(), file.c_str(), nullptr, &text));
  EXPECT_THAT(text, HasSubstr("trained.onnx"));
  EXPECT_TRUE(std::filesystem::exists(file));

  ASSERT_OK(tandem_evaluate_run(run_dir_.c_str(), nullptr, &text));
  EXPECT_EQ(Json::parse(text)["metrics"],
            Json::parse(api::evaluate_run(run_dir_, {}).json)["metrics"]);

  const std::string by_c = folder_ / "c.tsv", by_cpp = folder_ / "cpp.tsv";
  const std::string samples = digits + "digits_test.npz";
  const std::vector<const char*> data{samples.c_str()};
  auto options = sized<TandemTrainedOptions>();
  options.data = testing::texts_in(data);
  options.checkpoint = "latest";
  options.as = "class";
  options.header = 1;
  ASSERT_OK(tandem_predict_run(run_dir_.c_str(), by_c.c_str(), &options, &text));
  api::PredictOptions expected;
  expected.data = {samples};
  expected.checkpoint = "latest";
  expected.as = "class";
  expected.header = true;
  expected.to = by_cpp;
  api::predict_run(run_dir_, expected);
  std::ifstream c(by_c), cpp(by_cpp);
  const std::string c_text{std::istreambuf_iterator<char>(c), {}};
  EXPECT_EQ(c_text, (std::string{std::istreambuf_iterator<char>(cpp), {}}));
  EXPECT_EQ(std::count(c_text.begin(), c_text.end(), '\n'), 361);  // 360 images and a header

  options.checkpoint = "46";
  EXPECT_EQ(tandem_export_run(run_dir_.c_str(), file.c_str(), &options, nullptr), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("no such checkpoint"));
}

constexpr const char* of_program = R"(
model      = "model.onnx"
batch_size = 32
epochs     = 1
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "adam"
lr   = 2e-3
[eval]
metrics = [ "accuracy" ]
)";

/// The digits as a C program gives them.
struct CDigits {
  Digits all;
  std::atomic<int> fills = 0, releases = 0;
  int result = 0;  // what `fill` returns
  std::int64_t image_shape[3] = {1, 8, 8};
  std::vector<TandemTensor> fields;

  explicit CDigits(const std::string& file)
      : all(file), fields{sized_field("image"), sized_field("labels")} {
    fields[0].dtype = TANDEM_FLOAT32;
    fields[0].rank = 3;
    fields[0].shape = image_shape;
    fields[1].dtype = TANDEM_INT64;
  }
  static TandemTensor sized_field(const char* name) {
    auto field = sized<TandemTensor>();
    field.name = name;
    return field;
  }
  std::int64_t samples() const { return all.labels.shape()[0]; }
  void write(std::size_t field, std::int64_t sample, void* to) const {
    if (field == 0)
      std::memcpy(to, all.images.as<float>().data() + 64 * sample, 64 * sizeof(float));
    else
      std::memcpy(to, all.labels.as<std::int64_t>().data() + sample, sizeof(std::int64_t));
  }

  TandemDataSource source() {
    auto source = sized<TandemDataSource>();
    source.user = this;
    source.fields = fields.data();
    source.field_count = fields.size();
    source.samples = samples();
    source.identity = "digits";
    source.fill = [](void* user, std::size_t field, const std::int64_t* indices, std::size_t count,
                     void* to) {
      CDigits& my = *static_cast<CDigits*>(user);
      ++my.fills;
      const std::size_t bytes = field == 0 ? 64 * sizeof(float) : sizeof(std::int64_t);
      for (std::size_t i = 0; i < count; ++i)
        my.write(field, indices[i], static_cast<std::byte*>(to) + i * bytes);
      return my.result;
    };
    source.release = [](void* user) { ++static_cast<CDigits*>(user)->releases; };
    return source;
  }
};

/// The digits as a C++ program gives them.
class CppDigits final : public api::DataSource {
 public:
  explicit CppDigits(const std::string& file) : all_(file) {}
  std::vector<api::DataField> fields() const override {
    return {{"image", DType::float32, {1, 8, 8}}, {"labels", DType::int64, {}}};
  }
  std::int64_t samples() const override { return all_.samples(); }
  void fill(std::size_t field, std::span<const std::int64_t> indices, void* to) const override {
    const std::size_t bytes = field == 0 ? 64 * sizeof(float) : sizeof(std::int64_t);
    for (std::size_t i = 0; i < indices.size(); ++i)
      all_.write(field, indices[i], static_cast<std::byte*>(to) + i * bytes);
  }
  std::string identity() const override { return "digits"; }

 private:
  CDigits all_;
};

TEST_F(CTrainerTest, TrainsOnSamplesOfTheProgram) {
  CDigits train("digits_train.npz"), eval("digits_test.npz");
  const TandemDataSource train_source = train.source(), eval_source = eval.source();
  config_.toml = of_program;  // its model is next to `path`
  config_.train_samples = &train_source;
  config_.eval_samples = &eval_source;
  create({"seed=5"});
  train.fields.clear();  // they were copied
  ASSERT_OK(tandem_trainer_run(trainer_, &result_));
  EXPECT_EQ(result_.steps, 45u);
  EXPECT_GT(train.fills, 0);
  EXPECT_GT(eval.fills, 0);
  EXPECT_EQ(train.releases, 0);
  const double loss = result_.loss;
  const std::map<std::string, double> evaluation = by_name(result_.evaluation);
  EXPECT_GT(evaluation.at("accuracy"), 0.5);
  tandem_trainer_close(&trainer_);
  EXPECT_EQ(train.releases, 1);
  EXPECT_EQ(eval.releases, 1);

  const std::string file = folder_ / "train.toml";
  std::ofstream(file) << of_program;
  std::filesystem::copy(digits + "model.onnx", folder_ / "model.onnx");
  api::TrainOptions options;
  options.overrides = {"seed=5"};
  options.run_dir = folder_ / "expected";
  options.train = std::make_shared<CppDigits>("digits_train.npz");
  options.eval = std::make_shared<CppDigits>("digits_test.npz");
  const api::TrainResult expected = api::Trainer(file, options).run();
  EXPECT_EQ(loss, expected.loss);
  EXPECT_EQ(evaluation, expected.evaluation);
}

TEST_F(CTrainerTest, SamplesThatFailEndTheRun) {
  CDigits train("digits_train.npz"), eval("digits_test.npz");
  TandemDataSource source = train.source();
  const TandemDataSource eval_source = eval.source();
  config_.toml = of_program;
  config_.train_samples = &source;
  config_.eval_samples = &eval_source;
  train.result = 3;  // labels are read by the check before the first step
  EXPECT_EQ(tandem_trainer_create(&config_, &trainer_), TANDEM_DATA);
  EXPECT_THAT(
      tandem_error_message(),
      ::testing::AllOf(HasSubstr("data.fields.labels: `fill` of the program's samples failed"),
                       HasSubstr("expected 0, got 3")));
  EXPECT_EQ(train.releases, 0);  // they are still the caller's

  source.fill = nullptr;
  EXPECT_EQ(tandem_trainer_create(&config_, &trainer_), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("config.train_samples.fill"));
  source = train.source();
  source.identity = nullptr;
  EXPECT_EQ(tandem_trainer_create(&config_, &trainer_), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("config.train_samples.identity"));
  source = train.source();
  train.fields[1].name = nullptr;
  EXPECT_EQ(tandem_trainer_create(&config_, &trainer_), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("config.train_samples.fields[1].name"));
}

}  // namespace
}  // namespace tandem
