// Patterns by PCRE2.
#include "engine/formats/tokenizer/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdexcept>

#include "engine/formats/tokenizer/unicode.h"
#include "engine/formats/tokenizer/utf8.h"

namespace tandem {
namespace {

std::string error_text(int code) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(code, buffer, sizeof buffer) < 0) return "error of PCRE2";
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

TextProblem pattern_problem() { return {}; }

struct Pattern::Compiled {
  ~Compiled() {
    pcre2_code_free(code);
    pcre2_match_context_free(limits);
  }
  pcre2_code* code = nullptr;
  pcre2_match_context* limits = nullptr;
};

Pattern::Pattern(const std::string& expression) {
  if (const std::string part = unportable_part(expression); !part.empty())
    throw std::invalid_argument(part);
  auto compiled = std::make_unique<Compiled>();
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE at = 0;
  compiled->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at, context.get());
  if (compiled->code == nullptr)
    throw std::invalid_argument(error_text(error) + " at byte " + std::to_string(at));
  pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE);  // slower without, but as right
  compiled->limits = pcre2_match_context_create(nullptr);
  if (compiled->limits == nullptr) throw std::bad_alloc();
  pcre2_set_match_limit(compiled->limits, 10'000'000);
  compiled_ = std::move(compiled);
}

Pattern::~Pattern() = default;

void Pattern::for_all(std::string_view text, const std::function<void(const TextRange&)>& f) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create(1, nullptr), &pcre2_match_data_free);
  if (!data) throw std::bad_alloc();
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data.get());
  for (std::size_t at = 0; at < text.size();) {
    const auto match = [&](std::uint32_t options) {
      return pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                         at, PCRE2_NO_UTF_CHECK | options, data.get(), compiled_->limits);
    };
    int found = match(0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH) return;
    if (found < 0) throw std::invalid_argument("the tokenizer's pattern: " + error_text(found));
    const TextRange here{range[0], range[1]};
    if (here.end > here.begin) f(here);
    at = here.end;
    if (here.end == here.begin && at < text.size()) at += character_bytes(text[at]);
  }
}

}  // namespace tandem
