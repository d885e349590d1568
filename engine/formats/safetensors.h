// safetensors files: little-endian row-major tensors after a JSON header.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/formats/files.h"
#include "engine/formats/named_tensor.h"

namespace tandem {

/// A tensor whose rows (of axis 0; a scalar is one row) are fetched while a file is written.
struct TensorSource {
  std::string name;
  TensorType type;
  /// Puts `rows` rows from `first` on at `to`, row-major; may be called by several threads.
  std::function<void(std::int64_t first, std::int64_t rows, void* to)> read;
  /// All of it, where it is in memory as it is written: then nothing is copied.
  const void* data = nullptr;

  std::int64_t rows() const { return type.shape.empty() ? 1 : type.shape[0]; }
  /// 0 where there are no elements.
  std::size_t row_bytes() const {
    return rows() > 0 ? type.bytes() / static_cast<std::size_t>(rows()) : 0;
  }
};
/// Views the tensor, which has to outlive the result.
TensorSource source_of(const NamedTensor& tensor);
std::vector<TensorSource> sources_of(const std::vector<NamedTensor>& tensors);

/// Bytes fetched at a time from a source, the extra memory that writing takes.
constexpr std::size_t source_range_bytes = std::size_t{8} << 20;

/// The order in which a file has them and its writer reads them: larger elements come first, so
/// that every tensor is aligned to its element size.
std::vector<const TensorSource*> in_file_order(const std::vector<TensorSource>& tensors);

/// Writes and syncs the file. Tensors keep their order, but for `in_file_order`. Throws
/// Error{usage} on a repeated or reserved name, Error{runtime} where writing fails. The first
/// tensor lies at a multiple of `alignment`.
WrittenFile write_safetensors(const std::string& path, const std::vector<TensorSource>& tensors,
                              const std::map<std::string, std::string>& metadata = {},
                              std::size_t alignment = 8);
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
  /// Where the first tensor lies in the file.
  std::uint64_t data_offset() const { return data_offset_; }

 private:
  std::vector<NamedTensor> tensors_;
  std::map<std::string, std::string> metadata_;
  std::uint64_t data_offset_ = 0;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace tandem
