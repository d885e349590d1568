// data.kind = "text": text as a stream of characters, bytes or tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/data/data_source.h"
#include "engine/data/tokens/read_text.h"
#include "engine/formats/files.h"
#include "tests/training/data/data_config_text.h"
#include "tests/training/error_text.h"
#include "tests/training/formats/tokenizer_cases.h"

namespace tandem {
namespace {

using testing::data_config;
using ::testing::ElementsAre;
using testing::error_of;
using testing::ids_of;
using testing::TemporaryFolder;
using testing::tokenizer_file;
using Ids = std::vector<std::int64_t>;

class TextData : public ::testing::Test {
 protected:
  DataConfig config(const std::string& keys, const std::string& more = "") {
    return data_config(folder_,
                       "kind = 'text'\n" + keys + "\ntrain = { files = 'a.txt' }\n" + more);
  }
  TemporaryFolder folder_;
};

TEST_F(TextData, HeldOutTextHasTheCharactersOfTheTraining) {
  write_file(folder_ / "a.txt", "aab");
  write_file(folder_ / "b.txt", "bzaa");
  const std::string keys = "tokenizer = 'characters'\nlength = 2";
  const DataSets sets = open_data(config(keys, "eval = { files = 'b.txt' }\n"));
  // With the characters of a trained run; those of the text itself would get other numbers.
  OpenOptions options;
  options.characters = sets.vocabularies[0].text;
  DataConfig other = config(keys);
  other.train.files[0].paths = {folder_ / "b.txt"};
  const DataSets again = open_data(other, options);
  EXPECT_THAT(ids_of(*again.train, "tokens", 0), ElementsAre(2, 0));
  EXPECT_EQ(again.vocabularies[0].sha256, sets.vocabularies[0].sha256);
}

TEST_F(TextData, LinesAcrossPiecesOfTheFileStayWhole) {
  // Pieces of 1 MiB end within lines of 1000 bytes.
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::string(999, static_cast<char>('a' + i % 26)) + "\n";
  write_file(folder_ / "a.txt", text);
  const DataSets sets =
      open_data(config("tokenizer = 'bytes'\nlength = 999\ndocuments = 'lines'\ndocument_end = 0\n"
                       "cross_documents = false"));
  ASSERT_EQ(sets.train->samples(), 3000);
  for (const std::int64_t sample : {0, 1048, 1049, 2999}) {
    EXPECT_EQ(ids_of(*sets.train, "tokens", sample), Ids(999, 'a' + sample % 26)) << sample;
  }
}

TEST_F(TextData, ATokenizerFileGivesTheIdsOfTheWholeFile) {
  if (testing::lacks_text_libraries()) GTEST_SKIP() << "this build lacks PCRE2 or utf8proc";
  const auto expected = tokenizer_file("byte_level");
  const auto lines = tokenizer_file("lines").get<std::vector<std::string>>();
  write_file(folder_ / "tokenizer.json", expected.at("tokenizer").dump());
  for (const std::size_t i : {std::size_t{120}, std::size_t{200}}) {
    const Ids ids = expected.at("ids")[i].get<Ids>();
    ASSERT_GT(ids.size(), 2u);
    write_file(folder_ / "a.txt", lines[i]);
    const DataSets sets = open_data(
        config("tokenizer = 'tokenizer.json'\nlength = " + std::to_string(ids.size() - 1)));
    EXPECT_EQ(ids_of(*sets.train, "tokens", 0), Ids(ids.begin(), ids.end() - 1));
    EXPECT_EQ(ids_of(*sets.train, "targets", 0), Ids(ids.begin() + 1, ids.end()));
    EXPECT_EQ(sets.vocabularies.at(0).file_name, "tokenizer.json");
    EXPECT_EQ(sets.vocabularies.at(0).sha256, hash_file(folder_ / "tokenizer.json").sha256);
  }
}

TEST_F(TextData, AFolderStandsForItsTokenizer) {
  make_directories(folder_ / "saved");
  write_file(folder_ / "saved/tokenizer.json", "{}");
  EXPECT_EQ(config("tokenizer = 'saved'\nlength = 1").text()->tokenizer,
            folder_ / "saved/tokenizer.json");
  write_file(folder_ / "a.jsonl", "{\"text\": \"abc\"}\n");
  const DataConfig table =
      data_config(folder_,
                  "kind = 'jsonl'\ntokenizer = 'saved'\ntrain = { files = 'a.jsonl' }\n"
                  "fields.ids = { from = 'text', as = ['tokens(length=4)'] }\n");
  EXPECT_EQ(table.table()->tokenizer, folder_ / "saved/tokenizer.json");
}

}  // namespace
}  // namespace tandem
