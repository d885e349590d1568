// The text of a policy under edit: its steps back and forth, and the file that it comes from.
#pragma once

#include <string>
#include <vector>

#include "api/commands/page/page_error.h"

namespace tandem::api {

/// A policy file as it is on the disk.
struct PolicyOnDisk {
  bool exists = false;
  std::string text, sha256;  // sha256: "" where the file does not exist
};

class EditedPolicy {
 public:
  /// Reads the file; `text` stands for one that does not exist yet.
  EditedPolicy(std::string path, const std::string& text);

  const std::string& path() const { return path_; }
  const std::string& text() const { return texts_[at_].text; }
  const std::string& saved() const { return saved_.text; }
  bool is_saved() const { return saved_.exists && text() == saved_.text; }
  bool exists() const { return saved_.exists; }
  const std::string& last_edit() const { return texts_[at_].what; }
  int revision() const { return revision_; }
  std::size_t undo_steps() const { return at_; }
  std::size_t redo_steps() const { return texts_.size() - 1 - at_; }

  /// Throws PageError "stale" where a page has seen another text.
  void check_revision(int seen) const;
  /// Another text as a step; equal text is none.
  void set(const std::string& text, const std::string& what);
  /// Throws PageError "refused" where there is no step.
  void undo();
  void redo();

  PolicyOnDisk on_disk() const;
  /// Whether the file is another one than was last read or written.
  bool has_changed(const PolicyOnDisk& now) const;
  /// Takes the file's text as a step; what it was read as is what `save` may replace.
  void reload();
  /// Writes the text. Throws PageError "file_changed" where the file is neither what was last read
  /// or written nor the version `over`.
  void save(const std::string* over);

 private:
  struct Step {
    std::string text, what;
  };

  std::string path_;
  std::vector<Step> texts_;
  std::size_t at_ = 0;
  int revision_ = 1;
  PolicyOnDisk saved_;
};

/// Lines as `{kind, before, after, text}`.
PageJson difference_json(const std::string& before, const std::string& after);

}  // namespace tandem::api
