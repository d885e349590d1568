// safetensors files: little-endian row-major tensors behind a JSON header.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/formats/files.h"
#include "engine/formats/named_tensor.h"

namespace tandem {

/// Writes and syncs the file. Tensors keep their order, except that larger elements come first so
/// that every tensor is aligned to its element size. Throws Error{usage} on a repeated or reserved
/// name, Error{runtime} where writing fails.
WrittenFile write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                              const std::map<std::string, std::string>& metadata = {});

/// A validated file, mapped into memory. Throws Error{data} with the file and the tensor where the
/// header or an offset is wrong: header above 100 MB, duplicate names, holes, overlaps, sizes that
/// do not match shapes, bytes after the last tensor, element types that Tandem does not store.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  /// In order of their place in the file. Views of the mapping (copies where misaligned), valid as
  /// long as the tensor itself lives.
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  /// Null where there is none of that name.
  const HostTensor* find(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::vector<NamedTensor> tensors_;
  std::map<std::string, std::string> metadata_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace tandem
