#include "engine/formats/delimited.h"

#include <algorithm>
#include <cstring>

#include "engine/graph/error.h"

namespace tandem {
namespace {

constexpr std::size_t npos = std::string::npos;
constexpr std::size_t first_buffer = std::size_t{1} << 18;
constexpr std::size_t longest_row = std::size_t{1} << 24;
constexpr std::size_t most_fields = std::size_t{1} << 20;

}  // namespace

DelimitedReader::DelimitedReader(const std::string& path, char separator, bool quotes,
                                 std::uint64_t from, std::int64_t line)
    : path_(shown_path(path)),
      stream_(path, from),
      separator_(separator),
      quotes_(quotes),
      started_(from > 0),
      base_(from),
      next_line_(line) {
  buffer_.resize(first_buffer);
}

bool DelimitedReader::more() {
  if (ended_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, filled_ - begin_);
    filled_ -= begin_;
    base_ += begin_;
    begin_ = 0;
  }
  if (filled_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  const std::size_t got = stream_.read(buffer_.data() + filled_, buffer_.size() - filled_);
  filled_ += got;
  if (got == 0) ended_ = true;
  return got > 0;
}

std::size_t DelimitedReader::line_end() {
  std::size_t searched = 0;  // from begin_, which moves
  while (true) {
    const char* from = buffer_.data() + begin_ + searched;
    const std::size_t left = filled_ - begin_ - searched;
    if (const void* found = left > 0 ? std::memchr(from, '\n', left) : nullptr) {
      return static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data());
    }
    searched = filled_ - begin_;
    if (searched > longest_row) return npos;
    if (!more()) return filled_;
  }
}

void DelimitedReader::refuse_fields() const {
  throw Error(ErrorKind::data, Diagnostic{.message = "this row has too many fields",
                                          .file = path_,
                                          .line = static_cast<int>(line_),
                                          .expected = "at most " + std::to_string(most_fields)});
}

void DelimitedReader::split_plain(std::size_t end) {
  if (end > begin_ && buffer_[end - 1] == '\r') --end;
  const char* at = buffer_.data() + begin_;
  const char* const last = buffer_.data() + end;
  while (true) {
    const void* found =
        at < last ? std::memchr(at, separator_, static_cast<std::size_t>(last - at)) : nullptr;
    const char* stop = found ? static_cast<const char*>(found) : last;
    if (fields_.size() == most_fields) refuse_fields();
    fields_.emplace_back(at, static_cast<std::size_t>(stop - at));
    if (!found) return;
    at = stop + 1;
  }
}

std::size_t DelimitedReader::split_quoted() {
  // Places are relative to begin_, which `more` may move.
  spans_.clear();
  std::size_t at = 0;
  const auto size = [&] { return filled_ - begin_; };
  const auto have = [&](std::size_t place) {
    return place < size() || (size() <= longest_row && more() && place < size());
  };
  const auto byte = [&](std::size_t place) { return buffer_[begin_ + place]; };
  const auto fail = [&](const char* why) {
    problem_ = why;
    return npos;
  };
  std::int64_t lines = 1;
  while (true) {
    if (spans_.size() == most_fields) refuse_fields();
    Span& span = spans_.emplace_back(Span{at, at, false});
    if (have(at) && byte(at) == '"') {
      span.from = ++at;
      while (true) {
        if (!have(at)) return fail("a quote is not closed");
        if (byte(at) == '"') {
          if (!have(at + 1) || byte(at + 1) != '"') break;
          span.unescape = true;
          ++at;
        } else if (byte(at) == '\n') {
          ++lines;
        }
        ++at;
      }
      span.to = at++;
      if (have(at) && byte(at) == '\r' && (!have(at + 1) || byte(at + 1) == '\n')) ++at;
      if (have(at) && byte(at) != separator_ && byte(at) != '\n') {
        return fail("text after a closing quote");
      }
    } else {
      while (have(at) && byte(at) != separator_ && byte(at) != '\n') ++at;
      span.to = at;
      const bool ends = at == size() || byte(at) == '\n';
      if (ends && at > span.from && byte(at - 1) == '\r') --span.to;
    }
    if (at == size()) {
      if (size() > longest_row && !ended_) return fail("");
      break;
    }
    if (byte(at++) == '\n') break;
  }
  std::size_t escaped = 0;
  for (const Span& span : spans_) escaped += span.unescape ? span.to - span.from : 0;
  unescaped_.clear();
  unescaped_.reserve(escaped);  // so that the views stay
  for (const Span& span : spans_) {
    if (!span.unescape) {
      fields_.push_back(std::string_view(buffer_).substr(begin_ + span.from, span.to - span.from));
      continue;
    }
    const std::size_t start = unescaped_.size();
    for (std::size_t i = span.from; i < span.to; ++i) {
      unescaped_ += byte(i);
      if (byte(i) == '"') ++i;
    }
    fields_.push_back(std::string_view(unescaped_).substr(start));
  }
  next_line_ += lines;
  return begin_ + at;
}

bool DelimitedReader::find_text() {
  // Places are relative to begin_, which `more` may move.
  const auto have = [&](std::size_t place) {
    return begin_ + place < filled_ || (more() && begin_ + place < filled_);
  };
  const auto byte = [&](std::size_t place) { return buffer_[begin_ + place]; };
  std::size_t at = 0;
  std::int64_t lines = 0;
  while (have(at)) {
    const std::size_t line = at;
    if (byte(at) == '\r') ++at;
    if (!have(at)) break;
    if (byte(at) != '\n') {
      text_at_ = position() + line;
      return true;
    }
    ++at;
    ++lines;
    if (at > longest_row) {
      throw Error(ErrorKind::data, Diagnostic{.message = "empty lines without an end",
                                              .file = path_,
                                              .line = static_cast<int>(next_line_),
                                              .expected = "at most 16 MiB of them"});
    }
  }
  begin_ = filled_;
  next_line_ += lines;
  return false;
}

bool DelimitedReader::skip_line() {
  const std::size_t end = line_end();
  if (end == npos || end == filled_) return false;
  begin_ = end + 1;
  next_line_ = 1;
  return true;
}

void DelimitedReader::skip_byte_order_mark() {
  if (started_) return;
  started_ = true;
  while (filled_ < 3 && more()) {
  }
  if (std::string_view(buffer_).substr(0, std::min<std::size_t>(filled_, 3)) == "\xef\xbb\xbf")
    begin_ = 3;
}

void DelimitedReader::find_form(const TableHints& hints) {
  constexpr std::size_t looked_at = std::size_t{1} << 16;
  skip_byte_order_mark();
  while (filled_ - begin_ < looked_at && more()) {
  }
  const auto text = [&] { return std::string_view(buffer_).substr(begin_, filled_ - begin_); };
  constexpr std::string_view mark = "sep=";
  const std::string_view line = text().substr(0, text().find('\n'));
  const std::size_t rest = line.size() - std::min(line.size(), mark.size());
  if (line.starts_with(mark) && (rest == 1 || (rest == 2 && line.back() == '\r')) &&
      line.size() < text().size()) {
    separator_ = line[mark.size()];
    begin_ += line.size() + 1;
    ++next_line_;
    return;
  }
  const TableForm found = find_table_form(text(), ended_, hints);
  separator_ = found.separator;
  has_index_ = found.has_index;
}

bool DelimitedReader::next() {
  skip_byte_order_mark();
  fields_.clear();
  spans_.clear();
  problem_.clear();
  empty_line_ = false;
  if (position() >= end_ || (begin_ == filled_ && !more())) return false;
  const bool may_be_empty = buffer_[begin_] == '\n' || buffer_[begin_] == '\r';
  if (may_be_empty && position() >= text_at_ && !find_text()) return false;
  line_ = next_line_;
  if (position() < text_at_) {
    empty_line_ = true;
    fields_.emplace_back();
    begin_ += buffer_[begin_] == '\r' ? 2 : 1;
    ++next_line_;
    return true;
  }
  std::size_t past = npos;
  if (quotes_) past = split_quoted();
  if (past == npos) {
    // Without quotes, or where they are broken: the line as it stands.
    const std::size_t end = line_end();
    if (end == npos) {
      throw Error(ErrorKind::data, Diagnostic{.message = "this line is too long",
                                              .file = path_,
                                              .line = static_cast<int>(line_),
                                              .expected = "at most 16 MiB a line"});
    }
    fields_.clear();
    split_plain(end);
    past = std::min(end + 1, filled_);
    next_line_ = line_ + 1;
  }
  begin_ = past;
  return true;
}

}  // namespace tandem
