// data.kind = "chat": ids and labels are those that transformers gives (chat_expectations.py), and
// packed conversations are the same ones side by side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/config/keys/config_value.h"
#include "engine/data/chat/chat_template.h"
#include "engine/data/data_source.h"
#include "engine/formats/files.h"
#include "tests/harness/folders.h"
#include "tests/training/data/data_config_text.h"
#include "tests/training/formats/tokenizer_cases.h"

namespace tandem {
namespace {

using testing::data_config;
using testing::ids_of;
using testing::TemporaryFolder;
using Ids = std::vector<std::int64_t>;
using Json = nlohmann::json;

/// What the script wrote for one template.
struct Expected {
  explicit Expected(const std::string& name) {
    const std::string folder = source_folder() + "/tests/data/chat/";
    Json file = Json::parse(std::ifstream(folder + name + ".json"));
    tokenizer = file.at("tokenizer").dump();
    ids = file.at("ids").get<std::vector<Ids>>();
    answers =
        file.at("answers").get<std::vector<std::vector<std::pair<std::size_t, std::size_t>>>>();
    dialogs = read_file(folder + "dialogs.jsonl");
    style = toml_string(name);
    if (!file.contains("pattern")) return;
    style = "{ ";
    for (const auto& [role, text] : file["pattern"].items())
      style += (style.size() > 2 ? ", " : "") + role + " = " + toml_string(text.get<std::string>());
    style += " }";
  }

  std::int64_t longest() const {
    std::size_t most = 0;
    for (const Ids& one : ids) most = std::max(most, one.size());
    return static_cast<std::int64_t>(most);
  }
  bool is_learned(std::size_t dialog, std::size_t token) const {
    return std::any_of(answers[dialog].begin(), answers[dialog].end(),
                       [&](const auto& run) { return token >= run.first && token < run.second; });
  }
  /// The targets of a sample of this length.
  Ids targets(std::size_t dialog, std::int64_t length) const {
    Ids all(static_cast<std::size_t>(length), -100);
    for (std::size_t i = 1; i < std::min(ids[dialog].size(), all.size()); ++i) {
      if (is_learned(dialog, i)) all[i - 1] = ids[dialog][i];
    }
    return all;
  }

  std::string tokenizer, dialogs, style;
  std::vector<Ids> ids;
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> answers;
};

class ChatData : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (testing::lacks_text_libraries()) GTEST_SKIP() << "this build lacks PCRE2 or utf8proc";
    write_file(folder_ / "tokenizer.json", expected_.tokenizer);
    write_file(folder_ / "a.jsonl", expected_.dialogs);
  }
  DataSets open(std::int64_t length, const std::string& keys) {
    return open_data(data_config(
        folder_, "kind = 'chat'\ntokenizer = 'tokenizer.json'\ntemplate = " + expected_.style +
                     "\ntrain = { files = 'a.jsonl' }\nlength = " + std::to_string(length) + "\n" +
                     keys));
  }

  TemporaryFolder folder_;
  const Expected expected_{GetParam()};
};

constexpr const char* fields =
    "fields = { tokens = 'tokens', targets = 'targets', mask = 'mask', positions = 'positions' }\n";

TEST_P(ChatData, IdsAndLabelsAreThoseOfTransformers) {
  const std::int64_t length = expected_.longest() + 2;
  const DataSets sets = open(length, fields + std::string("pad = 7\n"));
  ASSERT_EQ(sets.train->samples(), std::ssize(expected_.ids));
  for (std::size_t i = 0; i < expected_.ids.size(); ++i) {
    SCOPED_TRACE("conversation " + std::to_string(i + 1));
    const auto sample = static_cast<std::int64_t>(i);
    Ids tokens = expected_.ids[i], mask(tokens.size(), 1);
    tokens.resize(static_cast<std::size_t>(length), 7);
    mask.resize(tokens.size(), 0);
    ASSERT_EQ(ids_of(*sets.train, "tokens", sample), tokens);
    ASSERT_EQ(ids_of(*sets.train, "targets", sample), expected_.targets(i, length));
    ASSERT_EQ(ids_of(*sets.train, "mask", sample), mask);
  }
  ASSERT_TRUE(sets.train_tokens);
  EXPECT_EQ(sets.train_tokens->longest.at(0).tokens, expected_.longest());
  EXPECT_EQ(sets.train_tokens->cut_tokens, 0);
}

TEST_P(ChatData, ShortSamplesHaveTheBeginnings) {
  constexpr std::int64_t length = 40;
  const DataSets sets = open(length, fields + std::string("on_bad = 'skip'\n"));
  std::int64_t sample = 0, learned = 0;
  for (std::size_t i = 0; i < expected_.ids.size(); ++i) {
    const Ids targets = expected_.targets(i, length);
    const auto own = std::count_if(targets.begin(), targets.end(), [](auto t) { return t >= 0; });
    if (own == 0) continue;  // the prompt fills the sample
    learned += own;
    Ids tokens = expected_.ids[i];
    tokens.resize(length, ids_of(*sets.train, "tokens", sample).back());
    ASSERT_EQ(ids_of(*sets.train, "tokens", sample), tokens) << i;
    ASSERT_EQ(ids_of(*sets.train, "targets", sample), targets) << i;
    ++sample;
  }
  EXPECT_EQ(sets.train->samples(), sample);
  EXPECT_LT(sample, std::ssize(expected_.ids));
  EXPECT_EQ(sets.train_tokens->learned, learned);
  EXPECT_EQ(sets.train_tokens->left_out, std::ssize(expected_.ids) - sample);
}

/// A conversation as a sample has it: tokens and targets.
using Talk = std::pair<Ids, Ids>;

TEST_P(ChatData, PackedConversationsAreTheSameAndSeparate) {
  const std::int64_t length = expected_.longest();
  const DataSets sets = open(
      length,
      "pack = true\nfields = { tokens = 'tokens', targets = 'targets', mask = 'mask', positions "
      "= 'positions', pairs = { from = 'attention', as = ['int64'] } }\n");
  std::map<Talk, int> wanted, found;
  std::int64_t all_tokens = 0;
  for (std::size_t i = 0; i < expected_.ids.size(); ++i) {
    const auto own = std::ssize(expected_.ids[i]);
    all_tokens += own;
    ++wanted[{expected_.ids[i], expected_.targets(i, own)}];
  }
  for (std::int64_t sample = 0; sample < sets.train->samples(); ++sample) {
    const Ids tokens = ids_of(*sets.train, "tokens", sample);
    const Ids targets = ids_of(*sets.train, "targets", sample);
    const Ids mask = ids_of(*sets.train, "mask", sample);
    const Ids positions = ids_of(*sets.train, "positions", sample);
    const Ids pairs = ids_of(*sets.train, "pairs", sample);
    const auto end = static_cast<std::size_t>(std::count(mask.begin(), mask.end(), 1));
    for (std::size_t begin = 0, next = 1; begin < end; begin = next++) {
      while (next < end && positions[next] != 0) ++next;
      ++found[{{tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                tokens.begin() + static_cast<std::ptrdiff_t>(next)},
               {targets.begin() + static_cast<std::ptrdiff_t>(begin),
                targets.begin() + static_cast<std::ptrdiff_t>(next)}}];
    }
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      for (std::size_t column = 0; column < tokens.size(); ++column) {
        const bool is_own =
            row < end ? column <= row && static_cast<std::int64_t>(row - column) <= positions[row]
                      : column == row;
        ASSERT_EQ(pairs[row * tokens.size() + column], is_own ? 1 : 0) << row << " " << column;
      }
    }
  }
  EXPECT_EQ(found, wanted);
  // Best-fit decreasing takes at most 11/9 of the fewest samples, and one.
  EXPECT_LE(sets.train->samples(), all_tokens * 11 / 9 / length + 2);
}

std::vector<std::string> all_names() {
  std::vector<std::string> names{"pattern"};
  for (const ChatTemplate& one : all_chat_templates()) names.push_back(one.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(, ChatData, ::testing::ValuesIn(all_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tandem
