// Patterns by PCRE2.
#include "engine/formats/tokenizer/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <ctime>

#include <algorithm>
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

// Limits of one call; without compiled code a step takes about ten times as long.
constexpr std::uint32_t most_steps = 10'000'000, most_interpreted_steps = 2'000'000;
constexpr std::size_t first_stack = std::size_t{32} << 10, largest_stack = std::size_t{64} << 20;
// Every place where a match may begin can cost a walk to the end of the text, which no limit of
// PCRE2 counts: one call tries so many places that it walks over this many bytes at most.
constexpr std::size_t bytes_of_call = 20'000'000;

template <class T, void (*release)(T*)>
struct Release {
  void operator()(T* value) const { release(value); }
};
using MatchContext =
    std::unique_ptr<pcre2_match_context, Release<pcre2_match_context, &pcre2_match_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Release<pcre2_jit_stack, &pcre2_jit_stack_free>>;

MatchContext copy_of(pcre2_match_context* limits) {
  MatchContext copy(pcre2_match_context_copy(limits));
  if (!copy) throw std::bad_alloc();
  return copy;
}

/// Bounds the time of all calls over a text: expressions that suit text read tens of megabytes a
/// second. Time in which a busy machine does not run this thread does not count.
class TimeLimit {
 public:
  explicit TimeLimit(std::size_t bytes)
      : most_(0.25 + 2e-7 * static_cast<double>(bytes)), start_(seconds_of(CLOCK_MONOTONIC)) {}

  void check() {
    constexpr int calls_between_looks = 4;
    if (++calls_ % calls_between_looks != 0) return;
    const double now = seconds_of(CLOCK_MONOTONIC);
    if (now - start_ < most_) return;
    const double worked = seconds_of(CLOCK_THREAD_CPUTIME_ID);  // slow to ask
    if (has_worked_ && worked - worked_ > most_)
      throw std::invalid_argument(
          "the tokenizer's pattern takes too long over this text: its time "
          "grows faster than the text");
    if (!has_worked_) worked_ = worked;
    has_worked_ = true;
  }

 private:
  static double seconds_of(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }

  double most_, start_, worked_ = 0;
  bool has_worked_ = false;
  int calls_ = 0;
};

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

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
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT,
                    &error, &at, context.get());
  if (compiled->code == nullptr)
    throw std::invalid_argument(error_text(error) + " at byte " + std::to_string(at));
  pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE);  // slower without, but as right
  compiled->limits = pcre2_match_context_create(nullptr);
  if (compiled->limits == nullptr) throw std::bad_alloc();
  pcre2_set_match_limit(compiled->limits, most_steps);
  compiled_ = std::move(compiled);
}

Pattern::~Pattern() = default;

void Pattern::for_all(std::string_view text, const std::function<void(const TextRange&)>& f) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create(1, nullptr), &pcre2_match_data_free);
  if (!data) throw std::bad_alloc();
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data.get());
  TimeLimit time(text.size());
  const std::size_t places = std::max<std::size_t>(1, bytes_of_call / (text.size() + 1));
  pcre2_match_context* limits = compiled_->limits;
  MatchContext own;  // where a call does not try all places
  if (places < text.size()) {
    own = copy_of(limits);
    limits = own.get();
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t last = places < text.size() - at ? at + places : text.size();
    const auto match = [&](pcre2_match_context* context, std::uint32_t options) {
      if (own) pcre2_set_offset_limit(context, last);
      return pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                         at, PCRE2_NO_UTF_CHECK | options, data.get(), context);
    };
    int found = match(limits, 0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
      const MatchContext larger = copy_of(limits);
      const JitStack stack(pcre2_jit_stack_create(first_stack, largest_stack, nullptr));
      pcre2_jit_stack_assign(larger.get(), nullptr, stack.get());
      found = match(larger.get(), 0);
    }
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
      const MatchContext interpreted = copy_of(limits);
      pcre2_set_match_limit(interpreted.get(), most_interpreted_steps);
      found = match(interpreted.get(), PCRE2_NO_JIT);
    }
    time.check();
    if (found == PCRE2_ERROR_NOMATCH) {
      if (last >= text.size()) return;
      at = last;
      while (at < text.size() && continues_character(text[at])) ++at;
      continue;
    }
    if (found < 0) throw std::invalid_argument("the tokenizer's pattern: " + error_text(found));
    const TextRange here{range[0], range[1]};
    if (here.end > here.begin) f(here);
    at = here.end;
    if (here.end == here.begin && at < text.size()) at += character_bytes(text[at]);
  }
}

}  // namespace tandem
