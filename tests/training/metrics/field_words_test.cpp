// What the numbers of labels and of slices mean in words.
#include "engine/train/evaluation/field_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/data/images/read_images.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A configuration whose loss takes `label` and whose metric is by `city`.
RunConfig config_with(const std::string& data) {
  return parse_run_config(R"toml(
model = "model.onnx"
batch_size = 4
steps = 1
[loss]
terms = [ { kind = "softmax_cross_entropy", logits = "y", labels = "label" } ]
[eval]
metrics = [ { kind = "accuracy", by = "city" } ]
[optimizer]
kind = "sgd"
[data]
eval = { fraction = 0.5 }
)toml" + data,
                          "/nowhere/train.toml");
}

RunConfig table_with(const std::string& label, const std::string& city = "'int64'") {
  return config_with(R"toml(
kind = "csv"
columns = [ "a", "b", "c" ]
train = { files = [ "rows.csv" ] }
[data.fields]
x = { from = "c", as = [ "classes('not', 'wanted')" ] }
label = { from = "a", as = [ )toml" +
                     label + " ] }\ncity = { from = \"b\", as = [ " + city + " ] }\n");
}

SavedVocabulary saved(const std::string& name, const std::string& text) {
  SavedVocabulary one;
  one.name = name;
  one.file_name = name == "classes" ? classes_file : "vocabulary." + name + ".tsv";
  one.text = text;
  return one;
}

TEST(FieldWordsTest, ListedClassesHaveThemselves) {
  FieldWords words = field_words(table_with("\"classes('no', 'yes')\", 'float32'"), {});
  EXPECT_EQ(words.size(), 1u) << "x is neither a label nor a slice";
  EXPECT_THAT(words["label"], ElementsAre("no", "yes"));
  words = field_words(table_with("'int64'", "\"classes('Bonn', 'Kiel')\""), {});
  EXPECT_EQ(words.size(), 1u);
  EXPECT_THAT(words["city"], ElementsAre("Bonn", "Kiel"));
  // Other numbers than those of the words.
  EXPECT_THAT(field_words(table_with("\"classes('no', 'yes')\", 'scale(2)'"), {}), IsEmpty());
  EXPECT_THAT(field_words(table_with("'int64'"), {}), IsEmpty());
}

TEST(FieldWordsTest, IdsOfVocabulariesHaveTheirValues) {
  const RunConfig config = table_with("'vocabulary'", "\"vocabulary(name='places')\"");
  const FieldWords words =
      field_words(config, {saved("label", "column\tvalue\tcount\na\tred\t5\na\tblue\t2\n"),
                           saved("places", "column\tvalue\tcount\n\tBonn\t3\n")});
  EXPECT_THAT(words.at("label"), ElementsAre("", "red", "blue"));
  EXPECT_THAT(words.at("city"), ElementsAre("", "Bonn"));
  EXPECT_EQ(*word_of(words.at("label"), 2), "blue");
  EXPECT_EQ(word_of(words.at("label"), 0), nullptr) << "all unknown words";
  EXPECT_EQ(word_of(words.at("label"), 3), nullptr);
  EXPECT_EQ(word_of(words.at("label"), -1), nullptr);
  EXPECT_THAT(field_words(config, {}), IsEmpty());
}

TEST(FieldWordsTest, ColumnsThatShareAVocabularyHaveTheirOwnValues) {
  const std::string shared = "\"vocabulary(name='both', by='column')\"";
  const RunConfig config = table_with(shared, shared);
  const FieldWords words = field_words(
      config, {saved("both", "column\tvalue\tcount\na\tred\t5\nb\tBonn\t4\na\tblue\t2\n")});
  EXPECT_THAT(words.at("label"), ElementsAre("", "red", "", "blue"));
  EXPECT_THAT(words.at("city"), ElementsAre("", "", "Bonn", ""));
}

TEST(FieldWordsTest, AFileThatIsNoVocabularyIsAnError) {
  const RunConfig config = table_with("'vocabulary'");
  for (const char* broken : {"cut", "other words\n", "column\tvalue\tcount\nz\tred\t5\n"})
    EXPECT_THROW(field_words(config, {saved("label", broken)}), Error) << broken;
}

TEST(FieldWordsTest, PicturesHaveTheNamesOfTheirFolders) {
  const std::string images = "kind = \"images\"\ntrain = { files = \"train\" }\n[data.fields]\n";
  const std::vector<SavedVocabulary> classes{saved("classes", "cat\ndog\n")};
  EXPECT_THAT(field_words(config_with(images + "x = \"images\"\nlabel = \"labels\"\n"), classes)
                  .at("label"),
              ElementsAre("cat", "dog"));
  EXPECT_THAT(field_words(config_with(images + "x = \"images\"\nlabel = { from = \"labels\", as = "
                                               "[ \"one_hot(2)\" ] }\n"),
                          classes),
              IsEmpty());
}

}  // namespace
}  // namespace tandem
