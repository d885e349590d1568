// `tandem policy edit`: sets or clears one rule of a policy file in place, checked against the
// model where one is given.
#include <algorithm>
#include <optional>

#include "api/output_file.h"
#include "api/policy/policy_case.h"
#include "api/program/policy_files.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "placement/edit.h"
#include "placement/edit_check.h"
#include "placement/policy.h"
#include "placement/report/json.h"
#include "tandem/tandem.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    start = end + 1;
  }
  return lines;
}

struct Change {
  std::size_t line = 0;  // line where it begins, counted from 1
  std::vector<std::string> before, after;
};

/// The lines that remain after removing those that both texts begin and end with.
Change change_of(const std::string& before, const std::string& after) {
  Change change;
  change.before = lines_of(before);
  change.after = lines_of(after);
  std::size_t first = 0;
  while (first < change.before.size() && first < change.after.size() &&
         change.before[first] == change.after[first]) {
    ++first;
  }
  while (change.before.size() > first && change.after.size() > first &&
         change.before.back() == change.after.back()) {
    change.before.pop_back();
    change.after.pop_back();
  }
  const auto cut = static_cast<std::ptrdiff_t>(first);
  change.before.erase(change.before.begin(), change.before.begin() + cut);
  change.after.erase(change.after.begin(), change.after.begin() + cut);
  change.line = first + 1;
  return change;
}

/// What the rule that is set matches in the model; empty where none is set, or no model is given.
/// Throws Error{usage} where the rule would have no effect in the model.
std::optional<ItemCounts> matched_in(const PolicyOptions& model, const std::string& after,
                                     const std::string& path, const PolicyEdit& edit) {
  if (model.config.empty() && model.model.empty()) return std::nullopt;
  PolicyCase of(model, {.policy = false, .data = false});
  if (edit.set.empty() || edit.remove) return std::nullopt;
  const ResolvedPolicy& resolved = of.resolved();
  const PolicyItems items(of.graph(), of.imported().raw_names, added_parts(resolved));
  return check_edit(after, path, edit, {of.graph(), items, resolved});
}

std::string text_before(const std::string& path) {
  try {
    return read_policy_text(path);
  } catch (const Error& error) {
    if (path_exists(path)) throw;
    Diagnostic d = error.diagnostics()[0];
    d.fix = "begin one with the line: policy = 1";
    throw Error(ErrorKind::usage, std::move(d));
  }
}

}  // namespace

Report policy_edit(const std::string& path, const PolicyChange& change,
                   const PolicyOptions& model) {
  if (change.set.empty() && change.clear.empty() && !change.remove) {
    throw Error(ErrorKind::usage, Diagnostic{.message = "policy edit: nothing to do",
                                             .expected = "something to set, to clear or to remove",
                                             .fix = "for example --set run=cpu"});
  }
  PolicyEdit edit;
  edit.at = change.at;
  edit.filters = change.filters;
  edit.set = change.set;
  edit.clear = change.clear;
  edit.remove = change.remove;
  edit.devices = model.devices;
  const std::string before = text_before(path);
  const std::string after = edit_policy(before, path, edit);
  const std::optional<ItemCounts> matched = matched_in(model, after, path, edit);
  if (after != before) rewrite_file(path, after);
  const Change changed = change_of(before, after);
  Report report;
  Json json{{"file", path},
            {"changed", after != before},
            {"line", changed.line},
            {"before", changed.before},
            {"after", changed.after}};
  if (matched) json["matches"] = counts_json(*matched);
  report.json = json_text(json);
  const std::string matches = matched ? "matches " + counts_text(*matched) + "\n" : "";
  if (after == before) {
    report.text = path + ": says that already\n" + matches;
    return report;
  }
  report.text = path + ":" + std::to_string(changed.line) + "\n";
  for (const std::string& line : changed.before) report.text += "-" + line + "\n";
  for (const std::string& line : changed.after) report.text += "+" + line + "\n";
  report.text += matches;
  return report;
}

}  // namespace tandem::api
