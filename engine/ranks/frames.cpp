#include "engine/ranks/frames.h"

#include <algorithm>

namespace tandem {
namespace {

constexpr std::string_view mark = "TNDM\2";  // with the version
constexpr std::size_t header_bytes = mark.size() + 1 + 4;

std::uint32_t number_at(std::string_view bytes) {
  std::uint32_t number = 0;
  for (int i = 3; i >= 0; --i)
    number = number << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  return number;
}

}  // namespace

void add_number(std::string& content, std::uint32_t number) {
  for (int i = 0; i < 4; ++i) content += static_cast<char>(number >> 8 * i & 0xff);
}

void add_text(std::string& content, std::string_view text) {
  add_number(content, static_cast<std::uint32_t>(text.size()));
  content += text;
}

std::optional<std::uint32_t> ContentReader::number() {
  if (rest_.size() < 4) return std::nullopt;
  const std::uint32_t number = number_at(rest_);
  rest_.remove_prefix(4);
  return number;
}

std::optional<std::string> ContentReader::text() {
  const std::optional<std::uint32_t> length = number();
  if (!length || rest_.size() < *length) return std::nullopt;
  std::string text(rest_.substr(0, *length));
  rest_.remove_prefix(*length);
  return text;
}

std::string encode(Frame::Kind kind, std::string_view content) {
  std::string bytes(mark);
  bytes += static_cast<char>(kind);
  add_text(bytes, content);
  return bytes;
}

std::optional<Frame> FrameReader::next() {
  // A foreign client is recognised by its first bytes, before it has sent a whole header.
  const std::size_t known = std::min(bytes_.size(), mark.size());
  if (std::string_view(bytes_).substr(0, known) != mark.substr(0, known)) is_foreign_ = true;
  if (is_foreign_ || bytes_.size() < header_bytes) return std::nullopt;
  const auto kind = static_cast<std::uint8_t>(bytes_[mark.size()]);
  const std::size_t length = number_at(std::string_view(bytes_).substr(mark.size() + 1));
  const auto last = static_cast<std::uint8_t>(Frame::Kind::beat);
  if (kind < 1 || kind > last || length > most_) {
    is_foreign_ = true;
    return std::nullopt;
  }
  if (bytes_.size() - header_bytes < length) return std::nullopt;
  Frame frame{static_cast<Frame::Kind>(kind), bytes_.substr(header_bytes, length)};
  bytes_.erase(0, header_bytes + length);
  return frame;
}

}  // namespace tandem
