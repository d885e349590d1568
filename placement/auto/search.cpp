#include "placement/auto/search.h"

#include <algorithm>

namespace tandem {
namespace {

constexpr std::size_t climbs = 3;    // starts that are improved, best first
constexpr std::size_t reliefs = 2;   // starts that are made to fit, fastest first
constexpr double worthwhile = 1e-3;  // part of the time: gaining less is not worth a rule

class Search {
 public:
  explicit Search(const AutoProblem& problem) : problem_(problem) {}

  AutoResult run(const std::vector<AutoChoices>& starts) {
    std::vector<AutoResult> ranked;
    for (const AutoChoices& start : starts) {
      if (const auto score = ask(start)) ranked.push_back({start, *score, false});
    }
    std::vector<AutoResult> too_large;
    for (const AutoResult& start : ranked) {
      if (start.score.possible && start.score.overflow > 0) too_large.push_back(start);
    }
    std::stable_sort(
        too_large.begin(), too_large.end(),
        [](const AutoResult& a, const AutoResult& b) { return a.score.seconds < b.score.seconds; });
    if (too_large.size() > reliefs) too_large.resize(reliefs);
    for (const AutoResult& start : too_large) ranked.push_back(relieve(start));
    std::stable_sort(ranked.begin(), ranked.end(), [](const AutoResult& a, const AutoResult& b) {
      return better(a.score, b.score);
    });
    AutoResult best = ranked.front();
    for (std::size_t i = 0; i < std::min(climbs, ranked.size()) && !exhausted_; ++i) {
      if (!ranked[i].score.possible) break;
      AutoResult climbed = climb(ranked[i]);
      if (i == 0 || better(climbed.score, best.score)) best = std::move(climbed);
    }
    return best;
  }

 private:
  std::optional<AutoScore> ask(const AutoChoices& choices) {
    if (exhausted_) return std::nullopt;
    const std::optional<AutoScore> score = problem_.score(choices);
    exhausted_ = !score;
    return score;
  }

  // Makes a start fit: takes the moves that cost the least time for the bytes they free, one after
  // the other.
  AutoResult relieve(const AutoResult& start) {
    struct Move {
      std::size_t group, option;
      double price;
    };
    const AutoScore& from = start.score;
    std::vector<Move> moves;
    for (std::size_t g = 0; g < start.choices.size(); ++g) {
      for (std::size_t o = 0; o < problem_.options[g].size(); ++o) {
        if (problem_.options[g][o] == start.choices[g]) continue;
        AutoChoices next = start.choices;
        next[g] = problem_.options[g][o];
        const std::optional<AutoScore> score = ask(next);
        if (!score) break;
        if (!score->possible || score->overflow >= from.overflow) continue;
        const double freed = from.overflow - score->overflow;
        moves.push_back({g, o, (score->seconds - from.seconds) / freed});
      }
    }
    std::stable_sort(moves.begin(), moves.end(),
                     [](const Move& a, const Move& b) { return a.price < b.price; });
    AutoResult now = start;
    for (const Move& move : moves) {
      if (now.score.overflow <= 0) break;
      AutoChoices next = now.choices;
      next[move.group] = problem_.options[move.group][move.option];
      const std::optional<AutoScore> score = ask(next);
      if (!score) break;
      if (!score->possible || score->overflow >= now.score.overflow) continue;
      now.choices = std::move(next);
      now.score = *score;
    }
    return now;
  }

  AutoResult climb(AutoResult from) {
    now_ = std::move(from);
    const std::size_t groups = now_.choices.size();
    for (;;) {
      bool moved = false;
      for (std::size_t g = 0; g < groups; ++g) moved |= move_range(g, g + 1);
      if (!moved) {
        for (const std::size_t length : {2, 3, 4, 6, 8, 12}) {
          for (std::size_t g = 0; g + length <= groups && !moved; ++g)
            moved = move_range(g, g + length);
        }
      }
      for (std::size_t g = 1; g < groups && !moved; ++g)
        moved = move_range(0, g) || move_range(g, groups);
      if (!moved) moved = swap_any();
      if (!moved || exhausted_) break;
    }
    now_.finished = !exhausted_;
    return now_;
  }

  // Moves groups first..last-1 to each option that one of them has.
  bool move_range(std::size_t first, std::size_t last) {
    bool moved = false;
    std::vector<AutoChoice> targets;
    for (std::size_t g = first; g < last; ++g) {
      for (const AutoChoice& option : problem_.options[g]) {
        if (std::find(targets.begin(), targets.end(), option) == targets.end())
          targets.push_back(option);
      }
    }
    for (const AutoChoice& target : targets) {
      AutoChoices next = now_.choices;
      for (std::size_t g = first; g < last; ++g) next[g] = nearest(g, target);
      moved |= take(std::move(next));
    }
    return moved;
  }

  // The group's option that equals the target, or that runs on the same device.
  AutoChoice nearest(std::size_t group, const AutoChoice& target) const {
    const std::vector<AutoChoice>& options = problem_.options[group];
    const auto same = std::find(options.begin(), options.end(), target);
    if (same != options.end()) return *same;
    for (const AutoChoice& option : options) {
      if (option.run == target.run) return option;
    }
    return now_.choices[group];
  }

  bool swap_any() {
    const std::size_t groups = now_.choices.size();
    for (std::size_t a = 0; a < groups; ++a) {
      for (std::size_t b = a + 1; b < groups; ++b) {
        if (now_.choices[a] == now_.choices[b]) continue;
        AutoChoices next = now_.choices;
        next[a] = nearest(a, now_.choices[b]);
        next[b] = nearest(b, now_.choices[a]);
        if (take(std::move(next))) return true;
        if (exhausted_) return false;
      }
    }
    return false;
  }

  bool take(AutoChoices next) {
    if (next == now_.choices) return false;
    const std::optional<AutoScore> score = ask(next);
    if (!score || !better(*score, now_.score)) return false;
    if (score->possible == now_.score.possible && score->overflow == now_.score.overflow &&
        score->seconds > now_.score.seconds * (1 - worthwhile)) {
      return false;
    }
    now_.choices = std::move(next);
    now_.score = *score;
    return true;
  }

  const AutoProblem& problem_;
  AutoResult now_;
  bool exhausted_ = false;
};

}  // namespace

bool better(const AutoScore& a, const AutoScore& b) {
  if (a.possible != b.possible) return a.possible;
  if (a.overflow != b.overflow) return a.overflow < b.overflow;
  constexpr double noticeable = 1e-9;  // part of the time
  if (a.seconds < b.seconds * (1 - noticeable)) return true;
  if (b.seconds < a.seconds * (1 - noticeable)) return false;
  return a.traffic < b.traffic;
}

AutoResult search_placement(const AutoProblem& problem, const std::vector<AutoChoices>& starts) {
  return Search(problem).run(starts);
}

}  // namespace tandem
