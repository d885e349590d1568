#include "api/init/data/jinja_text.h"

#include <algorithm>

#include "engine/formats/tokenizer/utf8.h"

namespace tandem::api {
namespace {

constexpr std::string_view white = " \t\r\n\v\f";

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

void strip_end(std::string& text, std::string_view what) {
  const std::size_t last = text.find_last_not_of(what);
  text.resize(last == std::string::npos ? 0 : last + 1);
}

class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {
    if (text_.ends_with('\n')) text_.remove_suffix(1);
  }

  std::optional<std::vector<JinjaPart>> split() {
    while (at_ < text_.size()) {
      const std::size_t tag = next_tag();
      std::string text(text_.substr(at_, tag - at_));
      at_ = tag;
      if (tag < text_.size()) leave_out_before_tag(text);
      if (!text.empty()) parts_.push_back({.kind = JinjaPart::Kind::text, .text = text});
      if (tag < text_.size() && !take_tag()) return std::nullopt;
    }
    return std::move(parts_);
  }

 private:
  std::size_t next_tag() const {
    for (std::size_t at = at_; at + 1 < text_.size(); ++at) {
      if (text_[at] == '{' && std::string_view("{%#").find(text_[at + 1]) != std::string_view::npos)
        return at;
    }
    return text_.size();
  }

  void leave_out_before_tag(std::string& text) const {
    const char kind = text_[at_ + 1];
    const char sign = at_ + 2 < text_.size() ? text_[at_ + 2] : ' ';
    if (sign == '-') return strip_end(text, white);
    if (kind == '{' || sign == '+') return;
    const std::size_t line = text.rfind('\n');
    const std::size_t begin = line == std::string::npos ? 0 : line + 1;
    if (begin == 0 && !starts_line_) return;
    if (text.find_first_not_of(" \t", begin) == std::string::npos) text.resize(begin);
  }

  /// Goes behind the end of a tag, and the white space there that is left out.
  void leave(std::size_t end, bool is_output, bool strips, bool keeps) {
    at_ = end;
    starts_line_ = false;
    const auto step = [&] { starts_line_ = text_[at_++] == '\n'; };
    if (strips) {
      while (at_ < text_.size() && white.find(text_[at_]) != std::string_view::npos) step();
    } else if (!is_output && !keeps && at_ < text_.size() && text_[at_] == '\n') {
      step();
    }
  }

  bool take_tag() {
    const char kind = text_[at_ + 1];
    if (kind == '#') {
      const std::size_t end = text_.find("#}", at_ + 2);
      if (end == std::string_view::npos) return false;
      leave(end + 2, false, text_[end - 1] == '-' && end > at_ + 2, text_[end - 1] == '+');
      return true;
    }
    JinjaPart part{.kind = kind == '{' ? JinjaPart::Kind::output : JinjaPart::Kind::block,
                   .text = ""};
    const std::string_view close = kind == '{' ? "}}" : "%}";
    at_ += 2;
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
    int open = 0;  // brackets
    while (at_ < text_.size()) {
      const std::string_view rest = text_.substr(at_);
      const char c = rest[0];
      const bool is_signed = (c == '-' || c == '+') && rest.substr(1).starts_with(close);
      if (open == 0 && (is_signed || rest.starts_with(close))) {
        leave(at_ + (is_signed ? 3 : 2), kind == '{', c == '-' && is_signed, c == '+' && is_signed);
        parts_.push_back(std::move(part));
        return true;
      }
      if (white.find(c) != std::string_view::npos) {
        ++at_;
        continue;
      }
      if (c == '\'' || c == '"') {
        if (!take_string(part)) return false;
        continue;
      }
      if (is_letter(c) || is_digit(c)) {
        std::size_t end = at_;
        while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
        part.words.push_back({is_digit(c) ? JinjaWord::Kind::number : JinjaWord::Kind::name,
                              std::string(text_.substr(at_, end - at_))});
        at_ = end;
        continue;
      }
      if (std::string_view("([{").find(c) != std::string_view::npos) ++open;
      if (std::string_view(")]}").find(c) != std::string_view::npos) --open;
      const bool is_pair = rest.starts_with("==") || rest.starts_with("!=") ||
                           rest.starts_with("<=") || rest.starts_with(">=") ||
                           rest.starts_with("//") || rest.starts_with("**");
      part.words.push_back({JinjaWord::Kind::sign, std::string(rest.substr(0, is_pair ? 2 : 1))});
      at_ += is_pair ? 2 : 1;
    }
    return false;
  }

  bool take_string(JinjaPart& part) {
    const char quote = text_[at_++];
    std::string text;
    while (at_ < text_.size() && text_[at_] != quote) {
      const char c = text_[at_++];
      if (c != '\\') {
        text += c;
        continue;
      }
      if (at_ == text_.size()) return false;
      take_escape(text);
    }
    if (at_++ >= text_.size()) return false;
    part.words.push_back({JinjaWord::Kind::string, std::move(text)});
    return true;
  }

  /// As Python reads what follows a backslash.
  void take_escape(std::string& to) {
    constexpr std::string_view letters = "ntrabfv\\'\"", meant = "\n\t\r\a\b\f\v\\'\"";
    const char c = text_[at_++];
    if (const std::size_t found = letters.find(c); found != std::string_view::npos) {
      to += meant[found];
      return;
    }
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    const std::string_view hex = text_.substr(at_, digits);
    const bool is_hex = digits > 0 && hex.size() == digits &&
                        hex.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
    if (is_hex) {
      const unsigned long code = std::stoul(std::string(hex), nullptr, 16);
      const bool is_character = code < 0xd800 || (code > 0xdfff && code <= 0x10ffff);
      append_character(to, is_character ? static_cast<char32_t>(code) : U'\ufffd');
      at_ += digits;
    } else if (c != '\n') {
      to.append(1, '\\').append(1, c);
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool starts_line_ = true;
  std::vector<JinjaPart> parts_;
};

}  // namespace

std::optional<std::vector<JinjaPart>> jinja_parts(std::string_view text) {
  return Splitter(text).split();
}

}  // namespace tandem::api
