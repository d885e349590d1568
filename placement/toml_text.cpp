#include "placement/toml_text.h"

#include <algorithm>

namespace tandem {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

// Places are counted after the byte order mark that some editors begin a file with.
std::size_t start_of_text(std::string_view text) {
  return text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
}

std::size_t end_of_string(std::string_view text, std::size_t start) {
  const char quote = text[start];
  const bool literal = quote == '\'';
  const bool several_lines =
      text.size() - start >= 3 && text[start + 1] == quote && text[start + 2] == quote;
  std::size_t i = start + (several_lines ? 3 : 1);
  for (; i < text.size(); ++i) {
    if (text[i] == '\\' && !literal) {
      ++i;
    } else if (text[i] == quote) {
      if (!several_lines) return i + 1;
      if (i + 2 < text.size() && text[i + 1] == quote && text[i + 2] == quote) {
        i += 3;
        while (i < text.size() && text[i] == quote) ++i;  // quotes at the end of the content
        return i;
      }
    }
  }
  return text.size();
}

}  // namespace

std::size_t offset_of(std::string_view text, const Where& where) {
  if (where.line < 1 || where.column < 1) return std::string_view::npos;
  std::size_t offset = start_of_text(text);
  for (int line = 1; line < where.line; ++line) {
    const std::size_t end = text.find('\n', offset);
    if (end == std::string_view::npos) return std::string_view::npos;
    offset = end + 1;
  }
  for (int column = 1; column < where.column; ++column) {
    if (offset >= text.size()) return std::string_view::npos;
    ++offset;
    while (offset < text.size() && (static_cast<unsigned char>(text[offset]) & 0xC0) == 0x80) {
      ++offset;
    }
  }
  return offset < text.size() ? offset : std::string_view::npos;
}

std::size_t end_of_value(std::string_view text, std::size_t start) {
  if (text[start] == '"' || text[start] == '\'') return end_of_string(text, start);
  if (text[start] == '{' || text[start] == '[') {
    int depth = 0;
    for (std::size_t i = start; i < text.size();) {
      const char c = text[i];
      if (c == '"' || c == '\'') {
        i = end_of_string(text, i);
        continue;
      }
      if (c == '#') {
        i = std::min(text.find('\n', i), text.size());
        continue;
      }
      depth += c == '{' || c == '[';
      depth -= c == '}' || c == ']';
      ++i;
      if (depth == 0) return i;
    }
    return text.size();
  }
  std::size_t end = std::min(text.find_first_of(",}]#\n", start), text.size());
  while (end > start && (text[end - 1] == ' ' || text[end - 1] == '\t' || text[end - 1] == '\r')) {
    --end;
  }
  return end;
}

std::size_t skip_blank(std::string_view text, std::size_t start) {
  start = std::max(start, start_of_text(text));
  while (start < text.size()) {
    start = std::min(text.find_first_not_of(" \t\r\n", start), text.size());
    if (start == text.size() || text[start] != '#') break;
    start = std::min(text.find('\n', start), text.size());
  }
  return start;
}

std::size_t start_of_line(std::string_view text, std::size_t at) {
  const std::size_t end = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  return end == std::string_view::npos ? start_of_text(text) : end + 1;
}

std::size_t after_line(std::string_view text, std::size_t at) {
  const std::size_t end = text.find('\n', at);
  return end == std::string_view::npos ? text.size() : end + 1;
}

}  // namespace tandem
