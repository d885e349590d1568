// TFRecord files: byte strings one after the other, each with its length and checksums.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

/// length (8 bytes, little endian), its masked checksum, the bytes, their masked checksum.
std::string tf_record(std::string_view bytes);

/// Records of a file's text one after the other.
class TfRecords {
 public:
  explicit TfRecords(std::string_view text) : text_(text) {}

  /// Nothing at the end, and where the rest is torn or damaged.
  std::optional<std::string_view> next();
  /// Where the record begins that `next` would give.
  std::size_t offset() const { return offset_; }

 private:
  std::string_view text_;
  std::size_t offset_ = 0;
};

}  // namespace tandem
