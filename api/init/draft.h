// A train.toml that is made of guesses: each key with its value, the reason, or what is missing.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::api {

/// One key. `value` is TOML. Where `todo` says what is missing, the value is a suggestion, written
/// as a comment, or "", or several, each on a line of its own.
struct GuessedKey {
  std::string name;
  std::string value;
  std::string why;
  std::string todo;
};

/// "[data.train]"; "" stands for the keys before all sections.
struct GuessedSection {
  std::string name;
  std::vector<GuessedKey> keys;
};

/// Something that could not be guessed.
struct Todo {
  std::string key;  // "data.fields.image"
  std::string text;
  std::string line;  // "KEY=VALUE", as suggested; "": nothing is
};

/// A choice as a terminal shows it: "loss       [ … ]  (why)".
struct ToldChoice {
  std::string key;  // "data.fields.image"
  std::string text;
};

struct Draft {
  std::deque<GuessedSection> sections;  // in the order of the file; they stay where they are
  std::vector<std::string> notes;       // for people, of the whole
  std::vector<std::string> warnings;    // about the model; a run prints them, too
  std::vector<std::string> model_notes;
  std::vector<ToldChoice> files;  // the files that are trained on, and those that are held out

  /// The section of this name, which is added where there is none.
  GuessedSection& section(std::string_view name);
  const GuessedKey* find(std::string_view section, std::string_view key) const;
  std::vector<Todo> todos() const;
};

/// Those that matter most, without what is open.
std::vector<ToldChoice> told_choices(const Draft& draft);

/// `head`: lines of comment that it begins with.
std::string to_toml(const Draft& draft, const std::string& head);
/// Without control characters, which would end a comment or steer a terminal: names of arrays may
/// hold any.
std::string on_one_line(std::string text);
/// Comments of lines of about 100 characters.
std::string comment(const std::string& text);

}  // namespace tandem::api
