// Which known word is the nearest one to a word that the training data lacks.
#include "engine/data/cells/unknown_words.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

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

}  // namespace
}  // namespace tandem
