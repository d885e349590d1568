// data.kind = "chat" in whole trainings: the loss is the mean over the tokens of answers, however
// conversations are packed and steps are split.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/formats/tokenizer_cases.h"

namespace tandem::api {
namespace {

using Json = nlohmann::json;

/// The network and the loss of tests/scripts/chat_packed.py.
class ChatTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (tandem::testing::lacks_text_libraries())
      GTEST_SKIP() << "this build lacks PCRE2 or utf8proc";
    const std::string from = source_folder() + "/tests/data/chat/";
    for (const char* name : {"packed.onnx", "dialogs.jsonl"})
      std::filesystem::copy_file(from + name, folder_ / name);
    const Json chatml = Json::parse(read_file(from + "chatml.json"));
    write_file(folder_ / "tokenizer.json", chatml["tokenizer"].dump());
    expected_ = Json::parse(read_file(from + "packed.json"));
    length_ = std::to_string(expected_["longest"].get<std::int64_t>());
    write_file(
        folder_ / "train.toml", R"toml(model = { file = "packed.onnx", bind = { sequence = )toml" +
                                    length_ + R"toml( } }
batch_size = 8
epochs = 1
[loss]
terms = [ { name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels", ignore_index = -100 } ]
[optimizer]
kind = "sgd"
lr = 0.01
[data]
kind = "chat"
tokenizer = "tokenizer.json"
template = "chatml"
length = )toml" + length_ + R"toml(
train = { files = "dialogs.jsonl" }
eval = { files = "dialogs.jsonl" }
[data.fields]
input_ids = "tokens"
position_ids = "positions"
attention_mask = { from = "attention", as = [ "reshape(1, )toml" +
                                    length_ + ", " + length_ + R"toml()", "normalize(1, 1e-9)" ] }
labels = "targets"
[log]
every = "1 steps"
)toml");
  }

  std::string train(const std::string& run, std::vector<std::string> overrides) {
    TrainOptions options;
    options.run_dir = folder_ / run;
    options.overrides = std::move(overrides);
    Trainer(folder_ / "train.toml", options).run();
    return folder_ / run;
  }
  std::vector<double> losses(const std::string& run) {
    std::vector<double> all;
    std::istringstream lines(read_file(run + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const Json row = Json::parse(line);
      if (row.contains("lr")) all.push_back(row["loss"].get<double>());
    }
    return all;
  }
  double evaluated(const std::string& run) {
    return Json::parse(evaluate_run(run, {}).json)["metrics"]["loss"].get<double>();
  }

  tandem::testing::TemporaryFolder folder_;
  Json expected_;
  std::string length_;
};

TEST_F(ChatTest, TheLossIsThatOfSingleConversationsPackedOrNot) {
  const double wanted = expected_["loss"].get<double>();
  const std::string single = train("single", {"optimizer.lr=0.0", "steps=1"});
  EXPECT_NEAR(evaluated(single), wanted, 1e-5 * wanted);
  const std::string packed = train("packed", {"optimizer.lr=0.0", "steps=1", "data.pack=true"});
  EXPECT_NEAR(evaluated(packed), wanted, 1e-5 * wanted);
}

// Answers have different lengths, so that a mean of the means of micro-batches would be another.
TEST_F(ChatTest, MicroBatchesAddUpToTheStep) {
  const std::vector<double> whole = losses(train("whole", {}));
  ASSERT_GE(whole.size(), 4u);
  for (const char* size : {"4", "1"}) {
    const std::vector<double> parts =
        losses(train(std::string("parts") + size, {std::string("micro_batch=") + size}));
    ASSERT_EQ(parts.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i)
      EXPECT_NEAR(parts[i], whole[i], 2e-6 * whole[i]) << size << " step " << i + 1;
  }
}

// The template, the length and the padding are in the file, as is how inputs are made of the
// arrays.
TEST_F(ChatTest, AnExportReadsConversationsAsInTraining) {
  const std::string run =
      train("run", {"data.template={ system = \"S {content} \", user = \"Q {content} \", assistant "
                    "= \"A {content} \" }",
                    "data.system=\"be kind\"", "data.pack=true", "data.pad=3"});
  export_run(run, folder_ / "trained.onnx");
  TrainedOptions options;
  options.data = {folder_ / "dialogs.jsonl"};
  const auto loss = [&](const std::string& of) {
    return Json::parse(evaluate_run(of, options).json)["metrics"]["loss"].get<double>();
  };
  EXPECT_NEAR(loss(folder_ / "trained.onnx"), loss(run), 1e-5);
}

// Conversations that training packs or leaves out have a prediction each, at their place.
TEST_F(ChatTest, PredictionsAreInTheOrderOfTheLines) {
  const std::string run = train("run", {"data.pack=true"});
  const auto lines = [&](std::vector<std::string> overrides) {
    PredictOptions options;
    options.data = {folder_ / "dialogs.jsonl"};
    options.to = folder_ / "out.npy";
    options.outputs = {"logits"};
    options.as = "values";
    options.overrides = std::move(overrides);
    return Json::parse(predict_run(run, options).json)["rows"].get<std::int64_t>();
  };
  const std::string dialogs = read_file(folder_ / "dialogs.jsonl");
  const auto count = std::count(dialogs.begin(), dialogs.end(), '\n');
  EXPECT_EQ(lines({}), count);
  EXPECT_EQ(
      lines({"data.too_long=skip", "data.length=128", "model.bind.sequence=128",
             "data.fields.attention_mask={ from = \"attention\", as = [ \"reshape(1, 128, 128)\","
             " \"normalize(1, 1e-9)\" ] }"}),
      count);
  std::ofstream(folder_ / "dialogs.jsonl", std::ios::app) << "{\"prompt\": \"a\"}\n";
  EXPECT_THROW(lines({"data.on_bad=skip"}), Error);
}

}  // namespace
}  // namespace tandem::api
