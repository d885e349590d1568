// Text from files to runs, predictions and exports: the meaning of ids stays with the weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/formats/files.h"
#include "tandem/init.h"
#include "tandem/tandem.h"
#include "tests/api/error_of.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/formats/tokenizer_cases.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;
using tandem::testing::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class TextRuns : public ::testing::Test {
 protected:
  void put_model(const std::string& name) {
    fs::copy(source_folder() + "/tests/data/parity/" + name, folder_ / "net.onnx");
  }
  void put_config(const std::string& labels, const std::string& data) {
    write_file(folder_ / "train.toml", R"toml(model = "net.onnx"
batch_size = 2
steps = 2
[loss]
terms = [ { kind = "softmax_cross_entropy", logits = "logits", labels = ")toml" +
                                           labels + R"toml(" } ]
[optimizer]
kind = "sgd"
lr = 0.01
[checkpoint]
every = "2 steps"
[data]
)toml" + data);
  }
  TrainResult train(bool resume = false) {
    TrainOptions options;
    options.run_dir = folder_ / "run";
    options.resume = resume;
    return Trainer(folder_ / "train.toml", options).run();
  }
  std::string predicted(const std::string& file, const std::vector<std::string>& ids = {}) {
    PredictOptions options;
    options.ids = ids;
    options.data = {folder_ / file};
    options.to = folder_ / "p.csv";
    options.as = "values";
    predict_run(folder_ / "run", options);
    return read_file(folder_ / "p.csv");
  }

  tandem::testing::TemporaryFolder folder_;
};

TEST_F(TextRuns, CharactersStayWithTheRun) {
  put_model("gpt_torchscript.onnx");
  put_config("targets", R"toml(kind = "text"
tokenizer = "characters"
length = 16
train = { files = "a.txt" }
eval = { files = "b.txt" }
[data.fields]
tokens = "tokens"
targets = "targets"
)toml");
  std::string text;
  for (int i = 0; i < 40; ++i) text += "to be or not to be, that is the question\n";
  write_file(folder_ / "a.txt", text);
  write_file(folder_ / "b.txt", "whether 'tis nobler in the mind to suffer the slings and arrows");
  EXPECT_EQ(train().steps, 2u);
  const std::string vocabulary = read_file(folder_ / "run/vocabulary.characters.tsv");
  EXPECT_THAT(vocabulary, HasSubstr("\tt\t"));
  export_run(folder_ / "run", folder_ / "trained.onnx");
  EXPECT_EQ(read_file(folder_ / "trained.vocabulary.characters.tsv"), vocabulary);

  // Text with other characters, in another order of counts, is read with those of the training.
  TrainedOptions options;
  options.data = {folder_ / "b.txt"};
  options.config = folder_ / "train.toml";
  EXPECT_THAT(evaluate_run(folder_ / "trained.onnx", options).problems, IsEmpty());
  fs::remove(folder_ / "trained.vocabulary.characters.tsv");
  EXPECT_THAT(error_of([&] { evaluate_run(folder_ / "trained.onnx", options); }, ErrorKind::data),
              HasSubstr("the vocabulary of characters is not there"));

  fs::remove(folder_ / "run/summary.json");
  write_file(folder_ / "a.txt", "zz" + text);  // equally many samples
  EXPECT_THAT(error_of([&] { train(true); }, ErrorKind::data),
              HasSubstr("vocabulary.characters.tsv"));
}

TEST_F(TextRuns, TheTokenizerStaysWithTheRun) {
  if (tandem::testing::lacks_text_libraries()) GTEST_SKIP() << "this build lacks PCRE2 or utf8proc";
  put_model("lstm_torchscript.onnx");
  put_config("label", R"toml(kind = "jsonl"
tokenizer = "tokenizer.json"
train = { files = "a.jsonl" }
[data.fields]
tokens = { from = "text", as = [ "tokens(length=12)" ] }
label = { from = "label", as = [ "int64" ] }
)toml");
  nlohmann::json tokenizer = tandem::testing::tokenizer_file("word_level").at("tokenizer");
  write_file(folder_ / "tokenizer.json", tokenizer.dump());
  std::string lines;
  for (int i = 0; i < 8; ++i)
    lines += R"({"text": "Hello, the )" + std::to_string(i) + R"(", "label": )" +
             std::to_string(i % 5) + "}\n";
  write_file(folder_ / "a.jsonl", lines);
  EXPECT_EQ(train().steps, 2u);
  EXPECT_EQ(read_file(folder_ / "run/tokenizer.json"), tokenizer.dump());

  // Without labels, and with the run's own tokenizer, whatever has happened to the file.
  write_file(folder_ / "b.jsonl", "{\"text\": \"hello the 3\"}\n{\"text\": \"\"}\n");
  const std::string before = predicted("b.jsonl");
  // Keys identify rows, even those that no field reads.
  write_file(folder_ / "c.jsonl",
             "{\"text\": \"hello\", \"name\": \"first\"}\n{\"name\": 2, \"text\": \"the\"}\n");
  EXPECT_THAT(predicted("c.jsonl", {"name", "text"}),
              AllOf(StartsWith("first,hello,"), HasSubstr("\n2,the,")));
  EXPECT_THAT(error_of([&] { predicted("b.jsonl", {"name"}); }, ErrorKind::data),
              HasSubstr("the object has no key `name`"));
  tokenizer["model"]["vocab"]["hello"] = 9;
  write_file(folder_ / "tokenizer.json", tokenizer.dump());
  EXPECT_EQ(predicted("b.jsonl"), before);
  fs::remove(folder_ / "run/summary.json");
  EXPECT_THAT(error_of([&] { train(true); }, ErrorKind::data),
              AllOf(HasSubstr("tokenizer.json"), HasSubstr("ids would mean other rows")));

  write_file(folder_ / "run/tokenizer.json", tokenizer.dump());
  EXPECT_THAT(error_of([&] { predicted("b.jsonl"); }, ErrorKind::data),
              HasSubstr("this is not the tokenizer that the model was trained with"));
}

TEST_F(TextRuns, FilesOfIdsAreGuessed) {
  put_model("gpt_torchscript.onnx");
  fs::create_directories(folder_ / "data");
  for (const char* name : {"train.bin", "val.bin"}) {
    std::string ids;
    for (int i = 0; i < 1000; ++i) {
      ids += static_cast<char>(i * 31 % 65);
      ids += '\0';
    }
    write_file(folder_ / ("data/" + std::string(name)), ids);
  }
  init(folder_ / "net.onnx", {.data = folder_ / "data"});
  EXPECT_THAT(read_file(folder_ / "train.toml"),
              AllOf(HasSubstr("\"tokens\""), HasSubstr("\"uint16\""), HasSubstr("length"),
                    HasSubstr("data/train.bin"), HasSubstr("data/val.bin")));
}

}  // namespace
}  // namespace tandem::api
