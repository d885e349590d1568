#include "placement/moves/proposed_rules.h"

#include <algorithm>

#include "placement/policy_text.h"
#include "placement/toml_text.h"

namespace tandem {
namespace {

/// A rule of a list of the text, or of the proposal, or of both.
struct Aligned {
  const char* list = "rules";
  bool is_there = false, is_wanted = false;
  RuleChange change = {};
  std::string behind = {};  // a new rule in its line: ",  # 188 operators"
};

/// What it says, however it is written.
std::string meaning(PolicyRule rule) {
  rule.why.clear();
  return to_toml(std::move(rule));
}

struct Line {
  std::string rule, behind, comment, meaning;
};

Line parts_of(const std::string& line) {
  Line parts;
  const std::size_t end = end_of_value(line, line.find('{'));
  const std::size_t comment = line.find("# ", end);
  parts.rule = line.substr(0, end);
  parts.behind = line.substr(end);
  if (comment != std::string::npos) parts.comment = line.substr(comment + 2);
  parts.meaning = meaning(policy_of_arguments({parts.rule}).rules.at(0));
  return parts;
}

/// Rules of one list next to lines, so that as many as possible stay; rules that go come first.
void align(const char* list, const PolicyRules& rules, const std::vector<Line>& lines,
           std::vector<Aligned>& all) {
  std::vector<std::string> have;
  for (const PolicyRule& rule : rules) have.push_back(meaning(rule));
  // common[i][j]: how many of the rules from i on and the lines from j on can stay.
  std::vector<std::vector<int>> common(have.size() + 1, std::vector<int>(lines.size() + 1, 0));
  for (std::size_t i = have.size(); i-- > 0;) {
    for (std::size_t j = lines.size(); j-- > 0;)
      common[i][j] = have[i] == lines[j].meaning ? common[i + 1][j + 1] + 1
                                                 : std::max(common[i + 1][j], common[i][j + 1]);
  }
  for (std::size_t i = 0, j = 0; i < have.size() || j < lines.size();) {
    Aligned& one = all.emplace_back();
    one.list = list;
    const bool both = i < have.size() && j < lines.size();
    if (both && have[i] == lines[j].meaning) {
      one.is_there = one.is_wanted = true;
      ++i, ++j;
    } else if (i < have.size() && (!both || common[i + 1][j] >= common[i][j + 1])) {
      one.is_there = true;
      one.change = {RuleChange::Kind::remove, list, to_toml(rules[i]), "", rules[i].where.line};
      ++i;
    } else {
      one.is_wanted = true;
      one.change = {RuleChange::Kind::add, list, lines[j].rule, lines[j].comment, 0};
      one.behind = lines[j].behind;
      ++j;
    }
  }
}

std::vector<Aligned> aligned(const ProposedRules& proposal, const std::string& text,
                             const std::string& path) {
  PolicyRules of_auto, own;
  for (PolicyRule& rule : parse_policy(text, path).rules)
    (rule.layer == Layer::automatic ? of_auto : own).push_back(std::move(rule));
  std::vector<Line> lines;
  for (const std::string& line : proposal.lines) lines.push_back(parts_of(line));
  std::vector<Aligned> all;
  align("auto", of_auto, proposal.keeps_rules ? lines : std::vector<Line>(), all);
  if (!proposal.keeps_rules) align("rules", own, lines, all);
  return all;
}

bool is_change(const Aligned& one) { return one.is_there != one.is_wanted; }

}  // namespace

std::vector<RuleChange> changes_to(const ProposedRules& proposal, const std::string& text,
                                   const std::string& path) {
  std::vector<RuleChange> changes;
  for (Aligned& one : aligned(proposal, text, path))
    if (is_change(one)) changes.push_back(std::move(one.change));
  return changes;
}

std::string with_changes(const ProposedRules& proposal, const std::string& text,
                         const std::string& path, const std::vector<int>& taken) {
  const std::vector<Aligned> all = aligned(proposal, text, path);
  PolicyText editor(text, path);
  editor.add_version();
  // From the last one on, so that the places of those before them stay.
  const auto count = [&](const char* list) {
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const Aligned& one) {
      return one.is_there && std::string_view(one.list) == list;
    }));
  };
  std::size_t places[] = {count("auto"), count("rules")};
  auto change = static_cast<int>(std::count_if(all.begin(), all.end(), is_change));
  for (std::size_t i = all.size(); i-- > 0;) {
    const Aligned& one = all[i];
    std::size_t& place = places[std::string_view(one.list) == "auto" ? 0 : 1];
    if (one.is_there) --place;
    if (!is_change(one)) continue;
    --change;
    if (std::find(taken.begin(), taken.end(), change) == taken.end()) continue;
    if (one.is_there)
      editor.remove(place, one.list);
    else
      editor.insert(one.list, place, one.change.rule, proposal.keeps_rules ? one.behind : ",");
  }
  return editor.finish(text);
}

}  // namespace tandem
