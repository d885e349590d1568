#include "engine/train/group/start_checks.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "engine/formats/sha256.h"
#include "engine/train/group/gathered.h"

namespace tandem {
namespace {

// The first line that is not the same, as each has it.
std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b) {
  std::istringstream first(a), second(b);
  for (;;) {
    std::string x, y;
    const bool has_x = static_cast<bool>(std::getline(first, x));
    const bool has_y = static_cast<bool>(std::getline(second, y));
    if (!has_x && !has_y) return {};
    if (has_x == has_y && x == y) continue;
    return {has_x ? x : "nothing more", has_y ? y : "nothing more"};
  }
}

}  // namespace

void refuse_differences(Rendezvous& ranks, const std::vector<RankFact>& facts) {
  std::string hashes;
  for (const RankFact& fact : facts) hashes += sha256(fact.value.data(), fact.value.size());
  const std::vector<std::string> all = gathered(ranks, "what ranks have in common", hashes);
  std::vector<Diagnostic> problems;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    constexpr std::size_t width = 64;  // hexadecimal digits
    const auto hash_of = [&](std::size_t rank) { return all[rank].substr(i * width, width); };
    std::vector<std::size_t> others;
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      if (hash_of(rank) != hash_of(0)) others.push_back(rank);
    }
    if (others.empty()) continue;
    const std::vector<std::string> values = gathered(ranks, facts[i].name, facts[i].value);
    const auto [first, other] = first_difference(values[0], values[others[0]]);
    Diagnostic& d = problems.emplace_back();
    d.message = fmt::format("{} is not the same on rank 0 and rank {}", facts[i].name, others[0]);
    if (others.size() > 1) d.message += fmt::format(" ({} ranks differ)", others.size());
    d.expected = fmt::format("\"{}\", as on rank 0", first);
    d.got = fmt::format("\"{}\"", other);
    d.fix = facts[i].fix;
  }
  if (problems.empty()) return;
  if (ranks.rank() > 0) throw ErrorElsewhere(ErrorKind::usage, std::move(problems));
  throw Error(ErrorKind::usage, std::move(problems));
}

}  // namespace tandem
