// A train.toml that is made of guesses: each key with its value, the reason, or what is missing.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::api {

/// One key. `value` is TOML. Where `todo` says what is missing, the value is a suggestion written
/// as a comment, or "", or several suggestions, each on a line of its own.
struct GuessedKey {
  std::string name;
  std::string value;
  std::string why;
  std::string todo;
};

/// A section such as "[data.train]"; the name "" is for the keys before all sections.
struct GuessedSection {
  std::string name;
  std::vector<GuessedKey> keys;
};

/// Something that could not be guessed.
struct Todo {
  std::string key;  // "data.fields.image"
  std::string text;
  std::string line;  // the suggested "KEY=VALUE"; "": there is none
};

/// A choice as a terminal shows it: "loss       [ … ]  (why)".
struct ToldChoice {
  std::string key;  // "data.fields.image"
  std::string text;
};

struct Draft {
  std::deque<GuessedSection> sections;  // in the order of the file; they stay where they are
  std::vector<std::string> notes;       // notes for people on the whole draft
  std::vector<std::string> warnings;    // about the model; a run prints them, too
  std::vector<std::string> model_notes;
  std::vector<ToldChoice> files;  // the training files and the held-out files

  /// The section of this name, which is added where there is none.
  GuessedSection& section(std::string_view name);
  const GuessedKey* find(std::string_view section, std::string_view key) const;
  std::vector<Todo> todos() const;
};

/// The most important choices, without open ones.
std::vector<ToldChoice> told_choices(const Draft& draft);

/// `head`: the comment lines at the top.
std::string to_toml(const Draft& draft, const std::string& head);
/// Replaces control characters, which would end a comment or control a terminal: names of arrays
/// may contain any.
std::string on_one_line(std::string text);
/// The text as comment lines of about 100 characters.
std::string comment(const std::string& text);

}  // namespace tandem::api
