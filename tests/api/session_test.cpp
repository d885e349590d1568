// Training fed by the caller: steps, predictions, parameters, saved files, mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "engine/formats/npy.h"
#include "engine/formats/safetensors.h"
#include "tandem/tandem.h"
#include "tests/api/error_of.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::error_of;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::SizeIs;

const std::string digits = std::string(TANDEM_SOURCE_DIR) + "/models/digits/";
const std::string cross_entropy =
    R"(loss.terms=[{ name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" }])";
const std::vector<std::string> adam{cross_entropy, "optimizer.kind=adam", "optimizer.lr=0.003"};

Session open(std::int64_t batch, std::vector<std::string> settings = adam) {
  return Session(digits + "model.onnx", batch, settings);
}

/// Images (scaled to 0..1) and labels of the committed digits.
struct Digits {
  HostTensor images, labels;
  explicit Digits(const std::string& file) {
    for (const NamedTensor& t : read_npz(digits + file))
      (t.name == "images" ? images : labels) = t.tensor;
    images = images.converted(DType::float32);
    for (float& x : images.as<float>()) x /= 16;
  }
  std::map<std::string, Array> batch(std::int64_t first, std::int64_t count) const {
    const float* x = images.as<float>().data() + 64 * first;
    const std::int64_t* y = labels.as<std::int64_t>().data() + first;
    return {{"image", Array::of({count, 1, 8, 8}, std::vector<float>(x, x + 64 * count))},
            {"labels", Array::of({count}, std::vector<std::int64_t>(y, y + count))}};
  }
  std::map<std::string, Array> image(std::int64_t first, std::int64_t count) const {
    auto feeds = batch(first, count);
    feeds.erase("labels");
    return feeds;
  }
};

const Digits& training_digits() {
  static const Digits all("digits_train.npz");
  return all;
}

TEST(ArrayTest, HoldsBytesOfATypeAndShape) {
  const Array floats = Array::of({2, 1}, std::vector<float>{1, 2});
  EXPECT_EQ(floats.dtype, "float32");
  EXPECT_EQ(floats.bytes.size(), 8u);
  EXPECT_THAT(floats.floats(), ::testing::ElementsAre(1, 2));
  EXPECT_THAT(Array::of({2}, std::vector<std::int64_t>{3, 4}).floats(),
              ::testing::ElementsAre(3, 4));
}

TEST(SessionTest, LearnsDigits) {
  Session session = open(32);
  double first = 0, last = 0;
  for (int step = 0; step < 80; ++step) {
    last = session.step(training_digits().batch(32 * (step % 44), 32));
    if (step == 0) first = last;
  }
  EXPECT_NEAR(first, 2.3, 0.3);
  EXPECT_LT(last, 0.7);

  const Digits held_out("digits_test.npz");
  const auto outputs = session.predict(held_out.image(0, 360));
  ASSERT_THAT(outputs, Contains(Key("logits")));
  const Array& logits = outputs.at("logits");
  EXPECT_EQ(logits.shape, (std::vector<std::int64_t>{360, 10}));
  const std::vector<float> values = logits.floats();
  int right = 0;
  for (int i = 0; i < 360; ++i) {
    const auto row = values.begin() + 10 * i;
    right += std::max_element(row, row + 10) - row == held_out.labels.as<std::int64_t>()[i];
  }
  EXPECT_GT(right, 290);
}

TEST(SessionTest, EqualSessionsAreBitEqual) {
  Session a = open(16), b = open(16);
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(a.step(training_digits().batch(16 * step, 16)),
              b.step(training_digits().batch(16 * step, 16)));
  }
  const auto first = a.parameters(), second = b.parameters();
  for (const auto& [name, array] : first) EXPECT_EQ(array.bytes, second.at(name).bytes) << name;
}

TEST(SessionTest, Tf32ChangesNothingOnTheHost) {
  std::vector<std::string> asked = adam;
  asked.push_back("precision.tf32=true");
  Session plain = open(16), with = open(16, asked);
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(plain.step(training_digits().batch(16 * step, 16)),
              with.step(training_digits().batch(16 * step, 16)));
  }
}

TEST(SessionTest, PredictionsTakeAnyBatchAndChangeNothing) {
  Session session = open(8);
  session.step(training_digits().batch(0, 8));
  const auto before = session.parameters();
  const std::vector<float> together =
      session.predict(training_digits().image(0, 5)).at("logits").floats();
  for (int i = 0; i < 5; ++i) {
    const std::vector<float> alone =
        session.predict(training_digits().image(i, 1)).at("logits").floats();
    for (int c = 0; c < 10; ++c) EXPECT_NEAR(alone[c], together[10 * i + c], 1e-5);
  }
  for (const auto& [name, array] : session.parameters())
    EXPECT_EQ(array.bytes, before.at(name).bytes) << name;
}

TEST(SessionTest, PredictsBeforeTheFirstStep) {
  Session session = open(8);
  const std::vector<float> before =
      session.predict(training_digits().image(0, 8)).at("logits").floats();
  EXPECT_NEAR(session.step(training_digits().batch(0, 8)), 2.3, 0.3);
  EXPECT_NE(session.predict(training_digits().image(0, 8)).at("logits").floats(), before);
}

TEST(SessionTest, ParametersAreReadAndWrittenByName) {
  Session session = open(8, {cross_entropy, "optimizer.kind=sgd", "optimizer.lr=0.0"});
  session.step(training_digits().batch(0, 8));
  auto parameters = session.parameters();
  EXPECT_THAT(parameters, SizeIs(8));
  ASSERT_THAT(parameters, Contains(Key("fc2.weight")));
  EXPECT_EQ(parameters.at("fc2.weight").shape, (std::vector<std::int64_t>{10, 64}));
  session.set_parameter("fc2.weight", Array::of({10, 64}, std::vector<float>(640, 0.0f)));
  session.set_parameter("fc2.bias",
                        Array::of({10}, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(session.parameters().at("fc2.bias").floats()[9], 9);
  EXPECT_FLOAT_EQ(session.predict(training_digits().image(3, 2)).at("logits").floats()[14], 4);
}

TEST(SessionTest, ParametersExistBeforeTheFirstStep) {
  testing::TemporaryFolder folder;
  Session session = open(8, {cross_entropy, "optimizer.kind=sgd", "optimizer.lr=0.0"});
  const auto start = session.parameters();
  EXPECT_THAT(start, SizeIs(8));
  const Array zeros = Array::of({10, 64}, std::vector<float>(640, 0.0f));
  session.set_parameter("fc2.weight", zeros);
  EXPECT_EQ(session.parameters().at("fc2.weight").bytes, zeros.bytes);
  session.save(folder / "weights.npz");
  for (const NamedTensor& t : read_npz(folder / "weights.npz")) {
    if (t.name != "fc2.weight") continue;
    EXPECT_EQ(std::memcmp(t.tensor.data(), zeros.bytes.data(), zeros.bytes.size()), 0);
  }
  session.step(training_digits().batch(0, 8));
  for (const auto& [name, array] : session.parameters()) {
    EXPECT_EQ(array.bytes, name == "fc2.weight" ? zeros.bytes : start.at(name).bytes) << name;
  }
}

TEST(SessionTest, SavesTheModelAndItsWeights) {
  testing::TemporaryFolder folder;
  Session session = open(8);
  session.step(training_digits().batch(0, 8));
  const auto parameters = session.parameters();
  session.save(folder / "trained.onnx");
  session.save(folder / "weights.safetensors");
  session.save(folder / "weights.npz");

  const SafetensorsFile weights(folder / "weights.safetensors");
  EXPECT_EQ(weights.tensors().size(), parameters.size());
  for (const NamedTensor& t : weights.tensors()) {
    const Array& array = parameters.at(t.name);
    EXPECT_EQ(t.tensor.shape(), array.shape);
    EXPECT_EQ(std::memcmp(t.tensor.data(), array.bytes.data(), array.bytes.size()), 0) << t.name;
  }
  EXPECT_EQ(read_npz(folder / "weights.npz").size(), parameters.size());

  Session again(folder / "trained.onnx", 8, adam);
  EXPECT_EQ(again.predict(training_digits().image(0, 8)).at("logits").floats(),
            session.predict(training_digits().image(0, 8)).at("logits").floats());
  EXPECT_THAT(error_of([&] { session.save(folder / "weights.bin"); }), HasSubstr("weights.bin"));
}

TEST(SessionTest, TiedWeightsAreSavedOnce) {
  testing::TemporaryFolder folder;
  const std::string tied =
      std::string(TANDEM_SOURCE_DIR) + "/tests/data/parity/tied_decoder_dynamo.onnx";
  Session session(tied, 2, {cross_entropy, "optimizer.kind=sgd"});
  session.save(folder / "weights.safetensors");
  const SafetensorsFile weights(folder / "weights.safetensors");
  EXPECT_NE(weights.find("head.weight"), nullptr);
  EXPECT_EQ(weights.find("token.weight"), nullptr);
  EXPECT_EQ(weights.metadata().at("alias:token.weight"), "head.weight");
}

// ---------------------------------------------------------------- mistakes

TEST(SessionErrorsTest, FilesAndSettings) {
  EXPECT_NE(error_of([] { Session("/nowhere/model.onnx", 8, adam); }), "no error");
  const std::string text = error_of([] {
    open(8, {cross_entropy, "optimizer.kind=adm", "optimizer.lrr=0.1", "sed=3"});
  });
  EXPECT_THAT(text, HasSubstr("adm"));
  EXPECT_THAT(text, HasSubstr("optimizer.lr"));
  EXPECT_THAT(text, HasSubstr("seed"));
}

TEST(SessionErrorsTest, FeedsAreCheckedTogether) {
  Session session = open(8);
  session.step(training_digits().batch(0, 8));
  const std::string missing = error_of([&] { session.step({}); });
  EXPECT_THAT(missing, HasSubstr("image: this input is not fed"));
  EXPECT_THAT(missing, HasSubstr("labels: this input is not fed"));
  auto feeds = training_digits().batch(0, 8);
  feeds["image"].shape = {8, 64};
  EXPECT_THAT(error_of([&] { session.step(feeds); }),
              HasSubstr("expected float32[8, 1, 8, 8], got float32[8, 64]"));
  feeds["image"].bytes.pop_back();
  EXPECT_THAT(error_of([&] { session.step(feeds); }), HasSubstr("bytes do not fit"));
  EXPECT_THAT(error_of([&] { session.step(training_digits().batch(0, 4)); }),
              HasSubstr("[8, 1, 8, 8]"));
  EXPECT_NEAR(session.step(training_digits().batch(0, 8)), 2.2, 0.4);  // still usable
}

TEST(SessionErrorsTest, LabelsThatDoNotFitTheLoss) {
  Session session = open(8);
  auto feeds = training_digits().batch(0, 8);
  feeds["labels"] = Array::of({8, 3}, std::vector<std::int64_t>(24, 1));
  EXPECT_THAT(error_of([&] { session.step(feeds); }), HasSubstr("labels do not fit the logits"));
  feeds.erase("labels");
  EXPECT_THAT(error_of([&] { session.step(feeds); }), HasSubstr("no data field \"labels\""));
}

TEST(SessionErrorsTest, ALabelOutOfRangeIsNamedOnce) {
  Session session = open(8);
  auto feeds = training_digits().batch(0, 8);
  feeds["labels"] = Array::of({8}, std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 10});
  const std::string text = error_of([&] { session.step(feeds); }, ErrorKind::data);
  EXPECT_THAT(text, HasSubstr("10"));
  EXPECT_THAT(text, HasSubstr("loss"));
  session.step(training_digits().batch(0, 8));
}

TEST(SessionErrorsTest, UnknownParameters) {
  Session session = open(8);
  session.step(training_digits().batch(0, 8));
  EXPECT_THAT(
      error_of([&] { session.set_parameter("fc9.weight", Array::of({1}, std::vector<float>{0})); }),
      HasSubstr("no such parameter"));
  EXPECT_THAT(
      error_of([&] { session.set_parameter("fc2.bias", Array::of({9}, std::vector<float>(9))); }),
      HasSubstr("expected float32[10], got float32[9]"));
}

}  // namespace
}  // namespace tandem::api
