// Words that the training data lacks: the nearest known one, when there is a warning, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/formats/files.h"
#include "engine/training/data/cells/unknown_words.h"
#include "engine/training/data/data_source.h"
#include "tests/training/data/data_config_text.h"
#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using testing::data_config;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TemporaryFolder;
using Texts = std::vector<std::string>;

std::string nearest_of(const std::string& word, const Texts& known) {
  return nearest_word(
      word, static_cast<std::int64_t>(known.size()),
      [&](std::int64_t i) -> std::string_view { return known[static_cast<std::size_t>(i)]; });
}

TEST(UnknownWords, TheNearestKnownOne) {
  EXPECT_EQ(nearest_of("red ", {"blue", "red"}), "red");
  EXPECT_EQ(nearest_of("\tred\r", {"Red", "red"}), "red");
  EXPECT_EQ(nearest_of("RED", {"blue", "Red"}), "Red");
  EXPECT_EQ(nearest_of("1.0", {"10", "1"}), "1");
  EXPECT_EQ(nearest_of("1e1", {"11", "10.0"}), "10.0");
  EXPECT_EQ(nearest_of("7", {"1", "8"}), "");  // another number is not another spelling
  EXPECT_EQ(nearest_of("gren", {"blue", "green"}), "green");
  EXPECT_EQ(nearest_of("violet", {"blue", "green"}), "");
}

/// The messages while the data of training and held-out rows is opened.
Texts said_of(const std::string& train, const std::string& eval, const std::string& functions) {
  const TemporaryFolder folder;
  write_file(folder / "train.csv", train);
  write_file(folder / "eval.csv", eval);
  Texts said;
  OpenOptions options;
  options.on_message = [&](const std::string& line) { said.push_back(line); };
  const DataConfig config = data_config(
      folder,
      "kind = 'csv'\ntrain = { files = ['train.csv'] }\neval = { files = ['eval.csv'] }\n"
      "fields = { ids = { from = 'color', as = [" +
          functions + "] } }\n");
  open_data(config, options);
  Texts again;
  options.on_message = [&](const std::string& line) { again.push_back(line); };
  open_data(config, options);  // the prepared table gives the same warnings
  std::erase_if(said, [](const std::string& line) { return line.find("preparing") != line.npos; });
  EXPECT_EQ(said, again);
  return said;
}

TEST(UnknownWords, HeldOutDataIsWarnedOf) {
  const Texts said = said_of("color\n1\n2\n3\n1\n", "color\n1.0\n2.0\n3\n", "'vocabulary'");
  EXPECT_THAT(said, Contains(AllOf(HasSubstr("warning"), HasSubstr("2 of 3 values of `color`"),
                                   HasSubstr("66.7 %"), HasSubstr("\"1.0\" (known is \"1\")"),
                                   HasSubstr("no training sample has"))));
}

TEST(UnknownWords, OtherSpellings) {
  const Texts said =
      said_of("color\nred\ngreen\n", "color\nred \nGREEN\nviolet\nred\n", "'vocabulary'");
  EXPECT_THAT(
      said, Contains(AllOf(HasSubstr("3 of 4"), HasSubstr("\"red \" (known is \"red\")"),
                           HasSubstr("\"GREEN\" (known is \"green\")"), HasSubstr("\"violet\";"))));
}

TEST(UnknownWords, AFewAreNone) {
  std::string train = "color\n", eval = "color\n";
  for (int i = 0; i < 100; ++i) {
    train += "w" + std::to_string(i % 10) + "\n";
    eval += i < 3 ? "new\n" : "w" + std::to_string(i % 10) + "\n";
  }
  EXPECT_THAT(said_of(train, eval, "'vocabulary'"), Not(Contains(HasSubstr("warning"))));
  EXPECT_THAT(said_of(train, eval + "new\n", "'vocabulary'"),
              Contains(HasSubstr("4 of 101 values of `color`")));
}

TEST(UnknownWords, WhetherTheirRowIsTrained) {
  const std::string rows = "color\nred\nred\ngreen\ngreen\nblue\n";
  EXPECT_THAT(said_of(rows, rows, "'vocabulary'"),
              Contains(AllOf(HasSubstr("note"), HasSubstr("row 0 of ids"),
                             HasSubstr("vocabulary(min_count=2)"))));
  EXPECT_THAT(said_of(rows, rows, "'vocabulary(min_count=2)'"),
              Not(Contains(HasSubstr("row 0 of ids"))));
  // Row 0 fills up short lists, too.
  EXPECT_THAT(said_of(rows, rows, "\"split('|', max=2)\", 'vocabulary'"),
              Not(Contains(HasSubstr("row 0 of ids"))));
  EXPECT_THAT(said_of(rows, rows, "'hash(8)'"), IsEmpty());
}

TEST(UnknownWords, AClassIsNamed) {
  EXPECT_THAT(error_of([&] {
                said_of("color\nred\nBlue\n", "color\nred\n", "\"classes('red', 'blue')\"");
              }),
              AllOf(HasSubstr("train.csv:3:1"), HasSubstr("none of the classes"),
                    HasSubstr("did you mean \"blue\"?")));
}

}  // namespace
}  // namespace tandem
