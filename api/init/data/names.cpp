// Interprets names of files and arrays: which part of the data they hold, and whether they are
// labels.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "api/init/data/data_look.h"
#include "api/init/fields.h"

namespace tandem::api {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string without_gz(const std::string& path) {
  return path.ends_with(".gz") ? path.substr(0, path.size() - 3) : path;
}

std::vector<std::string> words_in(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

const std::set<std::string, std::less<>>& held_out_words() {
  static const std::set<std::string, std::less<>> words{
      "test", "tests", "testing", "valid", "validation", "val",     "eval",
      "dev",  "held",  "heldout", "t10k",  "evaluation", "holdout", "oot"};
  return words;
}
const std::set<std::string, std::less<>>& training_words() {
  static const std::set<std::string, std::less<>> words{"train", "training"};
  return words;
}
const std::set<std::string, std::less<>>& format_words() {
  static const std::set<std::string, std::less<>> words{"idx",  "idx1",  "idx2", "idx3",
                                                        "idx4", "ubyte", "npy",  "gz"};
  return words;
}

bool has_word(const std::string& name, const std::set<std::string, std::less<>>& of) {
  const std::vector<std::string> words = words_in(lower(name));
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return of.contains(word); });
}

/// Whether a word consists of one of `of` and a number: "train2".
bool has_numbered(const std::vector<std::string>& words,
                  const std::set<std::string, std::less<>>& of) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    const std::size_t digits = word.find_last_not_of("0123456789") + 1;
    return digits > 0 && of.contains(word.substr(0, digits));
  });
}

}  // namespace

std::string stem_of(const std::string& path) {
  return std::filesystem::path(without_gz(lower(path))).stem().string();
}

bool has_ending(const std::string& path, std::initializer_list<std::string_view> endings) {
  const std::string name = without_gz(lower(path));
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

bool names_held_out(const std::string& name) {
  const std::vector<std::string> words = words_in(lower(name));
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "hold" && words[i + 1] == "out") return true;
  }
  return has_word(name, held_out_words()) || has_numbered(words, held_out_words());
}
bool names_training(const std::string& name) {
  return has_word(name, training_words()) || has_numbered(words_in(lower(name)), training_words());
}

std::string shown_names(const std::vector<std::string>& files,
                        const std::function<std::string(const std::string&)>& shown) {
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, files.size()); ++i)
    text += (i > 0 ? ", " : "") + shown(files[i]);
  return text +
         (files.size() > most ? " and " + std::to_string(files.size() - most) + " more" : "");
}

bool is_text(const std::string& name) {
  if (name.find('\0') != std::string::npos) return false;
  for (std::size_t i = 0; i < name.size();) {
    const auto first = static_cast<unsigned char>(name[i]);
    const std::size_t more = first < 0x80                    ? 0
                             : first >= 0xc2 && first < 0xe0 ? 1
                             : first >= 0xe0 && first < 0xf0 ? 2
                             : first >= 0xf0 && first < 0xf5 ? 3
                                                             : name.size();
    if (more >= name.size() - i) return false;
    for (std::size_t k = 1; k <= more; ++k) {
      if ((static_cast<unsigned char>(name[i + k]) & 0xc0) != 0x80) return false;
    }
    i += more + 1;
  }
  return true;
}

bool names_label(const std::string& name) {
  static const std::set<std::string, std::less<>> words{
      "label",  "labels",  "target", "targets", "y",      "class",   "classes", "click",
      "clicks", "clicked", "mask",   "masks",   "answer", "answers", "outcome", "rating"};
  return has_word(name, words);
}

void mark_labels(const std::vector<InputFacts>& inputs, const std::vector<std::string>& outputs,
                 DataFacts& facts) {
  static const std::set<std::string, std::less<>> often_predicted{
      "price",  "prices",  "cost",     "sales",     "salary",  "revenue", "demand", "score",
      "scores", "quality", "survived", "diagnosis", "species", "churn",   "churned"};
  for (ArrayFacts& array : facts.arrays) array.is_label = names_label(array.name);
  const auto is_label = [](const ArrayFacts& array) { return array.is_label; };
  const auto has_labels = [&] {
    return std::any_of(facts.arrays.begin(), facts.arrays.end(), is_label);
  };
  const auto is_one_of = [](const std::string& name, const auto& all, const auto& name_of_item) {
    return std::any_of(all.begin(), all.end(), [&](const auto& item) {
      return plain_name(name_of_item(item)) == plain_name(name);
    });
  };
  const auto is_input = [&](const ArrayFacts& array) {
    return is_one_of(array.name, inputs, [](const InputFacts& input) { return input.name; });
  };
  if (has_labels()) return;
  for (ArrayFacts& array : facts.arrays) {
    array.is_label =
        !is_input(array) &&
        is_one_of(array.name, outputs, [](const std::string& output) { return output; });
  }
  if (has_labels()) return;
  const auto mark_the_only = [&](const auto& is_candidate) {
    std::vector<ArrayFacts*> candidates;
    for (ArrayFacts& array : facts.arrays) {
      if (!array.columns.empty() && !is_input(array) && is_candidate(array))
        candidates.push_back(&array);
    }
    if (candidates.size() == 1) candidates[0]->is_label = true;
    return candidates.size() == 1;
  };
  if (mark_the_only([](const ArrayFacts& array) { return has_word(array.name, often_predicted); }))
    return;
  // A column of yes and no answers.
  mark_the_only([](const ArrayFacts& array) {
    static const std::set<std::vector<std::string>> answers{
        {"no", "yes"}, {"false", "true"}, {"n", "y"}, {"f", "t"}};
    std::vector<std::string> words = words_of(array);
    if (array.has_few_gaps()) std::erase(words, "");
    for (std::string& word : words) word = lower(word);
    return answers.contains(words);
  });
}

std::string without_split(const std::string& name) {
  std::string kept;
  for (const std::string& word : words_in(lower(name))) {
    if (held_out_words().contains(word) || training_words().contains(word) ||
        format_words().contains(word))
      continue;
    kept += (kept.empty() ? "" : "_") + word;
  }
  return kept.empty() ? "data" : kept;
}

}  // namespace tandem::api
