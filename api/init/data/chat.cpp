// Conversations as lines of JSON: the template is the tokenizer's own one where it is known.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "api/init/data/data_look.h"
#include "api/init/data/own_template.h"
#include "api/init/data/table_arrays.h"
#include "api/init/data/token_windows.h"
#include "api/init/fields.h"
#include "engine/config/keys/config_keys.h"
#include "engine/config/keys/config_value.h"
#include "engine/data/chat/chat_encoder.h"
#include "engine/data/tokens/token_samples.h"
#include "engine/formats/delimited.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem::api::looks {
namespace {

constexpr std::int64_t most_usual_length = 1024, length_unmeasured = 512, length_step = 8;
constexpr std::int64_t most_measured = 1000;  // conversations

/// Calls `take` with each line that is not empty, until it returns false.
template <class Take>
void each_line(const std::vector<std::string>& paths, const Take& take) {
  for (const std::string& path : paths) {
    DelimitedReader reader(path, '\n', false);
    while (reader.next()) {
      if (!reader.is_empty_line() && !take(path, reader)) return;
    }
  }
}

void look_at_chat(const SplitPaths& paths, DataFacts& facts) {
  facts.train = {{"", paths.train, {}}};
  if (!paths.eval.empty()) facts.eval = {{"", paths.eval, {}}};
  TableBounds bounds;
  std::string path;
  each_line(paths.train, [&](const std::string& file, const DelimitedReader& reader) {
    if (!path.empty() && file != path) bounds.next_file();
    path = file;
    return bounds.take(reader.position());
  });
  take_bounds(bounds, paths.train, facts);
  facts.rows_read = 0;  // there are no columns
  ArrayFacts tokens;
  tokens.sample = {DType::int64, {length_unmeasured}};
  tokens.rows = bounds.rows();
  for (const char* name : {"tokens", "targets"}) {
    tokens.name = name;
    facts.arrays.push_back(tokens);
  }
}

/// The template as the keys that `init` writes state it.
struct ChosenTemplate {
  ChatFiles kind;
  bool is_open = false;  // which one it is, is asked
};

/// A pattern that ends answers with a token, for tokenizers of models without conversations.
ChatTemplateConfig plain_pattern(const std::string& end) {
  return {.system = "{content}\n\n",
          .user = "### Question: {content}\n",
          .assistant = "### Answer: {content}" + (end.empty() ? "\n\n" : end + "\n")};
}

std::string pattern_toml(const ChatTemplateConfig& pattern) {
  const std::string system =
      pattern.system.empty() ? "" : "system = " + toml_string(pattern.system) + ", ";
  return fmt::format("{{ {}user = {}, assistant = {} }}", system, toml_string(pattern.user),
                     toml_string(pattern.assistant));
}

/// The keys of a tokenizer's own beginning and system message.
void add_own_texts(const OwnTemplate& own, ChatFiles& kind, DataFacts& facts) {
  if (own.begin) {
    kind.begin = own.begin;
    facts.keys.push_back({"begin", toml_string(*own.begin), "as " + own.file + " has it", ""});
  }
  if (!own.system.empty()) {
    kind.system = own.system;
    facts.keys.push_back({"system", toml_string(own.system),
                          "what " + own.file + " adds where there is no system message", ""});
  }
}

void tell_differences(const OwnTemplate& own, const std::string& name, DataFacts& facts) {
  if (!own.more.empty()) {
    facts.notes.push_back(fmt::format("{} also has {}, which {} does not write", own.file,
                                      joined(own.more, " and "), name));
  }
  if (!own.less.empty()) {
    facts.notes.push_back(fmt::format("{} does not write {}, which {} writes", own.file,
                                      joined(own.less, " and "), name));
  }
}

ChosenTemplate choose_template(const std::string& file,
                               const std::shared_ptr<const Tokenizer>& tokenizer,
                               DataFacts& facts) {
  ChosenTemplate chosen;
  const OwnTemplate own = own_template(file);
  const auto fits = [&](const ChatTemplate& one) {
    const bool marks_turns = std::any_of(
        one.tokens.begin(), one.tokens.end(),
        [&](const std::string& token) { return one.user.before.find(token) != std::string::npos; });
    return marks_turns && ChatEncoder(one, "", tokenizer).missing_tokens().empty();
  };
  const auto name = [&](const ChatTemplate& one, const std::string& why) {
    chosen.kind.style.name = one.name;
    facts.keys.push_back({"template", toml_string(one.name), why, ""});
  };
  if (own.known != nullptr) {
    name(*own.known, "what the chat template in " + own.file + " writes");
    add_own_texts(own, chosen.kind, facts);
    tell_differences(own, "template = \"" + own.known->name + "\"", facts);
    return chosen;
  }
  if (!own.file.empty()) {
    chosen.is_open = true;
    const std::string pattern =
        own.pattern ? "one that writes its turns: " + pattern_toml(*own.pattern)
                    : "a text with {content} for each role: " + pattern_toml(plain_pattern(""));
    facts.keys.push_back(
        {"template", toml_string(all_chat_templates()[0].name), "",
         fmt::format("the tokenizer's own template in {} is none that is known ({}): {}. Name the "
                     "one that writes the same, or {}",
                     own.file, joined(tandem::words_of(chat_template_words())), own.shown,
                     pattern)});
    if (own.pattern) {
      add_own_texts(own, chosen.kind, facts);
      tell_differences(own, "the pattern", facts);
    }
    return chosen;
  }
  std::vector<std::string> others;
  const ChatTemplate* first = nullptr;
  for (const ChatTemplate& one : all_chat_templates()) {
    if (!fits(one)) continue;
    if (first == nullptr)
      first = &one;
    else
      others.push_back(one.name);
  }
  if (first != nullptr) {
    name(*first, "no file states one; the tokenizer has the tokens of this one" +
                     (others.empty() ? "" : ", and those of " + joined(others)));
    return chosen;
  }
  chosen.kind.style = plain_pattern(end_token(file, *tokenizer));
  facts.keys.push_back({"template", pattern_toml(chosen.kind.style),
                        "no file states one, and the tokenizer has the tokens of none: a plain "
                        "pattern",
                        ""});
  return chosen;
}

/// How long the first conversations are, and where their answers begin, in tokens.
struct Measured {
  std::vector<std::int64_t> lengths, answers;
};

Measured measure(const DataFacts& facts, const ChatEncoder& encoder) {
  Measured found;
  ChatEncoder::Scratch scratch;
  ChatTokens tokens;
  std::int64_t lines = 0;
  each_line(facts.train.at(0).paths, [&](const std::string& path, const DelimitedReader& reader) {
    try {
      if (!encoder.encode(read_conversation(path, reader.line(), reader.fields()[0]), scratch,
                          tokens) &&
          !tokens.answers.empty()) {
        found.lengths.push_back(std::ssize(tokens.ids));
        found.answers.push_back(static_cast<std::int64_t>(tokens.answers[0].begin));
      }
    } catch (const Error&) {  // training names the line
    }
    return ++lines < most_measured;
  });
  return found;
}

void choose_length(const std::vector<InputFacts>& inputs, const Measured& measured,
                   DataFacts& facts) {
  const std::int64_t fixed = length_of_rows(inputs);
  const std::int64_t most = most_positions(inputs, facts, most_usual_length);
  facts.chose_length = fixed < 0;
  std::int64_t length = std::min(most, length_unmeasured);
  std::string why = "the model leaves it free: a usual length, at most the number of positions";
  if (!measured.lengths.empty()) {
    const std::int64_t longest =
        *std::max_element(measured.lengths.begin(), measured.lengths.end());
    length = std::min(most, (longest + length_step - 1) / length_step * length_step);
    why = fmt::format("the longest of the first {} conversations has {} tokens; at most {}",
                      measured.lengths.size(), longest, most);
  }
  if (fixed > 0) {
    length = fixed;
    why = "what the model takes";
  }
  length = std::max<std::int64_t>(length, 2);
  facts.keys.push_back({"length", std::to_string(length), fixed == 0 ? "" : why,
                        fixed == 0 ? "how many tokens a sample has" : ""});
  for (ArrayFacts& array : facts.arrays) array.sample.shape[0] = length;

  std::int64_t all = 0, cut = 0, cut_tokens = 0, without = 0;
  for (std::size_t i = 0; i < measured.lengths.size(); ++i) {
    all += measured.lengths[i];
    without += measured.answers[i] >= length ? 1 : 0;
    if (measured.lengths[i] <= length) continue;
    ++cut;
    cut_tokens += measured.lengths[i] - length;
  }
  if (cut > 0) {
    facts.notes.push_back(fmt::format(
        "{} of {} conversations are longer than {} tokens, and lose their ends: {:.3g} % of the "
        "tokens; data.too_long = \"skip\" leaves such conversations out",
        cut, measured.lengths.size(), length,
        100 * static_cast<double>(cut_tokens) / static_cast<double>(all)));
  }
  if (without > 0) {
    facts.keys.push_back({"on_bad", "\"skip\"",
                          fmt::format("{} of the first {} prompts are as long as a sample: nothing "
                                      "of their answers is left",
                                      without, measured.lengths.size()),
                          ""});
  }
}

void fit_chat(const std::vector<InputFacts>& inputs, DataFacts& facts) {
  const std::string tokenizer_file = tokenizer_near(facts);
  take_tokenizer(tokenizer_file,
                 "there is no tokenizer.json next to the model or the data: name the model's, such "
                 "as tokenizer = \"../folder/tokenizer.json\"",
                 inputs, facts);
  Measured measured;
  const std::int64_t rows = rows_for_ids(inputs);
  std::int64_t ids = std::max<std::int64_t>(rows, 2);
  if (tokenizer_file.empty()) {
    facts.keys.push_back(
        {"template", toml_string(all_chat_templates()[0].name), "",
         "the one of the model: " + joined(tandem::words_of(chat_template_words()))});
  } else {
    const std::shared_ptr<const Tokenizer> tokenizer = Tokenizer::read(tokenizer_file);
    ids = rows > 0 ? std::min(tokenizer->size(), rows) : tokenizer->size();
    const ChosenTemplate chosen = choose_template(tokenizer_file, tokenizer, facts);
    if (!chosen.is_open) {
      measured =
          measure(facts, ChatEncoder(chat_template_of(chosen.kind), chosen.kind.system, tokenizer));
    }
  }
  choose_length(inputs, measured, facts);
  for (ArrayFacts& array : facts.arrays) {
    array.numbers.add(0);
    array.numbers.add(static_cast<double>(ids - 1));
    array.is_unread = true;
  }
  facts.arrays.at(1).numbers.add(static_cast<double>(ignored_target));
  add_mask_array(inputs, "1 for tokens, 0 for what fills a sample up", facts);
}

}  // namespace

DataLook chat() {
  return {.kind = "chat",
          .takes = [](const std::string&) { return false; },  // a jsonl file turns out to be one
          .look = look_at_chat,
          .fit = fit_chat};
}

}  // namespace tandem::api::looks
