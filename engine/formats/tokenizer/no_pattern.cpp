// A build without PCRE2: unicode.h says what is missing and how to get it.
#include <stdexcept>

#include "engine/formats/tokenizer/pattern.h"
#include "engine/formats/tokenizer/unicode.h"

namespace tandem {

TextProblem pattern_problem() {
  return {"this build lacks PCRE2",
          "install libpcre2-dev (tools/setup.sh does) and build Tandem again"};
}

struct Pattern::Compiled {};

// A tokenizer is refused before it is asked for a pattern.
Pattern::Pattern(const std::string&) { throw std::invalid_argument(pattern_problem().what); }
Pattern::~Pattern() = default;
void Pattern::for_all(std::string_view, const std::function<void(const TextRange&)>&) const {}

}  // namespace tandem
