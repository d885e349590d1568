// How a file of arrays is read into a data set.
#pragma once

#include "engine/data/array_set.h"

namespace tandem {

/// A file, and where its arrays go.
struct ArrayFile {
  const std::string& name;  // the array's, if the configuration gives one
  const std::string& path;
  const ArrayNames& wanted;
  ArraySet& to;
  std::vector<Diagnostic>& errors;

  /// Whether an array of the file is read; if not, the set records that the file has it.
  bool wants(std::string_view array) const;
};

/// Adds the arrays of a file to the set. Throws Error{data} with the file.
#define TANDEM_ARRAY_FORMAT(kind) void read_file(const kind&, const ArrayFile& file);
#include "engine/data/arrays/all_array_formats.inl"
#undef TANDEM_ARRAY_FORMAT

}  // namespace tandem
