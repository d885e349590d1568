// Files of data as values of keys: a name, a list, or a table of arrays; braces expand to several
// names.
#pragma once

#include <string>
#include <vector>

#include "engine/config/keys/key_visitor.h"
#include "engine/config/run_config.h"

namespace tandem {

/// The names that a text with braces expands to; empty where the braces are wrong, which is
/// reported.
std::vector<std::string> expand_names(const Found& found, const ConfigValue& text);

/// Both the kind and the folder that names are relative to are known once the value is read.
KeyForm files_form(std::vector<ArrayFiles>& member, const DataKind& kind, const std::string& root);

/// The key `files`.
template <class... Notes>
void visit_files(KeyVisitor& v, std::vector<ArrayFiles>& files, const DataKind& kind,
                 const std::string& root, const Notes&... notes) {
  v.key("files", files_form(files, kind, root),
        parts("[]", path_value, "a file; {0..9} and {a,b} stand for several"),
        parts(".*", path_value | list_value, "the file or files of this array"),
        parts(".*[]", path_value, "a file"), notes...);
}

}  // namespace tandem
