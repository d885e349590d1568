#include "engine/data/cells/alike_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "engine/data/cells/cell_number.h"
#include "engine/formats/count_text.h"

namespace tandem {
namespace {

constexpr std::size_t most_words_compared = 1'000'000;

/// Groups words by what `plain` makes of them. Words that are the same for `same` are one.
template <class Plain, class Same>
std::optional<AlikeWords> alike(std::span<const CountedWord> words, const Plain& plain,
                                const Same& same) {
  if (words.size() > most_words_compared) return std::nullopt;
  std::map<std::string, std::vector<const CountedWord*>> groups;
  for (const CountedWord& word : words) groups[std::string(plain(word.word))].push_back(&word);
  std::optional<AlikeWords> found;
  for (auto& [text, group] : groups) {
    const CountedWord& most = **std::max_element(
        group.begin(), group.end(),
        [](const CountedWord* a, const CountedWord* b) { return a->times < b->times; });
    for (const CountedWord* word : group) {
      if (same(word->word) == same(most.word)) continue;
      if (!found) found.emplace();
      ++found->words;
      if (word->times <= found->times) continue;
      found->word = word->word, found->times = word->times;
      found->other = most.word, found->other_times = most.times;
    }
  }
  return found;
}

bool has_blanks(const CountedWord& word) {
  return without_blanks(word.word).size() != word.word.size();
}

}  // namespace

std::optional<AlikeWords> alike_but_for_blanks(std::span<const CountedWord> words) {
  if (std::none_of(words.begin(), words.end(), has_blanks)) return std::nullopt;
  const auto as_it_is = [](std::string_view word) { return word; };
  return alike(words, without_blanks, as_it_is);
}

std::optional<AlikeWords> alike_but_for_case(std::span<const CountedWord> words) {
  const auto lower = [](std::string_view word) { return lower_text(without_blanks(word)); };
  return alike(words, lower, without_blanks);
}

std::string alike_text(const AlikeWords& alike, std::string_view what) {
  const auto times = [](std::int64_t count) {
    return count == 1 ? std::string("once") : fmt::format("{} times", count);
  };
  return fmt::format(
      "{} ({}) and {} ({}) {}{}", shown_cell(alike.word), times(alike.times),
      shown_cell(alike.other), times(alike.other_times), what,
      alike.words > 1 ? " (and " + count_text(alike.words - 1, "more word") + ")" : std::string());
}

}  // namespace tandem
