// Typed access to a checked configuration tree: absent and invalid values keep the default given.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/config/keys/config_check.h"
#include "engine/config/keys/config_names.h"

namespace tandem {

class MovedPaths;  // engine/config/resume/moved_paths.h

/// One table of the tree, with its path for messages. Paths of files are relative to `folder`.
class TableReader {
 public:
  /// `notes` gets the values that are left out; null: they are not recorded. `moved`: where files
  /// with absolute paths are now; null: where the paths say.
  TableReader(const ConfigValue* value, std::string path, const std::string& folder,
              std::vector<Diagnostic>& errors, std::vector<Diagnostic>* notes = nullptr,
              const MovedPaths* moved = nullptr)
      : value_(value),
        path_(std::move(path)),
        folder_(folder),
        errors_(errors),
        notes_(notes),
        moved_(moved) {}

  bool exists() const { return value_ != nullptr; }
  const Where& where() const { return value_->where; }
  const std::string& path() const { return path_; }
  const ConfigValue* find(std::string_view key) const {
    return value_ ? value_->find(key) : nullptr;
  }
  /// The value, unless it is absent or an error was reported for it.
  const ConfigValue* valid(std::string_view key) const;

  void read(std::string_view key, bool& to) const;
  void read(std::string_view key, double& to) const;
  void read(std::string_view key, std::string& to) const;
  void read_path(std::string_view key, std::string& to) const;
  /// By the enum's table of names.
  template <class Enum>
  requires std::is_enum_v<Enum>
  void read(std::string_view key, Enum& to) const {
    const ConfigValue* value = valid(key);
    if (!value) return;
    for (const auto& choice : choices_of<Enum>) {
      if (choice.name == value->text) to = choice.value;
    }
  }

  TableReader table(std::string_view key) const;
  /// A reader for `value`, which is the value of `key` or is written in place of a table there.
  TableReader part(std::string_view key, const ConfigValue& value) const;
  /// A reader for the same table whose errors go to `errors`, and which records no notes.
  TableReader reporting_to(std::vector<Diagnostic>& errors) const {
    return {value_, path_, folder_, errors, nullptr, moved_};
  }
  /// The tables in a list.
  std::vector<TableReader> tables(std::string_view key) const;

  /// Absolute: names from the file are relative to its folder; from the command line, to the
  /// current folder where they exist there.
  std::string resolve(const ConfigValue& text) const { return resolve(text, folder_); }
  std::string resolve(const ConfigValue& text, const std::string& folder) const;
  void report(const Where& where, std::string_view key, std::string message,
              std::string expected = "", std::string got = "", std::string fix = "") const;
  /// Whether the command line has made a choice under which this value of the file means nothing:
  /// it is left out then, and noted. `why`: what would be reported of it otherwise.
  bool leaves_out(std::string_view key, const ConfigValue* choice, const std::string& why) const;
  std::vector<Diagnostic>& errors() const { return errors_; }
  const std::string& folder() const { return folder_; }

 private:
  const ConfigValue* value_;
  std::string path_;
  const std::string& folder_;
  std::vector<Diagnostic>& errors_;
  std::vector<Diagnostic>* notes_;
  const MovedPaths* moved_;
};

}  // namespace tandem
