// Sessions of the C library: their numbers are those of the C++ library, to the bit.
#include <dlpack/dlpack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "tandem/policy.h"
#include "tandem/session.h"
#include "tests/api/c_calls.h"
#include "tests/api/digits.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using testing::CFeeds;
using testing::cross_entropy;
using testing::digits_model;
using ::testing::HasSubstr;
using testing::sized;
using testing::taken;
using testing::training_digits;

const std::vector<std::string> settings{cross_entropy, "optimizer.kind=adam", "optimizer.lr=2e-3",
                                        "eval.metrics=[\"accuracy\"]", "seed=7"};

/// These settings again: some of them in the text of a file, others over it.
constexpr const char* toml = R"(
seed = 3
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" } ]
[optimizer]
kind = "adam"
lr   = 1.0
[eval]
metrics = [ "accuracy" ]
)";

class CSessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::vector<const char*> overrides{"optimizer.lr=2e-3", "seed=7"};
    auto config = sized<TandemSessionConfig>();
    config.model = digits_model.c_str();
    config.batch_size = 32;
    config.toml = toml;
    config.settings = testing::texts_in(overrides);
    ASSERT_OK(tandem_session_create(&config, &session_));
  }
  void TearDown() override {
    tandem_session_close(&session_);
    EXPECT_EQ(session_, nullptr);
  }

  double step(api::Tensors feeds) {
    CFeeds fed(std::move(feeds));
    double loss = -1;
    EXPECT_OK(tandem_session_step(session_, fed.data(), fed.size(), &loss));
    return loss;
  }
  api::Tensors predict(api::Tensors feeds) {
    CFeeds fed(std::move(feeds));
    TandemTensors* outputs = nullptr;
    EXPECT_OK(tandem_session_predict(session_, fed.data(), fed.size(), &outputs));
    return taken(outputs);
  }
  api::Tensors parameters() {
    TandemTensors* all = nullptr;
    EXPECT_OK(tandem_session_parameters(session_, &all));
    return taken(all);
  }

  TandemSession* session_ = nullptr;
  api::Session expected_{digits_model, 32, settings};
  testing::TemporaryFolder folder_;
};

TEST_F(CSessionTest, TrainsLikeTheCppSession) {
  EXPECT_EQ(parameters(), expected_.parameters());
  double first = 0, last = 0;
  for (int i = 0; i < 20; ++i) {
    const auto batch = training_digits().batch(32 * i, i == 13 ? 7 : 32);  // once fewer samples
    last = step(batch);
    EXPECT_EQ(last, expected_.step(batch)) << i;
    if (i == 0) first = last;
  }
  EXPECT_LT(last, first);
  EXPECT_EQ(parameters(), expected_.parameters());
  const auto images = training_digits().image(700, 50);
  EXPECT_EQ(predict(images), expected_.predict(images));

  ASSERT_OK(tandem_session_set_learning_rate(session_, 0));
  const auto before = parameters();
  step(training_digits().batch(0, 32));
  EXPECT_EQ(parameters(), before);
}

TEST_F(CSessionTest, TakesThePolicyOfATextOrAFile) {
  const std::string text =
      "policy = 1\n"
      "devices = { gpu = { use = \"emulated:0\" } }\n"
      "rules = [ { at = \"**\", on = \"gpu\" } ]\n";
  const api::Policy policy = api::Policy::parse(text);
  policy.save(folder_ / "policy.toml");
  const std::string file = folder_ / "policy.toml";
  api::Session placed(digits_model, 32, settings, &policy);
  const auto batch = training_digits().batch(0, 32);
  const double loss = placed.step(batch);
  const std::vector<const char*> all{settings[0].c_str(), "optimizer.kind=adam",
                                     "optimizer.lr=2e-3", "seed=7"};
  auto config = sized<TandemSessionConfig>();
  config.model = digits_model.c_str();
  config.batch_size = 32;
  config.settings = testing::texts_in(all);
  for (const bool is_file : {false, true}) {
    config.policy = is_file ? file.c_str() : nullptr;
    config.policy_text = is_file ? nullptr : text.c_str();
    tandem_session_close(&session_);
    ASSERT_OK(tandem_session_create(&config, &session_));
    EXPECT_EQ(step(batch), loss);
  }
  config.policy = nullptr;
  config.policy_text = "policy = 1\nrules = [ { at = \"**\", on = \"gpuu\" } ]\n";
  tandem_session_close(&session_);
  EXPECT_EQ(tandem_session_create(&config, &session_), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("policy.toml:2:"));
  EXPECT_THROW(api::Session(digits_model, 32, {"policy=\"a.toml\""}, &policy), Error);
}

TEST_F(CSessionTest, EvaluatesLikeTheCppSession) {
  const auto batch = training_digits().batch(0, 100);
  CFeeds fed(batch);
  TandemValues values{};
  ASSERT_OK(tandem_session_evaluate(session_, fed.data(), fed.size(), &values));
  const std::map<std::string, double> named = testing::by_name(values);
  EXPECT_EQ(named, expected_.evaluate(batch));
  EXPECT_EQ(named.count("accuracy"), 1u);
}

TEST_F(CSessionTest, ContinuesFromSavedStates) {
  const auto batch = training_digits().batch(0, 32);
  for (int i = 0; i < 3; ++i) step(batch);
  const std::string state = folder_ / "state.safetensors";
  ASSERT_OK(tandem_session_save_state(session_, state.c_str()));
  expected_.restore_state(state);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step(batch), expected_.step(batch));
  const auto after = parameters();
  ASSERT_OK(tandem_session_restore_state(session_, state.c_str()));
  for (int i = 0; i < 3; ++i) step(batch);
  EXPECT_EQ(parameters(), after);

  const std::string file = folder_ / "trained.onnx";
  ASSERT_OK(tandem_session_save(session_, file.c_str()));
  const api::Session saved(file, 32, settings);
  EXPECT_EQ(saved.parameters(), after);
}

TEST_F(CSessionTest, KeepsNoMemoryOfTheCaller) {
  std::vector<float> bias(10, 0.5f);
  const std::int64_t shape[] = {10};
  auto value = sized<TandemTensor>();
  value.name = "fc2.bias";
  value.shape = shape;
  value.rank = 1;
  value.dtype = TANDEM_FLOAT32;
  value.data = bias.data();
  value.bytes = bias.size() * sizeof(float);
  ASSERT_OK(tandem_session_set_parameter(session_, &value));
  bias.assign(10, -100.0f);
  EXPECT_EQ(parameters().at("fc2.bias"), api::Tensor::copy_of({10}, std::vector<float>(10, 0.5f)));
}

TEST_F(CSessionTest, TakesDataAtAnyAddress) {
  const auto batch = training_digits().batch(0, 32);
  CFeeds fed(batch);
  std::vector<std::byte> moved(fed[0].bytes + 1);  // one byte behind an aligned address
  std::copy_n(static_cast<const std::byte*>(fed[0].data), fed[0].bytes, moved.begin() + 1);
  fed[0].data = moved.data() + 1;
  double loss = 0;
  ASSERT_OK(tandem_session_step(session_, fed.data(), fed.size(), &loss));
  EXPECT_EQ(loss, expected_.step(batch));
}

TEST_F(CSessionTest, ExchangesTensorsByDlpack) {
  const auto batch = training_digits().batch(0, 32);
  CFeeds fed(batch);
  DLManagedTensor* const image = batch.at("image").to_dlpack();
  ASSERT_STREQ(fed[0].name, "image");
  fed[0] = sized<TandemTensor>();
  fed[0].name = "image";
  fed[0].dlpack = image;
  double loss = 0;
  ASSERT_OK(tandem_session_step(session_, fed.data(), fed.size(), &loss));
  EXPECT_EQ(loss, expected_.step(batch));

  image->dl_tensor.device.device_type = kDLCUDA;
  EXPECT_EQ(tandem_session_step(session_, fed.data(), fed.size(), &loss), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("image: this tensor lies on another device"));
  image->deleter(image);  // it is still the caller's

  TandemTensors* outputs = nullptr;
  CFeeds images(training_digits().image(0, 4));
  ASSERT_OK(tandem_session_predict(session_, images.data(), images.size(), &outputs));
  DLManagedTensor* given = nullptr;
  ASSERT_OK(tandem_tensors_dlpack(outputs, 0, &given));
  const api::Tensors copies = taken(outputs);  // closes `outputs`
  const api::Tensor logits = api::Tensor::from_dlpack(given);
  EXPECT_EQ(logits, copies.at("logits"));
  EXPECT_EQ(logits, expected_.predict(training_digits().image(0, 4)).at("logits"));
}

TEST_F(CSessionTest, OutputsOutliveTheSession) {
  CFeeds fed(training_digits().image(0, 4));
  TandemTensors *first = nullptr, *second = nullptr;
  ASSERT_OK(tandem_session_predict(session_, fed.data(), fed.size(), &first));
  step(training_digits().batch(0, 32));
  ASSERT_OK(tandem_session_predict(session_, fed.data(), fed.size(), &second));
  tandem_session_close(&session_);
  EXPECT_NE(taken(first), taken(second));
}

TEST_F(CSessionTest, RefusesFeedsAndGoesOn) {
  CFeeds fed(training_digits().batch(0, 32));
  double loss = -1;
  const auto refused = [&](const char* message) {
    EXPECT_EQ(tandem_session_step(session_, fed.data(), fed.size(), &loss), TANDEM_USAGE);
    EXPECT_THAT(tandem_error_message(), HasSubstr(message));
    EXPECT_EQ(loss, -1);
  };
  TandemTensor& image = fed[0];
  const TandemTensor right = image;
  image.dtype = TANDEM_INT32;
  refused("image: this input is fed with another type");
  image.dtype = 99;
  refused("image: there is no such element type: expected a TandemDType, got 99");
  image = right;
  image.name = "imagee";
  refused("imagee: neither the model nor the loss takes this");
  image.name = nullptr;
  refused("feeds[0].name: this text is NULL");
  image.name = "labels";
  refused("labels: two tensors have this name");
  image = right;
  image.bytes -= 4;
  refused("image: a tensor's values do not fill its shape");
  image = right;
  image.data = nullptr;
  refused("image: the data of this tensor is NULL");
  image = right;
  image.shape = nullptr;
  refused("image: the shape of this tensor is NULL");
  image = right;
  image.rank = -1;
  refused("image: a tensor cannot have this rank");
  image = right;
  EXPECT_EQ(step(training_digits().batch(0, 32)), expected_.step(training_digits().batch(0, 32)));
  EXPECT_STREQ(tandem_error_message(), "");
}

TEST_F(CSessionTest, SaysWhichDataIsBad) {
  const std::vector<std::int64_t> labels(32, 10);  // there are 10 classes, from 0 on
  auto batch = training_digits().batch(0, 32);
  batch["labels"] = api::Tensor::view({32}, labels);
  CFeeds fed(batch);
  EXPECT_EQ(tandem_session_step(session_, fed.data(), fed.size(), nullptr), TANDEM_DATA);
  EXPECT_THAT(tandem_error_message(), HasSubstr("labels"));
}

TEST(CSessionConfigTest, ReportsEveryMistakeOfTextAndSettings) {
  const std::vector<const char*> overrides{"seeed=7"};
  auto config = sized<TandemSessionConfig>();
  config.model = digits_model.c_str();
  config.batch_size = 32;
  config.toml = "[optimizer]\nlrr = 1\n[data]\nkind = \"npz\"\n";
  config.settings = testing::texts_in(overrides);
  TandemSession* session = nullptr;
  EXPECT_EQ(tandem_session_create(&config, &session), TANDEM_USAGE);
  EXPECT_EQ(session, nullptr);
  for (const char* key : {"optimizer.lrr", "data", "seeed"})
    EXPECT_THAT(tandem_error_message(), HasSubstr(key));
  EXPECT_GE(tandem_error_count(), 3u);

  config.toml = "[optimizer\n";
  EXPECT_EQ(tandem_session_create(&config, &session), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("train.toml:"));
  config.model = nullptr;
  config.toml = nullptr;
  EXPECT_EQ(tandem_session_create(&config, &session), TANDEM_USAGE);
  EXPECT_THAT(tandem_error_message(), HasSubstr("config.model: this argument is NULL"));
}

// Settings with every kind of value give the session that the settings alone give.
TEST(CSessionConfigTest, ReadsEveryKindOfValue) {
  const std::string text = R"(
steps = 40
[parameters]
freeze = [ { at = "conv*", until = "5 steps" } ]
[loss]
terms = [ { kind = "softmax_cross_entropy", logits = "logits", labels = "labels", label_smoothing = 0.1 } ]
[optimizer]
kind = "adamw"
betas = [ 0.8, 0.99 ]
schedule = { kind = "cosine", warmup = "4 steps", final = 1e-5 }
bias_correction = false
)";
  auto config = sized<TandemSessionConfig>();
  config.model = digits_model.c_str();
  config.batch_size = 32;
  config.toml = text.c_str();
  TandemSession* session = nullptr;
  ASSERT_OK(tandem_session_create(&config, &session));
  api::Session expected(
      digits_model, 32,
      {"steps=40", R"(parameters.freeze=[{ at = "conv*", until = "5 steps" }])",
       R"(loss.terms=[{ kind = "softmax_cross_entropy", logits = "logits", labels = "labels", label_smoothing = 0.1 }])",
       "optimizer.kind=adamw", "optimizer.betas=[0.8, 0.99]",
       R"(optimizer.schedule={ kind = "cosine", warmup = "4 steps", final = 1e-5 })",
       "optimizer.bias_correction=false"});
  for (int i = 0; i < 8; ++i) {
    const auto batch = training_digits().batch(32 * i, 32);
    CFeeds fed(batch);
    double loss = 0;
    ASSERT_OK(tandem_session_step(session, fed.data(), fed.size(), &loss));
    EXPECT_EQ(loss, expected.step(batch)) << i;
  }
  tandem_session_close(&session);
}

}  // namespace
}  // namespace tandem
