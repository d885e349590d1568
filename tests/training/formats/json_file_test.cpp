// JSON files that are read back: texts that are not documents, values of another type or range.
#include "engine/formats/json_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/training/error_text.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;

JsonFile json_of(const std::string& text, const JsonLimits& limits = {}) {
  return JsonFile({.file = "a.json"}, text, limits);
}

TEST(JsonFile, RefusesWhatIsNoDocument) {
  const auto says = [](const std::string& text, const JsonLimits& limits = {}) {
    return error_of([&] { json_of(text, limits); });
  };
  const auto clean = Not(HasSubstr("json.exception"));
  EXPECT_THAT(says("{\n\"a\": 1,\n}"), AllOf(HasSubstr("a.json:3: the file is not JSON"), clean));
  EXPECT_THAT(says(""), AllOf(HasSubstr("is not JSON"), clean));
  EXPECT_THAT(says("{\"a\": 1e999}"), AllOf(HasSubstr("is not JSON"), clean));
  EXPECT_THAT(says("{\"a\": \"\xff\"}"), AllOf(HasSubstr("is not JSON"), clean));
  EXPECT_THAT(says(R"({"b": {"a": 1, "a": 2}})"), HasSubstr("a: the file has this name twice"));
  EXPECT_THAT(says(std::string(100000, '[')), HasSubstr("nested too deeply"));
  EXPECT_THAT(says("[1, 2, 3]", {.values = 3}), HasSubstr("too many values: expected at most 3"));
  EXPECT_THAT(says("[1, 2]", {.bytes = 5}), HasSubstr("expected at most 5 bytes, got 6 bytes"));
  EXPECT_EQ(says("[1, 2]", {.bytes = 6, .values = 3, .depth = 1}), "no error");
}

TEST(JsonFile, ValuesHaveTypeAndRange) {
  const JsonFile file = json_of(R"({"n": 5, "minus": -1, "top": 9223372036854775808, "x": 0.5,
      "t": "word", "nul": "a\u0000b", "l": [1, {"deep": null}], "b": true, "hash": "00"})");
  const JsonItem root = file.root();
  const auto says = [](auto&& read) { return error_of(read); };
  EXPECT_EQ(root.at("n").natural(5, 5), 5u);
  EXPECT_EQ(root.at("n").number(0, 5), 5);
  EXPECT_EQ(root.at("top").natural(0, ~std::uint64_t{0}), std::uint64_t{1} << 63);
  EXPECT_EQ(root.at("t").text(), "word");
  EXPECT_EQ(root.at("nul").any_text(), std::string("a\0b", 3));
  EXPECT_TRUE(root.at("b").boolean());
  EXPECT_FALSE(root.find("none"));
  EXPECT_EQ(says([&] { root.at("n").natural(0, 4); }),
            "a.json: n: not a value that can be here: expected an integer from 0 to 4, got 5");
  EXPECT_THAT(says([&] { root.at("minus").natural(); }), HasSubstr("got -1"));
  EXPECT_THAT(says([&] { root.at("top").natural(); }), HasSubstr("got 9223372036854775808"));
  EXPECT_THAT(says([&] { root.at("x").natural(); }), HasSubstr("got 0.5"));
  EXPECT_THAT(says([&] { root.at("x").number(1, 2); }), HasSubstr("a number from 1 to 2, got 0.5"));
  EXPECT_THAT(says([&] { root.at("t").number(1, 2); }), HasSubstr("got \"word\""));
  EXPECT_THAT(says([&] { root.at("t").text(3); }), HasSubstr("at most 3 bytes"));
  EXPECT_THAT(says([&] { root.at("nul").text(); }), HasSubstr("got \"a\\u0000b\""));
  EXPECT_THAT(says([&] { root.at("b").text(); }), HasSubstr("got true"));
  EXPECT_THAT(says([&] { root.at("n").boolean(); }), HasSubstr("expected true or false, got 5"));
  EXPECT_THAT(says([&] { root.at("l").object(); }), HasSubstr("expected an object, got a list"));
  EXPECT_THAT(says([&] { root.list(); }), HasSubstr("expected a list, got an object"));
  EXPECT_THAT(says([&] { root.at("hash").sha256(); }), HasSubstr("64 hexadecimal digits"));
  EXPECT_EQ(says([&] { root.at("l").list()[1].at("deep").boolean(); }),
            "a.json: l[1].deep: not a value that can be here: expected true or false, got null");
  EXPECT_EQ(says([&] { root.at("l").list()[1].at("other"); }),
            "a.json: l[1].other: the file lacks this value");
  EXPECT_EQ(says([&] { root.at("n").at("m"); }), "a.json: n: not an object: got 5");
}

TEST(JsonFile, TheSourceSaysWhatItIsOf) {
  try {
    JsonFile({.file = "b", .what = "the header", .offset = 8, .kind = ErrorKind::usage, .fix = "f"},
             "nul");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_STREQ(error.what(), "b: the header is not JSON (at byte 12) (f)");
  }
}

}  // namespace
}  // namespace tandem
