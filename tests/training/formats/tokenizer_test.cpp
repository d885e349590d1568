// tokenizer.json: single parts and whole tokenizers give what Hugging Face's library gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "engine/formats/tokenizer/tokenizer.h"
#include "tests/training/formats/tokenizer_cases.h"

namespace tandem {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<std::uint32_t>;
using testing::lacks_text_libraries;
using testing::tokenizer_file;

class TokenizerParts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (lacks_text_libraries()) GTEST_SKIP() << "this build lacks PCRE2 or utf8proc";
    cases_ = tokenizer_file("parts");
    texts_ = cases_.at("texts").get<std::vector<std::string>>();
  }
  static JsonFile file(const Json& part) { return {JsonSource{.file = "part"}, part.dump()}; }

  Json cases_;
  std::vector<std::string> texts_;
};

TEST_F(TokenizerParts, NormalizersGiveTheSameText) {
  for (const Json& each : cases_.at("normalizers")) {
    const JsonFile settings = file(each.at("part"));
    const auto normalizer = read_normalizer(settings.root());
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      std::string text = texts_[i];
      bool from_start = true;
      normalizer->normalize(text, from_start);
      EXPECT_EQ(text, each.at("expected")[i].get<std::string>())
          << each.at("part").dump() << " of \"" << texts_[i] << "\"";
    }
  }
}

TEST_F(TokenizerParts, PreTokenizersGiveTheSameWords) {
  for (const Json& each : cases_.at("pre_tokenizers")) {
    const JsonFile settings = file(each.at("part"));
    const auto pre_tokenizer = read_pre_tokenizer(settings.root());
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      Words words{texts_[i], {}, true};
      if (!texts_[i].empty()) words.ranges.push_back({0, texts_[i].size()});
      pre_tokenizer->split(words);
      std::vector<std::string> got;
      for (const TextRange& range : words.ranges) got.emplace_back(words.word(range));
      EXPECT_EQ(got, each.at("expected")[i].get<std::vector<std::string>>())
          << each.at("part").dump() << " of \"" << texts_[i] << "\"";
    }
  }
}

TEST_F(TokenizerParts, DecodersGiveTheSameText) {
  const auto lists = cases_.at("lists").get<std::vector<std::vector<std::string>>>();
  for (const Json& each : cases_.at("decoders")) {
    const JsonFile settings = file(each.at("part"));
    const auto decoder = read_token_decoder(settings.root());
    for (std::size_t i = 0; i < lists.size(); ++i) {
      std::vector<std::string> tokens = lists[i];
      decoder->decode(tokens);
      std::string got;
      for (const std::string& token : tokens) got += token;
      EXPECT_EQ(got, each.at("expected")[i].get<std::string>())
          << each.at("part").dump() << " of list " << i;
    }
  }
}

class TokenizerFiles : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (lacks_text_libraries()) GTEST_SKIP() << "this build lacks PCRE2 or utf8proc";
    case_ = tokenizer_file(GetParam());
    lines_ = tokenizer_file("lines").get<std::vector<std::string>>();
    tokenizer_ = Tokenizer::parse(GetParam(), case_.at("tokenizer").dump());
  }
  EncodedTokens encode(std::size_t line, const EncodeOptions& options = {}) {
    EncodedTokens encoded;
    tokenizer_->encode(lines_[line], options, scratch_, encoded);
    return encoded;
  }

  Json case_;
  std::vector<std::string> lines_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  EncodeScratch scratch_;
};

TEST_P(TokenizerFiles, GiveTheSameIds) {
  ASSERT_EQ(lines_.size(), case_.at("ids").size());
  for (int round = 0; round < 2; ++round) {  // the second time all words are known
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      EXPECT_EQ(encode(i).ids, case_.at("ids")[i].get<Ids>())
          << Json(lines_[i]).dump(-1, ' ', true) << " in round " << round;
    }
  }
  for (const Json& plain : case_.at("plain")) {
    EXPECT_EQ(encode(plain[0], {.adds_special = false}).ids, plain[1].get<Ids>()) << plain[0];
  }
}

TEST_P(TokenizerFiles, GiveTheSameTextBack) {
  for (const Json& decoded : case_.at("decoded")) {
    const Ids ids = case_.at("ids")[decoded[0].get<std::size_t>()].get<Ids>();
    EXPECT_EQ(tokenizer_->decode(ids), decoded[1].get<std::string>()) << decoded[0];
  }
}

TEST_P(TokenizerFiles, GiveTheSameTypesAndMasks) {
  if (case_.contains("types")) {
    for (const Json& types : case_.at("types"))
      EXPECT_EQ(encode(types[0]).types, types[1].get<std::vector<std::uint8_t>>()) << types[0];
    return;
  }
  for (const Json& padded : case_.at("padded")) {
    const EncodedTokens encoded = encode(padded[0], {.length = 16});
    EXPECT_EQ(encoded.ids, padded[1].get<Ids>()) << padded[0];
    EXPECT_EQ(encoded.types, padded[2].get<std::vector<std::uint8_t>>()) << padded[0];
    EXPECT_EQ(encoded.mask, padded[3].get<std::vector<std::uint8_t>>()) << padded[0];
  }
}

TEST_P(TokenizerFiles, MayBeUsedByThreadsAtOnce) {
  std::vector<std::jthread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      EncodeScratch scratch;
      EncodedTokens encoded;
      for (std::size_t i = static_cast<std::size_t>(t); i < lines_.size(); i += 2) {
        tokenizer_->encode(lines_[i], {}, scratch, encoded);
        wrong += encoded.ids != case_.at("ids")[i].get<Ids>();
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerFiles, ::testing::ValuesIn(testing::tokenizer_names()),
                         [](const auto& info) { return info.param; });

/// More lines than a fixture holds: tests/check_all/tokenizers.sh makes them.
TEST(TokenizerLines, GiveTheSameIds) {
  const char* path = std::getenv("TANDEM_TOKENIZER_LINES");
  if (path == nullptr || lacks_text_libraries())
    GTEST_SKIP() << "TANDEM_TOKENIZER_LINES names no file, or this build lacks a library";
  std::ifstream file(path);
  int tokenizers = 0;
  for (std::string line; std::getline(file, line); ++tokenizers) {
    const Json each = Json::parse(line);
    const auto tokenizer = Tokenizer::parse(each.at("name"), each.at("tokenizer").dump());
    EncodeScratch scratch;
    EncodedTokens encoded;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < each.at("lines").size(); ++i) {
      const auto text = each.at("lines")[i].get<std::string>();
      tokenizer->encode(text, {}, scratch, encoded);
      if (encoded.ids == each.at("ids")[i].get<Ids>() || ++wrong > 5) continue;
      ADD_FAILURE() << each.at("name") << ": " << Json(text).dump(-1, ' ', true);
    }
    EXPECT_EQ(wrong, 0u) << each.at("name");
  }
  EXPECT_EQ(tokenizers, static_cast<int>(testing::tokenizer_names().size()));
}

}  // namespace
}  // namespace tandem
