// The wire format of Protocol Buffers, as far as event files need it: fields are written in any
// order that the caller chooses, and scanned one by one.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// A message that is put together field by field. Zeros and empty texts are written, too.
class WireMessage {
 public:
  WireMessage& integer(int field, std::int64_t value) {
    head(field, 0);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  WireMessage& number(int field, double value) {
    head(field, 1);
    fixed(value);
    return *this;
  }
  WireMessage& number(int field, float value) {
    head(field, 5);
    fixed(value);
    return *this;
  }
  /// A text, bytes or a message.
  WireMessage& bytes(int field, std::string_view value) {
    head(field, 2);
    varint(value.size());
    text_ += value;
    return *this;
  }
  WireMessage& message(int field, const WireMessage& value) { return bytes(field, value.text_); }
  /// repeated double, packed.
  WireMessage& numbers(int field, const std::vector<double>& values) {
    WireMessage packed;
    for (const double value : values) packed.fixed(value);
    return message(field, packed);
  }

  const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t value) {
    for (; value > 127; value >>= 7) text_ += static_cast<char>(value | 128);
    text_ += static_cast<char>(value);
  }
  void head(int field, unsigned type) { varint(static_cast<unsigned>(field) << 3 | type); }
  /// Little endian, as all machines are that Tandem runs on.
  template <class T>
  void fixed(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    text_.append(bytes, sizeof value);
  }

  std::string text_;
};

/// A field of a message that is read: the integer of type 0, the bytes of the others.
struct WireField {
  int field = 0;
  unsigned type = 0;
  std::uint64_t integer = 0;
  std::string_view bytes;
};

/// Fields of a message one after the other.
class WireReader {
 public:
  explicit WireReader(std::string_view text) : text_(text) {}

  /// Nothing at the end, and where the rest is no message.
  std::optional<WireField> next() {
    std::uint64_t head = 0;
    WireField found;
    if (text_.empty() || !varint(head)) return std::nullopt;
    found.field = static_cast<int>(head >> 3);
    found.type = static_cast<unsigned>(head & 7);
    std::uint64_t size = 0;
    if (found.type == 0) return varint(found.integer) ? std::optional(found) : std::nullopt;
    if (found.type == 1) size = 8;
    if (found.type == 5) size = 4;
    if (found.type == 2 && !varint(size)) return std::nullopt;
    if (size > text_.size() || (found.type != 1 && found.type != 2 && found.type != 5))
      return std::nullopt;
    found.bytes = text_.substr(0, size);
    text_.remove_prefix(size);
    return found;
  }

 private:
  bool varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (text_.empty()) return false;
      const auto byte = static_cast<unsigned char>(text_.front());
      text_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) return true;
    }
    return false;
  }

  std::string_view text_;
};

}  // namespace tandem
