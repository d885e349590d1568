// tokenizer.json that is hostile, and texts that it does not take. Broken ones:
// tests/expected/data/tokenizers.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "engine/formats/tokenizer/tokenizer.h"
#include "tests/training/formats/tokenizer_cases.h"

namespace tandem {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::lacks_text_libraries;

class TokenizerRefusals : public ::testing::Test {
 protected:
  void SetUp() override {
    if (lacks_text_libraries()) GTEST_SKIP() << "this build lacks PCRE2 or utf8proc";
  }
  static Json small() {
    return Json::parse(R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2},
                           "merges": [["a", "b"]]}, "added_tokens": []})");
  }
  /// The message of the refusal; "" if the text is accepted.
  static std::string refusal(const std::string& text) {
    try {
      Tokenizer::parse("tokenizer.json", text);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
      return error.what();
    }
    return "";
  }
  static std::string refusal(const Json& json) { return refusal(json.dump()); }
};

TEST_F(TokenizerRefusals, IdsBeyondTheVocabularyAreNamed) {
  Json json = small();
  json["post_processor"] =
      Json::parse(R"({"type": "BertProcessing", "sep": ["b", 1], "cls": ["x", 7]})");
  EXPECT_THAT(refusal(json), HasSubstr("the id 7 is not in the vocabulary"));
  json = small();
  json["added_tokens"] = Json::parse(R"([{"id": 1, "content": "c"}])");
  EXPECT_THAT(refusal(json), HasSubstr("another token of this id"));
  json["added_tokens"] = Json::parse(R"([{"id": 9, "content": "a"}])");
  EXPECT_THAT(refusal(json), HasSubstr("another id"));
  json["added_tokens"] = Json::parse(R"([{"id": 9, "content": "c"}, {"id": 9, "content": "d"}])");
  EXPECT_THAT(refusal(json), HasSubstr("alike"));
  json["added_tokens"] = Json::parse(R"([{"id": 9, "content": ""}])");
  EXPECT_THAT(refusal(json), HasSubstr("without a text"));
}

TEST_F(TokenizerRefusals, HostileFilesAreBounded) {
  std::string nested;
  for (int i = 0; i < 1000; ++i) nested += R"({"type": "Sequence", "normalizers": [)";
  EXPECT_THAT(refusal("{\"normalizer\": " + nested), HasSubstr("tokenizer.json"));
  std::string deep = R"({"type": "NFC"})";
  for (int i = 0; i < 20; ++i) deep = R"({"type": "Sequence", "normalizers": [)" + deep + "]}";
  Json json = small();
  json["normalizer"] = Json::parse(deep);
  EXPECT_THAT(refusal(json), HasSubstr("nested too deeply"));
  EXPECT_THAT(refusal(std::string("{\"a\": \"\xff\"}")), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(std::string("[]")), HasSubstr("not an object"));
  EXPECT_THAT(refusal(std::string("")), HasSubstr("not JSON"));
  json = small();
  json["pre_tokenizer"] =
      Json::parse(R"({"type": "Split", "behavior": "Isolated", "pattern": {"String": ""}})");
  EXPECT_THAT(refusal(json), HasSubstr("empty text"));
}

TEST_F(TokenizerRefusals, TextThatGrowsWithoutAnEndIsRefused) {
  // Each part turns one letter into sixteen: 2^160 letters in the end.
  Json more = Json::parse(R"({"type": "Replace", "pattern": {"String": "a"}})");
  more["content"] = std::string(16, 'a');
  Json json = small();
  json["normalizer"] = {{"type", "Sequence"}, {"normalizers", Json::array()}};
  for (int i = 0; i < 40; ++i) json["normalizer"]["normalizers"].push_back(more);
  const auto tokenizer = Tokenizer::parse("tokenizer.json", json.dump());
  EncodeScratch scratch;
  EncodedTokens encoded;
  EXPECT_THROW(tokenizer->encode("a", {}, scratch, encoded), std::invalid_argument);
  json["added_tokens"] = Json::parse(R"([{"id": 9, "content": "xa", "normalized": true}])");
  EXPECT_THAT(refusal(json), AllOf(HasSubstr("too long a text"), HasSubstr("added_tokens[0]")));
}

// Steps that back-track are counted by PCRE2; walks to the end of the text from each place are not.
TEST_F(TokenizerRefusals, ExpressionsThatTakeMoreThanLinearTimeAreStopped) {
  const auto seconds_and_message = [](const std::string& regex, const std::string& text) {
    Json json = small();
    json["pre_tokenizer"] = {
        {"type", "Split"}, {"behavior", "Isolated"}, {"pattern", {{"Regex", regex}}}};
    const auto tokenizer = Tokenizer::parse("tokenizer.json", json.dump());
    EncodeScratch scratch;
    EncodedTokens encoded;
    const std::clock_t start = std::clock();
    std::string message;
    try {
      tokenizer->encode(text, {}, scratch, encoded);
    } catch (const std::invalid_argument& problem) {
      message = problem.what();
    }
    return std::pair(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, message);
  };
  const std::string letters(400'000, 'a');
  for (const char* regex : {"(a+)+[bc]", "(a|aa)+[bc]", "a(?=a*[bc]|)", "a{1,60000}[bc]",
                            "(?<=a)(?=a*[bc]|)a", "(?:(?:a{1,3}){1,9}[bc]|a)"}) {
    const auto [seconds, message] = seconds_and_message(regex, letters);
    EXPECT_THAT(message, HasSubstr("the tokenizer's pattern")) << regex;
    EXPECT_LT(seconds, 10) << regex;  // a sanitizer slows it down
  }
  std::string words;
  for (int i = 0; i < 100'000; ++i) words += "hello w\u00f6rld ";
  EXPECT_EQ(seconds_and_message("'s| ?\\p{L}+|\\s+(?!\\S)|\\s+", words).second, "");
}

// A search tries only as many characters of a word as the longest token has.
TEST_F(TokenizerRefusals, LongWordsOfAWordPieceTakeLinearTime) {
  Json json = small();
  json["model"] = {{"type", "WordPiece"},
                   {"vocab", {{"[UNK]", 0}, {"\u00fc", 1}, {"##\u00fc", 2}, {"##\u00fcabc", 3}}},
                   {"max_input_chars_per_word", 65'536}};
  const auto tokenizer = Tokenizer::parse("tokenizer.json", json.dump());
  EncodeScratch scratch;
  EncodedTokens encoded;
  std::string word;
  for (int i = 0; i < 60'000; ++i) word += "\u00fc";
  const std::clock_t start = std::clock();
  tokenizer->encode(word + "abc", {}, scratch, encoded);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 10);
  ASSERT_EQ(encoded.ids.size(), 60'000);
  EXPECT_EQ(encoded.ids.front(), 1);
  EXPECT_EQ(encoded.ids[1], 2);
  EXPECT_EQ(encoded.ids.back(), 3);
}

TEST_F(TokenizerRefusals, TokensWithoutAnEndAreRefused) {
  // Searching for a token takes much more memory for each of its bytes.
  const std::string endless((std::size_t{1} << 24) + 1, 'x');
  Json json = small();
  json["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", endless}};
  json["added_tokens"] = Json::parse(R"([{"id": 0, "content": "a", "normalized": true}])");
  EXPECT_THAT(refusal(json), AllOf(HasSubstr("too long"), HasSubstr("added_tokens[0]")));
  json = small();
  json["model"] = {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", Json::array()}};
  json["model"]["vocab"].push_back(Json::array({"a", -1.0}));
  json["model"]["vocab"].push_back(Json::array({endless, -2.0}));
  EXPECT_THAT(refusal(json), AllOf(HasSubstr("too long"), HasSubstr("model.vocab[1]")));
}

TEST_F(TokenizerRefusals, TextThatIsNoTextIsRefused) {
  const auto tokenizer = Tokenizer::parse("tokenizer.json", small().dump());
  EncodeScratch scratch;
  EncodedTokens encoded;
  for (const char* text : {"a\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "ab\xe2\x82"}) {
    EXPECT_THROW(tokenizer->encode(text, {}, scratch, encoded), std::invalid_argument) << text;
  }
  tokenizer->encode("ab\xf0\x9f\x91\x8d", {}, scratch, encoded);  // without an unknown token
  EXPECT_EQ(encoded.ids, std::vector<std::uint32_t>{2});
}

TEST_F(TokenizerRefusals, LongWordsTakeTimeInProportion) {
  // 1 MB without a place to cut: trying each pair in turn would take hours.
  const auto tokenizer = Tokenizer::parse("tokenizer.json", small().dump());
  std::string text;
  for (int i = 0; i < 500'000; ++i) text += "ab";
  EncodeScratch scratch;
  EncodedTokens encoded;
  tokenizer->encode(text, {}, scratch, encoded);
  EXPECT_EQ(encoded.ids, std::vector<std::uint32_t>(500'000, 2));
}

TEST_F(TokenizerRefusals, LengthsThatSpecialsFillAreRefused) {
  Json json = small();
  json["post_processor"] =
      Json::parse(R"({"type": "BertProcessing", "sep": ["b", 1], "cls": ["a", 0]})");
  const auto tokenizer = Tokenizer::parse("tokenizer.json", json.dump());
  EncodeScratch scratch;
  EncodedTokens encoded;
  EXPECT_THROW(tokenizer->encode("ab", {.length = 2}, scratch, encoded), std::invalid_argument);
  tokenizer->encode("abab", {.length = 3}, scratch, encoded);
  EXPECT_EQ(encoded.ids, (std::vector<std::uint32_t>{0, 2, 1}));
  tokenizer->encode("", {.length = 3, .pad = 9}, scratch, encoded);
  EXPECT_EQ(encoded.ids, (std::vector<std::uint32_t>{0, 1, 9}));
}

}  // namespace
}  // namespace tandem
