// The configuration that `init` makes for a model whose sequences have a free length: samples and
// buckets as long as those of the data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/init/buckets.h"
#include "api/init/data/token_lengths.h"
#include "api/program/init.h"
#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"
#include "tests/training/formats/tokenizer_cases.h"

namespace tandem::api {
namespace {

using tandem::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

class InitLengths : public ::testing::Test {
 protected:
  InitLengths() {
    // The sum of table rows, multiplied for each class: accepts any length.
    std::ofstream(folder_ / "net.onnx", std::ios::binary)
        << testing::SmallModel()
               .free_input("ids", {"batch", "sequence"}, 7)
               .integer("axes", 1)
               .weight("table.weight", {20, 2}, 0.5f)
               .weight("w", {2, 2}, 0.5f)
               .node("Gather", "embedding", {"table.weight", "ids"}, "rows")
               .node("ReduceSum", "sums", {"rows", "axes"}, "sum", {{"keepdims", 0}})
               .node("MatMul", "classes", {"sum", "w"}, "logits")
               .free_output("logits", {"batch", "classes"})
               .bytes();
  }
  std::string guess_and_train() {
    const InitReport report = init(folder_ / "net.onnx", {.data = folder_ / "data"});
    const std::string text = read_file(folder_ / "train.toml");
    EXPECT_THAT(report.open, IsEmpty()) << text;
    TrainOptions options;
    options.overrides = {"steps=4"};
    options.run_dir = folder_ / "run";
    const TrainResult result = Trainer(folder_ / "train.toml", options).run();
    EXPECT_EQ(result.steps, 4u);
    EXPECT_TRUE(std::isfinite(result.loss));
    return text;
  }
  void put(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(folder_ / "data");
    write_file(folder_ / "data/" + name, text);
  }
  /// Lists of `least` to `most` ids, equally many of each length.
  static std::string lists(int count, int least, int most) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      nlohmann::json ids = nlohmann::json::array();
      for (int k = 0; k < least + i % (most - least + 1); ++k) ids.push_back((i + k) % 19 + 1);
      text += nlohmann::json{{"ids", ids}, {"label", i % 2}}.dump() + "\n";
    }
    return text;
  }

  TemporaryFolder folder_;
};

TEST_F(InitLengths, ListsOfDifferentLengthsGetBuckets) {
  put("all.jsonl", lists(90, 1, 12));
  // Half of them have at most 6 ids, rounded up to 8, and four fifths at most 10; 16 would exceed
  // the longest.
  EXPECT_THAT(guess_and_train(),
              AllOf(HasSubstr("buckets = { field = \"ids\", lengths = [ 8, 12 ], dimension = "
                              "\"sequence\", fields = [ \"ids\" ] }"),
                    HasSubstr("split(',', max=12)"), Not(HasSubstr("bind"))));
}

TEST_F(InitLengths, ListsOfNearlyOneLengthAreBound) {
  put("all.jsonl", lists(90, 10, 12));
  EXPECT_THAT(guess_and_train(),
              AllOf(HasSubstr("bind = { sequence = 12 }"), Not(HasSubstr("buckets"))));
}

TEST_F(InitLengths, TextsAreMeasuredByTheTokenizer) {
  if (tandem::testing::lacks_text_libraries()) GTEST_SKIP() << "this build lacks PCRE2 or utf8proc";
  put("tokenizer.json", tandem::testing::tokenizer_file("word_level").at("tokenizer").dump());
  std::string rows = " text, label\n";
  for (int i = 0; i < 80; ++i) {
    for (int word = 0; word < (i % 4 == 0 ? 29 : 3); ++word) rows += word % 2 == 0 ? "a " : "the ";
    rows += "hello," + std::to_string(i % 2) + "\n";
  }
  put("texts.csv", rows);
  DataFacts facts = look_into_data(folder_ / "data");
  EXPECT_THAT(token_lengths(facts, "text", folder_ / "data/tokenizer.json"),
              ElementsAre(Pair(4, 60), Pair(30, 20)));
  EXPECT_THAT(guess_and_train(), AllOf(HasSubstr("tokens(length=32)"),
                                       HasSubstr("lengths = [ 8, 32 ]"), Not(HasSubstr("bind"))));
}

TEST(InitBuckets, AreOverOneDimensionOfEnoughSamples) {
  ArrayFacts ids, mask;
  ids.name = "ids";
  ids.sample = {DType::int64, {64}};
  ids.rows = 100;
  ids.lengths = {{5, 60}, {20, 30}, {60, 10}};
  ids.pad = 3;
  mask = ids;
  mask.pad = 0;
  const std::vector<InputFacts> inputs = {{"attention_mask", ids.sample, {"batch", "s"}, 0},
                                          {"ids", ids.sample, {"batch", "s"}, 20}};
  FieldGuesses fields;
  fields.fields = {{.name = "attention_mask", .from = &mask}, {.name = "ids", .from = &ids}};
  fields.bind = {{"s", 64}};
  const auto guess = guess_buckets(inputs, fields);
  ASSERT_TRUE(guess);
  EXPECT_THAT(guess->lengths, ElementsAre(8, 24, 64));
  EXPECT_EQ(guess->toml(),
            "{ field = \"ids\", pad = 3, lengths = [ 8, 24, 64 ], dimension = \"s\", fields = [ "
            "\"attention_mask\", \"ids\" ] }");
  fields.bind["other"] = 4;
  EXPECT_FALSE(guess_buckets(inputs, fields));
  fields.bind.erase("other");
  ids.rows = 10;
  EXPECT_FALSE(guess_buckets(inputs, fields));
}

}  // namespace
}  // namespace tandem::api
