#include "api/c/texts.h"

#include <charconv>
#include <cstddef>

#include "api/c/guarded.h"

namespace tandem::c_library {

std::vector<std::string> texts_of(const TandemTexts& texts, const char* name) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < texts.count; ++i) {
    const char* const text = texts.items == nullptr ? nullptr : texts.items[i];
    if (text == nullptr)
      throw bad_argument(name, "text " + std::to_string(i) + " of this list is NULL");
    result.emplace_back(text);
  }
  return result;
}

std::vector<std::pair<std::string, std::int64_t>> sizes_of(const TandemTexts& texts,
                                                           const char* name) {
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  std::vector<Diagnostic> problems;
  for (const std::string& text : texts_of(texts, name)) {
    const std::size_t equals = text.rfind('=');
    std::int64_t size = 0;
    const char* const end = text.data() + text.size();
    const bool has_number = equals != std::string::npos && equals > 0;
    const auto read = std::from_chars(has_number ? text.data() + equals + 1 : end, end, size);
    if (read.ec == std::errc() && read.ptr == end) {
      sizes.emplace_back(text.substr(0, equals), size);
      continue;
    }
    problems.push_back({.message = "not a size of a dimension",
                        .path = name,
                        .expected = "NAME=NUMBER",
                        .got = "\"" + text + "\""});
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  return sizes;
}

}  // namespace tandem::c_library
