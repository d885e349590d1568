// Lists in messages, the name that was meant, spaces at the ends.
#include "engine/graph/text.h"

#include <gtest/gtest.h>

#include <vector>

namespace tandem {
namespace {

struct Named {
  std::string name;
};

TEST(TextTest, ListsHaveSeparatorsBetweenTheirItems) {
  EXPECT_EQ(joined(std::vector<std::string>{}), "");
  EXPECT_EQ(joined(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(joined(std::vector<std::string>{"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(joined(std::vector<Named>{{"x"}, {"y"}}, " or ", &Named::name), "x or y");
  EXPECT_EQ(joined(std::vector<int>{1, 2}, ".", [](int n) { return std::to_string(n); }), "1.2");
}

TEST(TextTest, TheNearestNameIsAskedFor) {
  EXPECT_EQ(did_you_mean("fc1"), "did you mean \"fc1\"?");
  EXPECT_EQ(did_you_mean("lr", "`tandem config keys` lists all", "`"), "did you mean `lr`?");
  EXPECT_EQ(did_you_mean("", "`tandem policy names` lists them"),
            "`tandem policy names` lists them");
  EXPECT_EQ(did_you_mean(""), "");
}

TEST(TextTest, SpacesAreCutOffAtBothEnds) {
  EXPECT_EQ(trimmed("  a b "), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed("   "), "");
  EXPECT_EQ(trimmed("\ta "), "\ta");  // tabs separate columns
}

}  // namespace
}  // namespace tandem
