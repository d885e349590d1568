// The key data.tokenizer where it names a file.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "engine/config/keys/key_forms.h"

namespace tandem {

/// The path of the tokenizer file; for a folder, as save_pretrained writes one, the tokenizer.json
/// in it.
inline std::string tokenizer_in(std::string path) {
  namespace fs = std::filesystem;
  std::error_code none;
  return fs::is_directory(path, none) ? (fs::path(path) / "tokenizer.json").string()
                                      : std::move(path);
}

/// A path, made absolute; "" = none.
inline KeyForm tokenizer_path(std::string& member) {
  KeyForm form = path(member);
  form.read = [&member, read = std::move(form.read)](const Found& found) {
    read(found);
    if (!member.empty()) member = tokenizer_in(std::move(member));
  };
  return form;
}

}  // namespace tandem
