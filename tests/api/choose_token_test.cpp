// How the next token is chosen by its logits, and how tokens become text piece by piece.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "api/generate/choose_token.h"
#include "api/generate/written_text.h"
#include "engine/data/random.h"
#include "engine/formats/tokenizer/utf8.h"
#include "tests/training/formats/tokenizer_cases.h"

namespace tandem::api {
namespace {

using ::testing::ElementsAre;

/// How often each token is drawn, as a share.
std::vector<double> shares(const std::vector<float>& logits, const TokenChoice& how) {
  constexpr int times = 40'000;
  std::vector<double> counts(logits.size(), 0);
  RandomStream random(7);
  for (int i = 0; i < times; ++i)
    counts[static_cast<std::size_t>(choose_token(logits, how, random.uniform()))] += 1.0 / times;
  return counts;
}

void expect_shares(const std::vector<float>& logits, const TokenChoice& how,
                   const std::vector<double>& wanted) {
  const std::vector<double> drawn = shares(logits, how);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    // Five standard deviations of such a share.
    EXPECT_NEAR(drawn[i], wanted[i], 5 * std::sqrt(wanted[i] * (1 - wanted[i]) / 40'000) + 1e-9)
        << i;
  }
}

TEST(ChooseToken, GreedyTakesTheFirstOfTheGreatest) {
  EXPECT_EQ(choose_token(std::vector<float>{1, 3, -2, 3}, {}, 0.99), 1);
  // A small temperature draws nothing else.
  for (const double chance : {0.0, 0.3, 0.999999})
    EXPECT_EQ(choose_token(std::vector<float>{1, 3, 2.9F}, {.temperature = 1e-6}, chance), 1);
}

// log of 1, 2, 3, 4: with temperature 1 the shares are tenths.
TEST(ChooseToken, DrawsFromTheSoftmaxOfTheLogits) {
  const std::vector<float> logits{0, std::log(2.F), std::log(3.F), std::log(4.F)};
  expect_shares(logits, {.temperature = 1}, {0.1, 0.2, 0.3, 0.4});
  // Half the temperature: squares.
  expect_shares(logits, {.temperature = 0.5}, {1. / 30, 4. / 30, 9. / 30, 16. / 30});
  expect_shares(logits, {.temperature = 1, .top_k = 2}, {0, 0, 3. / 7, 4. / 7});
  // 0.4 and 0.3 do not reach 0.75, so that the token of 0.2 is in, too.
  expect_shares(logits, {.temperature = 1, .top_p = 0.75}, {0, 2. / 9, 3. / 9, 4. / 9});
  // The first of the two that top_k leaves has 4/7.
  expect_shares(logits, {.temperature = 1, .top_k = 2, .top_p = 0.5}, {0, 0, 0, 1});
}

TEST(ChooseToken, LogitsThatAreNotFiniteChooseNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(choose_token(std::vector<float>{1, nan, 2}, {}, 0), -1);
  EXPECT_EQ(choose_token(std::vector<float>{1, infinity}, {.temperature = 1}, 0), -1);
  EXPECT_EQ(choose_token(std::vector<float>{-infinity, -infinity}, {}, 0), -1);
  EXPECT_EQ(choose_token(std::vector<float>{-infinity, 0}, {.temperature = 1}, 0.9), 1)
      << "a token that the model hides is never drawn";
}

std::vector<std::uint32_t> ids_of(std::string_view bytes) {
  std::vector<std::uint32_t> ids;
  for (const char c : bytes) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

/// The pieces of a text whose tokens are its bytes; the last one is what `finish` gives.
std::vector<std::string> pieces_of(std::string_view bytes, std::vector<std::string> stops = {}) {
  const auto encoder = byte_encoder();
  WrittenText stream(*encoder, ids_of("before"), std::move(stops));
  std::vector<std::string> pieces;
  for (const std::uint32_t id : ids_of(bytes)) pieces.push_back(stream.add(id));
  pieces.push_back(stream.finish());
  return pieces;
}

TEST(WrittenText, CharactersAreNeverCut) {
  EXPECT_THAT(pieces_of("aé€"), ElementsAre("a", "", "é", "", "", "€", ""));
  // What stays incomplete, or is none, becomes U+FFFD.
  EXPECT_THAT(pieces_of("\xc3"), ElementsAre("", "\xef\xbf\xbd"));
  EXPECT_THAT(pieces_of("\xc3z"), ElementsAre("", "\xef\xbf\xbdz", ""));
}

TEST(WrittenText, ATextThatStopsIsHeldBack) {
  EXPECT_THAT(pieces_of("to END of", {"END"}),
              ElementsAre("t", "o", " ", "", "", "", "", "", "", ""));
  EXPECT_THAT(pieces_of("ENEN", {"END"}), ElementsAre("", "", "EN", "", "EN"));
  EXPECT_THAT(pieces_of("ab\n", {"\nQ", "b\n"}), ElementsAre("a", "", "", ""));
}

// The tokenizers of tests/scripts/tokenizer_expectations.py: pieces together are the whole text.
TEST(WrittenText, PiecesAreTheTextOfTheTokens) {
  if (tandem::testing::lacks_text_libraries()) GTEST_SKIP();
  for (const std::string& name : tandem::testing::tokenizer_names()) {
    const nlohmann::json file = tandem::testing::tokenizer_file(name);
    const std::shared_ptr<const Tokenizer> tokenizer =
        Tokenizer::parse(name, file["tokenizer"].dump());
    const auto encoder = token_encoder(tokenizer);
    EncodeScratch scratch;
    std::vector<std::uint32_t> ids;
    encoder->encode("the cat, he said: naïve 你好 \xf0\x9f\x98\x80 low lower", scratch, ids);
    ASSERT_GT(ids.size(), 4u) << name;
    for (const std::size_t cut : {std::size_t{0}, std::size_t{2}}) {
      const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(cut);
      const std::vector<std::uint32_t> prompt(ids.begin(), middle);
      WrittenText stream(*encoder, prompt, {});
      for (auto id = middle; id != ids.end(); ++id) {
        const std::string piece = stream.add(*id);
        EXPECT_EQ(invalid_utf8(piece), std::string::npos) << name;
      }
      stream.finish();
      EXPECT_EQ(encoder->decode(prompt) + stream.text(), encoder->decode(ids)) << name << cut;
    }
  }
}

}  // namespace
}  // namespace tandem::api
