#include "engine/data/tokens/token_sequence.h"

#include <algorithm>
#include <cstring>

#include "engine/graph/error.h"

namespace tandem {
namespace {

constexpr std::size_t bytes_at_a_time = std::size_t{1} << 16;

template <class Element>
void widen(const std::uint8_t* from, std::int64_t count, std::int64_t* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    Element id;
    std::memcpy(&id, from + static_cast<std::size_t>(i) * sizeof id, sizeof id);
    to[i] = static_cast<std::int64_t>(id);
  }
}

}  // namespace

TokenFile::TokenFile(const std::string& path, TokenElement element, std::int64_t header_bytes)
    : file_(path),
      element_bytes_(element == TokenElement::uint16 ? 2 : 4),
      header_bytes_(header_bytes) {
  const auto bytes = static_cast<std::int64_t>(file_.size());
  const std::int64_t of_ids = bytes - header_bytes;
  if (of_ids >= 0 && of_ids % element_bytes_ == 0) {
    tokens_ = of_ids / element_bytes_;
    return;
  }
  Diagnostic d{.message = "the file is no list of token ids", .file = path};
  d.expected = std::to_string(header_bytes) + " bytes and " + std::to_string(element_bytes_) +
               " for each id";
  d.got = std::to_string(bytes) + " bytes";
  d.fix = std::string("data.element = ") +
          (element == TokenElement::uint16 ? "\"uint32\"" : "\"uint16\"") +
          " if ids are stored so; a file that is still being written can be copied first";
  throw Error(ErrorKind::data, std::move(d));
}

void TokenFile::read(std::int64_t first, std::int64_t count, std::int64_t* to) const {
  std::uint8_t buffer[bytes_at_a_time];
  const auto most = static_cast<std::int64_t>(bytes_at_a_time) / element_bytes_;
  while (count > 0) {
    const std::int64_t here = std::min(count, most);
    const auto bytes = static_cast<std::size_t>(here * element_bytes_);
    const auto offset = static_cast<std::uint64_t>(header_bytes_ + first * element_bytes_);
    if (file_.read_at(offset, buffer, bytes) < bytes) {
      throw Error(ErrorKind::data,
                  Diagnostic{.message = "the file has become shorter since the data was opened",
                             .file = file_.path(),
                             .expected = std::to_string(file_.size()) + " bytes"});
    }
    if (element_bytes_ == 2)
      widen<std::uint16_t>(buffer, here, to);
    else
      widen<std::uint32_t>(buffer, here, to);
    first += here;
    to += here;
    count -= here;
  }
}

std::string TokenFile::place(std::int64_t token) const {
  return "token " + std::to_string(token) + ", at byte " +
         std::to_string(header_bytes_ + token * element_bytes_);
}

void TokenList::read(std::int64_t first, std::int64_t count, std::int64_t* to) const {
  std::copy_n(ids_.begin() + static_cast<std::ptrdiff_t>(first), count, to);
}

}  // namespace tandem
