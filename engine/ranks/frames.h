// The messages between ranks and the server of rank 0, as bytes on a connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// On the wire: "TNDM", a byte for the version, one for the kind, the content's length and the
/// content. Numbers have four bytes, the lowest first.
struct Frame {
  enum class Kind : std::uint8_t {
    hello = 1,  // from a rank: its number, how many it counts
    welcome,    // to a rank, nothing
    refused,    // to a rank: why
    put,        // from a rank: an exchange's name, its bytes
    all,        // to a rank: the bytes of all
    failed,     // from a rank: why it ends; to a rank: what has gone wrong for all
    leave,      // from a rank or to it: the sender ends as it should
    beat,       // from a rank and to it: the sender is alive
  };
  Kind kind = Kind::leave;
  std::string content;
};

std::string encode(Frame::Kind kind, std::string_view content = {});

/// Takes frames out of bytes as they come in.
class FrameReader {
 public:
  /// `most`: bytes of a content; a longer one is from a foreign program.
  explicit FrameReader(std::size_t most) : most_(most) {}
  void allow(std::size_t most) { most_ = most; }
  void add(std::string_view bytes) { bytes_ += bytes; }
  /// The next frame that is complete.
  std::optional<Frame> next();
  /// What came is no frame; nothing that comes after can be read.
  bool is_foreign() const { return is_foreign_; }

 private:
  std::size_t most_;
  std::string bytes_;
  bool is_foreign_ = false;
};

/// A content of numbers and texts.
void add_number(std::string& content, std::uint32_t number);
void add_text(std::string& content, std::string_view text);
/// Reads what the above have written; nothing where the content ends too early.
class ContentReader {
 public:
  explicit ContentReader(std::string_view content) : rest_(content) {}
  std::optional<std::uint32_t> number();
  std::optional<std::string> text();
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace tandem
