// What the message says about TOML that ends too early or lacks a bracket.
#include "engine/training/config/open_bracket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/training/config/run_config.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string place(std::string_view text, int line, int column) {
  const auto open = open_bracket(text, line, column);
  if (!open) return "";
  return std::string(1, open->bracket) + " " + std::to_string(open->line) + ":" +
         std::to_string(open->column);
}

TEST(OpenBracket, IsTheInnermost) {
  EXPECT_EQ(place("a = [ { b = 1\n", 2, 1), "{ 1:7");
  EXPECT_EQ(place("a = [ { b = 1 }\nc = 2", 2, 1), "[ 1:5");
  EXPECT_EQ(place("a = [ 1 ]\nb = 2", 2, 5), "");
  EXPECT_EQ(place("[table\n", 1, 7), "[ 1:1");
}

TEST(OpenBracket, StringsAndCommentsDoNotCount) {
  EXPECT_EQ(place("a = [ \"]\", # ]\n  ']'\nb", 3, 1), "[ 1:5");
  EXPECT_EQ(place("a = \"\\\"[\"\nb", 2, 1), "");
  EXPECT_EQ(place("a = \"\"\"[\n[\"\"\"\nb", 3, 1), "");
  EXPECT_EQ(place("a = \"open\nb", 1, 10), "\" 1:5");
  EXPECT_EQ(place("a = 'open\nb", 2, 1), "' 1:5");
}

TEST(OpenBracket, TheMessageOfAConfiguration) {
  const auto message = [](const std::string& text) {
    return testing::error_text([&] { parse_run_config(text, "/folder/train.toml"); });
  };
  EXPECT_THAT(message("model = \"m.onnx\"\nx = { as = [ \"log1p\"\nlabels = 1\n"),
              AllOf(HasSubstr("train.toml:3"),
                    HasSubstr("close the [ of line 2, column 12, or write a comma before this")));
  EXPECT_THAT(message("[loss\nterms = []\n"), HasSubstr("close the [ of line 1, column 1"));
  EXPECT_THAT(message("model = \"m.onnx\nsteps = 1\n"),
              HasSubstr("close the \" of line 1, column 9"));
  EXPECT_THAT(message("model = = 1\n"), AllOf(HasSubstr("not TOML"), Not(HasSubstr("close the"))));
}

}  // namespace
}  // namespace tandem
