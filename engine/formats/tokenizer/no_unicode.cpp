// A build without utf8proc: unicode.h says what is missing and how to get it.
#include "engine/formats/tokenizer/unicode.h"
#include "engine/graph/error.h"

namespace tandem {

TextProblem unicode_problem() {
  return {"this build lacks utf8proc",
          "install libutf8proc-dev (tools/setup.sh does) and build Tandem again"};
}

// A tokenizer is refused before any of these is called.
[[noreturn]] static void refuse_unicode() {
  const TextProblem problem = unicode_problem();
  throw Error(ErrorKind::usage, Diagnostic{.message = problem.what, .fix = problem.fix});
}
std::string normalized(const std::string&, UnicodeForm) { refuse_unicode(); }
char32_t lower(char32_t) { refuse_unicode(); }
void append_lower(std::string&, char32_t) { refuse_unicode(); }
const char* category(char32_t) { refuse_unicode(); }
bool is_word_character(char32_t) { refuse_unicode(); }

}  // namespace tandem
