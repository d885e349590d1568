// What `init` finds in lines of JSON, and in texts with a tokenizer next to them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/init/facts.h"
#include "api/init/fields.h"
#include "engine/formats/files.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using tandem::testing::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

DataFacts facts_of_lines(const TemporaryFolder& folder, const std::string& lines) {
  write_file(folder / "train.jsonl", lines);
  return look_into_data(folder.path());
}

InputFacts whole_numbers(const std::string& name, std::int64_t length, std::int64_t rows = 0) {
  return {name, {DType::int64, {length}}, {"batch", std::to_string(length)}, rows};
}

TEST(InitJsonl, NumbersListsAndTextsAreArrays) {
  const TemporaryFolder folder;
  const DataFacts facts = facts_of_lines(folder,
                                         "{\"x\": [0.5, 1, 2], \"label\": 1, \"kind\": \"a\"}\n"
                                         "{\"label\": 0, \"x\": [3, 4.5, -1], \"kind\": \"b\"}\n");
  EXPECT_EQ(facts.kind, "jsonl");
  const ArrayFacts* x = facts.find("x");
  ASSERT_NE(x, nullptr);
  EXPECT_EQ(x->sample, (TensorType{DType::float32, {3}}));
  EXPECT_EQ(x->rows, 2);
  EXPECT_EQ(x->numbers.least, -1);
  EXPECT_EQ(x->numbers.most, 4.5);
  EXPECT_THAT(x->made_by, ElementsAre("split(',', max=3)"));
  EXPECT_EQ(facts.find("label")->sample, (TensorType{DType::int64, {}}));
  EXPECT_TRUE(facts.find("kind")->is_text);
}

TEST(InitJsonl, AFieldReadsAListAsTheInputsShape) {
  const TemporaryFolder folder;
  const DataFacts facts =
      facts_of_lines(folder, "{\"x\": [1, 2, 3, 4, 5, 6]}\n{\"x\": [1, 2, 3, 4, 5, 6]}\n");
  const FieldGuesses fields =
      guess_fields({{"x", {DType::float32, {2, 3}}, {"batch", "2", "3"}, 0}}, facts);
  EXPECT_THAT(fields.fields[0].as, ElementsAre("split(',', max=6)", "float32", "reshape(2, 3)"));
}

TEST(InitJsonl, ListsOfDifferentLengthsAreIdsAlone) {
  const TemporaryFolder folder;
  const DataFacts facts = facts_of_lines(folder, "{\"ids\": [1, 2]}\n{\"ids\": [3, 4, 5]}\n");
  EXPECT_THAT(misfit(whole_numbers("ids", 3, 10), *facts.find("ids")), IsEmpty());
  EXPECT_THAT(misfit(whole_numbers("ids", 3), *facts.find("ids")), HasSubstr("different lengths"));
  ASSERT_FALSE(facts.notes.empty());
  EXPECT_THAT(facts.notes[0], HasSubstr("2 to 3 values"));
}

TEST(InitJsonl, AKeyThatLinesLackHasGaps) {
  const TemporaryFolder folder;
  const DataFacts facts = facts_of_lines(folder, "{\"a\": 1, \"b\": 2}\n{\"b\": 3}\n");
  EXPECT_TRUE(facts.find("a")->has_gaps());
  EXPECT_FALSE(facts.find("b")->has_gaps());
  EXPECT_EQ(facts.find("a")->rows, 2);
}

TEST(InitJsonl, ValuesOfSeveralFormsAreLeftOut) {
  const TemporaryFolder folder;
  const DataFacts facts = facts_of_lines(
      folder, "{\"a\": 1, \"b\": [[1], [2]], \"c\": 1}\n{\"a\": [1], \"b\": [], \"c\": 2}\n");
  EXPECT_EQ(facts.find("a"), nullptr);
  EXPECT_EQ(facts.find("b"), nullptr);
  EXPECT_NE(facts.find("c"), nullptr);
  EXPECT_EQ(facts.notes.size(), 2u);
}

TEST(InitJsonl, NumbersWithAPointAndTheFirstTextAreKnown) {
  const TemporaryFolder folder;
  const DataFacts facts = facts_of_lines(folder,
                                         "{\"a\": 1.0, \"b\": 1, \"c\\nd\": 2}\n"
                                         "{\"a\": 2, \"b\": \"NA\", \"c\\nd\": 3}\n"
                                         "{\"a\": 3, \"b\": \"-\", \"c\\nd\": 4}\n");
  EXPECT_TRUE(facts.find("a")->has_points);
  EXPECT_EQ(facts.find("a")->sample.dtype, DType::int64);
  EXPECT_EQ(facts.find("b")->first_text, "the text \"NA\" in line 2 of train.jsonl");
  ASSERT_NE(facts.find("c\nd"), nullptr);
  EXPECT_FALSE(facts.find("c\nd")->has_points);
}

TEST(InitJsonl, ALineThatIsNoObjectIsNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT(tandem::testing::error_of([&] { facts_of_lines(folder, "{\"a\": 1}\n[1, 2]\n"); }),
              HasSubstr("train.jsonl:2"));
}

TEST(InitJsonl, TextsWithATokenizerFeedAllInputsOfABert) {
  const TemporaryFolder folder;
  write_file(folder / "tokenizer.json", "{}");
  DataFacts facts = facts_of_lines(folder, "{\"text\": \"one two\", \"label\": 0}\n");
  const std::vector<InputFacts> inputs = {whole_numbers("input_ids", 12, 100),
                                          whole_numbers("attention_mask", 12),
                                          whole_numbers("token_type_ids", 12, 2)};
  fit_data(inputs, facts);
  const FieldGuesses fields = guess_fields(inputs, facts);
  EXPECT_THAT(fields.fields[0].as, ElementsAre("tokens(length=12)"));
  EXPECT_THAT(fields.fields[1].as, ElementsAre("tokens(length=12, give='mask')"));
  EXPECT_THAT(fields.fields[2].as, ElementsAre("tokens(length=12, give='types')"));
  for (const FieldGuess& field : fields.fields) {
    ASSERT_NE(field.from, nullptr) << field.todo;
    EXPECT_EQ(source_toml(*field.from), "\"text\"");
  }
  EXPECT_EQ(facts.tokenizer, folder / "tokenizer.json");
}

}  // namespace
}  // namespace tandem::api
