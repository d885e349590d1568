// Where the bracket or quote is that TOML leaves open.
#include "engine/config/keys/open_bracket.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

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

}  // namespace
}  // namespace tandem
