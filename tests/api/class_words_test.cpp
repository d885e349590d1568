// The words of classes in the metadata of an exported model. How they are used:
// tests/expected/commands/class_words.txt.
#include "api/trained/class_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::api {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ExportedWords, OtherMetadataIsNone) {
  EXPECT_THAT(exported_words({{"class_names.label", R"(["a","b"])"}}).at("label"),
              ElementsAre("a", "b"));
  for (const char* text : {"", "7", "[]", "[1,2]", "[\"a\",1]", "{\"a\":\"b\"}", "[\"a\""})
    EXPECT_THAT(exported_words({{"class_names.label", text}}), IsEmpty()) << text;
}

}  // namespace
}  // namespace tandem::api
