// Training on arrays that the caller feeds: steps, predictions, parameters, saved files, mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "engine/formats/arrays/npy.h"
#include "engine/formats/safetensors.h"
#include "tandem/tandem.h"
#include "tests/api/digits.h"
#include "tests/api/error_of.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::cross_entropy;
using tandem::testing::digits;
using tandem::testing::Digits;
using tandem::testing::error_of;
using tandem::testing::training_digits;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::SizeIs;

const std::vector<std::string> adam{cross_entropy, "optimizer.kind=adam", "optimizer.lr=0.003"};

Session open(std::int64_t batch, std::vector<std::string> settings = adam) {
  return Session(digits + "model.onnx", batch, settings);
}

// A sample of weight 0 is like one whose label is ignored.
TEST(SessionTest, TakesWeightsOfSamples) {
  const auto term = [](const std::string& option) {
    return R"(loss.terms=[{ kind = "softmax_cross_entropy", logits = "logits", labels = "labels", )" +
           option + " }]";
  };
  Session weighted = open(8, {term("sample_weights = \"w\""), "optimizer.kind=sgd"});
  Session ignoring = open(8, {term("ignore_index = -1"), "optimizer.kind=sgd"});
  for (int step = 0; step < 3; ++step) {
    auto feeds = training_digits().batch(8 * step, 8), ignored = feeds;
    feeds["w"] = Tensor::copy_of({8}, std::vector<float>{1, 0, 1, 1, 0, 0, 1, 0});
    std::vector<std::int64_t> labels;
    for (const float label : feeds.at("labels").floats())
      labels.push_back(feeds.at("w").floats()[labels.size()] > 0 ? std::lround(label) : -1);
    ignored["labels"] = Tensor::copy_of({8}, labels);
    EXPECT_NEAR(weighted.step(feeds), ignoring.step(ignored), 1e-6) << step;
  }
  auto unknown = training_digits().batch(0, 8);
  unknown["weights"] = Tensor::copy_of({8}, std::vector<float>(8, 1));
  EXPECT_THAT(error_of([&] { weighted.step(unknown); }),
              HasSubstr("neither the model nor the loss takes this"));
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
  const Tensor& logits = outputs.at("logits");
  EXPECT_EQ(logits.shape(), (std::vector<std::int64_t>{360, 10}));
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
  for (const auto& [name, array] : first) EXPECT_EQ(array, second.at(name)) << name;
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
  for (const auto& [name, array] : session.parameters()) EXPECT_EQ(array, before.at(name)) << name;
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
  EXPECT_EQ(parameters.at("fc2.weight").shape(), (std::vector<std::int64_t>{10, 64}));
  session.set_parameter("fc2.weight", Tensor::copy_of({10, 64}, std::vector<float>(640, 0.0f)));
  session.set_parameter("fc2.bias",
                        Tensor::copy_of({10}, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(session.parameters().at("fc2.bias").floats()[9], 9);
  EXPECT_FLOAT_EQ(session.predict(training_digits().image(3, 2)).at("logits").floats()[14], 4);
}

TEST(SessionTest, ParametersExistBeforeTheFirstStep) {
  testing::TemporaryFolder folder;
  Session session = open(8, {cross_entropy, "optimizer.kind=sgd", "optimizer.lr=0.0"});
  const auto start = session.parameters();
  EXPECT_THAT(start, SizeIs(8));
  const Tensor zeros = Tensor::copy_of({10, 64}, std::vector<float>(640, 0.0f));
  session.set_parameter("fc2.weight", zeros);
  EXPECT_EQ(session.parameters().at("fc2.weight"), zeros);
  session.save(folder / "weights.npz");
  for (const NamedTensor& t : read_npz(folder / "weights.npz")) {
    if (t.name != "fc2.weight") continue;
    EXPECT_EQ(std::memcmp(t.tensor.data(), zeros.bytes().data(), zeros.bytes().size()), 0);
  }
  session.step(training_digits().batch(0, 8));
  for (const auto& [name, array] : session.parameters()) {
    EXPECT_EQ(array, name == "fc2.weight" ? zeros : start.at(name)) << name;
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
    const Tensor& array = parameters.at(t.name);
    EXPECT_EQ(t.tensor.shape(), array.shape());
    EXPECT_EQ(std::memcmp(t.tensor.data(), array.bytes().data(), array.bytes().size()), 0)
        << t.name;
  }
  EXPECT_EQ(read_npz(folder / "weights.npz").size(), parameters.size());

  Session again(folder / "trained.onnx", 8, adam);
  EXPECT_EQ(again.predict(training_digits().image(0, 8)).at("logits").floats(),
            session.predict(training_digits().image(0, 8)).at("logits").floats());
  EXPECT_THAT(error_of([&] { session.save(folder / "weights.bin"); }), HasSubstr("weights.bin"));
}

TEST(SessionTest, TiedWeightsAreSavedOnce) {
  testing::TemporaryFolder folder;
  const std::string tied = source_folder() + "/tests/data/parity/tied_decoder_dynamo.onnx";
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
  feeds["image"] = Tensor::copy_of({8, 64}, feeds["image"].floats());
  EXPECT_THAT(error_of([&] { session.step(feeds); }),
              HasSubstr("expected float32[8, 1, 8, 8], got float32[8, 64]"));
  feeds["image"] =
      Tensor::copy_of_bytes(DType::boolean, {2}, std::vector<std::byte>(2, std::byte{7}));
  EXPECT_THAT(error_of([&] { session.step(feeds); }), HasSubstr("image: a byte of a bool tensor"));
  EXPECT_THAT(error_of([&] { session.step(training_digits().batch(0, 16)); }),
              HasSubstr("expected float32[8, 1, 8, 8], got float32[16, 1, 8, 8]"));
  EXPECT_NEAR(session.step(training_digits().batch(0, 8)), 2.2, 0.4);  // still usable
}

TEST(SessionErrorsTest, LabelsThatDoNotFitTheLoss) {
  Session session = open(8);
  auto feeds = training_digits().batch(0, 8);
  feeds["labels"] = Tensor::copy_of({8, 3}, std::vector<std::int64_t>(24, 1));
  EXPECT_THAT(error_of([&] { session.step(feeds); }), HasSubstr("labels do not fit the logits"));
  feeds.erase("labels");
  EXPECT_THAT(error_of([&] { session.step(feeds); }), HasSubstr("no data field \"labels\""));
}

TEST(SessionErrorsTest, ALabelOutOfRangeIsNamedOnce) {
  Session session = open(8);
  auto feeds = training_digits().batch(0, 8);
  feeds["labels"] = Tensor::copy_of({8}, std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 10});
  const std::string text = error_of([&] { session.step(feeds); }, ErrorKind::data);
  EXPECT_THAT(text, HasSubstr("10"));
  EXPECT_THAT(text, HasSubstr("loss"));
  session.step(training_digits().batch(0, 8));
}

TEST(SessionErrorsTest, ALossThatIsNotFiniteNamesItsStep) {
  Session session = open(8, {cross_entropy, "optimizer.kind=sgd", "optimizer.lr=1e30"});
  const auto start = session.parameters();
  EXPECT_NEAR(session.step(training_digits().batch(0, 8)), 2.3, 0.3);
  const std::string text =
      error_of([&] { session.step(training_digits().batch(0, 8)); }, ErrorKind::diverged);
  EXPECT_THAT(text, HasSubstr("the loss is not finite at step 2: expected a number, got nan"));
  EXPECT_THAT(text, HasSubstr("lower optimizer.lr"));
  EXPECT_THAT(error_of([&] { session.step(training_digits().batch(0, 8)); }, ErrorKind::diverged),
              HasSubstr("at step 3"));
  for (const auto& [name, value] : start) session.set_parameter(name, value);
  // Training continues from there.
  EXPECT_NEAR(session.step(training_digits().batch(0, 8)), 2.3, 0.3);
}

/// Products in float16, on an emulated device.
std::vector<std::string> in_float16(const testing::TemporaryFolder& folder) {
  std::ofstream(folder / "policy.toml") << "policy = 1\n"
                                           "devices = { gpu = { use = \"emulated:0\" } }\n"
                                           "rules = [ { at = \"**\", on = \"gpu\" } ]\n";
  return {cross_entropy, "optimizer.kind=sgd", "policy=" + (folder / "policy.toml"),
          "precision.compute=float16"};
}

TEST(SessionTest, AStepThatTheLossScaleLeavesOutIsNoError) {
  const testing::TemporaryFolder folder;
  std::vector<std::string> settings = in_float16(folder);
  settings.push_back("precision.loss_scale=1e30");  // no gradient is finite
  Session session = open(8, settings);
  const auto start = session.parameters();
  const double first = session.step(training_digits().batch(0, 8));
  EXPECT_NEAR(first, 2.3, 0.3);
  for (int step = 2; step < 40; ++step)
    EXPECT_EQ(session.step(training_digits().batch(0, 8)), first);
  for (const auto& [name, value] : session.parameters()) EXPECT_EQ(value, start.at(name)) << name;
  EXPECT_THAT(error_of([&] { session.step(training_digits().batch(0, 8)); }, ErrorKind::diverged),
              AllOf(HasSubstr("precision.loss_scale: 40 steps in a row"), HasSubstr("step 40")));
}

TEST(SessionErrorsTest, WhatFloat16CannotHoldIsSaid) {
  const testing::TemporaryFolder folder;
  std::vector<std::string> settings = in_float16(folder);
  settings.push_back("parameters.init=[{ at = \"**\", kind = \"constant\", value = 1e4 }]");
  Session session = open(8, settings);
  const auto start = session.parameters();
  EXPECT_THAT(error_of([&] { session.step(training_digits().batch(0, 8)); }, ErrorKind::diverged),
              AllOf(HasSubstr("at step 1"), HasSubstr("float16 ends at 65504")));
  for (const auto& [name, value] : session.parameters())  // the loss scale has skipped the update
    EXPECT_EQ(value, start.at(name)) << name;
}

TEST(SessionErrorsTest, FeedsThatNobodyTakes) {
  Session session = open(8);
  auto feeds = training_digits().batch(0, 8);
  feeds["imge"] = feeds["image"];
  const std::string expected =
      "imge: neither the model nor the loss takes this: expected image, labels";
  EXPECT_THAT(error_of([&] { session.step(feeds); }),
              AllOf(HasSubstr(expected), HasSubstr("did you mean \"image\"?")));
  EXPECT_THAT(error_of([&] { session.predict(feeds); }), HasSubstr(expected));
  feeds.erase("imge");
  EXPECT_EQ(session.predict(feeds).at("logits").floats(),  // labels are ignored
            session.predict(training_digits().image(0, 8)).at("logits").floats());
}

TEST(SessionErrorsTest, ArraysThatMakeALossNotFiniteAreNamed) {
  Session session = open(8);
  Tensors feeds = training_digits().batch(0, 8);
  std::vector<float> image = feeds.at("image").floats();
  image[2 * 64 + 5] = std::numeric_limits<float>::quiet_NaN();
  feeds["image"] = Tensor::copy_of({8, 1, 8, 8}, image);
  EXPECT_THAT(error_of([&] { session.step(feeds); }, ErrorKind::diverged),
              AllOf(HasSubstr("the loss is not finite at step 1"), HasSubstr("image: row 3: nan"),
                    Not(HasSubstr("optimizer.lr"))));
}

TEST(SessionErrorsTest, BatchesThatAreNone) {
  for (const std::int64_t batch : {std::int64_t{0}, std::int64_t{-3}, std::int64_t{1} << 40,
                                   std::numeric_limits<std::int64_t>::min()})
    EXPECT_THAT(error_of([&] { open(batch); }), HasSubstr("batch_size: out of range"));
  Session session = open(8);
  const auto refusal = [&](const std::vector<std::int64_t>& shape, std::size_t count) {
    return error_of([&] {
      session.predict({{"image", Tensor::copy_of(shape, std::vector<float>(count))}});
    });
  };
  EXPECT_THAT(refusal({0, 1, 8, 8}, 0),
              HasSubstr("expected float32[8, 1, 8, 8], or another batch"));
  EXPECT_THAT(refusal({}, 1), HasSubstr("got float32[]"));
  EXPECT_THAT(refusal({-1, 1, 8, 8}, 64), HasSubstr("got [-1, 1, 8, 8]"));
  EXPECT_THAT(refusal({std::int64_t{1} << 40, 1, 8, 8}, 64), HasSubstr("got 64"));
  EXPECT_THAT(refusal({std::int64_t{1} << 40, 0, 8, 8}, 0),
              HasSubstr("got float32[1099511627776, 0, 8, 8]"));
  EXPECT_THAT(refusal({2, 64}, 128), HasSubstr("got float32[2, 64]"));
  EXPECT_THAT(error_of([&] { session.predict({}); }), HasSubstr("at least one fed tensor"));
  auto integers = training_digits().image(0, 2);
  integers["image"] = Tensor::copy_of({2, 1, 8, 8}, std::vector<std::int64_t>(128));
  EXPECT_THAT(error_of([&] { session.predict(integers); }),
              HasSubstr("expected float32[2, 1, 8, 8], got int64[2, 1, 8, 8]"));
  EXPECT_EQ(session.predict(training_digits().image(0, 2)).at("logits").shape()[0], 2);
}

TEST(SessionErrorsTest, FilesThatCannotBeReadOrWritten) {
  const testing::TemporaryFolder folder;
  EXPECT_THAT(error_of([] { Session("", 8, adam); }), HasSubstr("the model's path is empty"));
  EXPECT_NE(error_of([&] { Session(folder / "", 8, adam); }), "no error");
  EXPECT_NE(error_of([&] { Session(digits + "train.toml", 8, adam); }), "no error");
  EXPECT_NE(error_of([] {
              open(8, {cross_entropy, "optimizer.kind=adam", "=", "no setting", ""});
            }),
            "no error");
  Session session = open(8);
  std::ofstream(folder / "file") << "text";
  for (const std::string& path :
       {std::string(), folder / "", folder / "none/weights.npz", folder / "file/weights.onnx",
        std::string("/proc/weights.safetensors"), folder / (std::string(300, 'x') + ".npz")}) {
    bool is_refused = false;
    try {
      session.save(path);
    } catch (const Error& error) {
      is_refused = true;
      EXPECT_TRUE(error.kind() == ErrorKind::usage || error.kind() == ErrorKind::runtime) << path;
    }
    EXPECT_TRUE(is_refused) << path;
  }
}

TEST(SessionErrorsTest, UnknownParameters) {
  Session session = open(8);
  session.step(training_digits().batch(0, 8));
  EXPECT_THAT(error_of([&] {
                session.set_parameter("fc9.weight", Tensor::copy_of({1}, std::vector<float>{0}));
              }),
              HasSubstr("no such parameter"));
  EXPECT_THAT(error_of([&] {
                session.set_parameter("fc2.bias", Tensor::copy_of({9}, std::vector<float>(9)));
              }),
              HasSubstr("expected float32[10], got float32[9]"));
}

}  // namespace
}  // namespace tandem::api
