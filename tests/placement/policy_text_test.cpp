// What a policy decides, as tests/expected/policy_file has it: places with their reasons, edited
// files, warnings, errors.
#include <gtest/gtest.h>

#include <sstream>

#include "placement/counts.h"
#include "placement/derive.h"
#include "placement/edit.h"
#include "placement/edit_check.h"
#include "placement/report/explain.h"
#include "tests/harness/expected_output.h"
#include "tests/placement/policy_input.h"

namespace tandem::testing {
namespace {

std::string reason_text(const ResolvedPolicy& resolved, const Reason& reason) {
  std::string text = reason.layer == Layer::automatic ? " (auto " : " (";
  text += reason.text;
  for (const int rule : reason.overridden) text += ", over rule " + std::to_string(rule + 1);
  for (const FallBack& fallen : reason.fallen)
    text += ", not " + resolved.device_name(fallen.device) + ": " + fallen.because;
  return text + ")";
}

std::string place_of(const ResolvedPolicy& resolved, const std::string& path) {
  std::string text = path + ":";
  const auto add = [&](const char* what, const Decided<int>& device) {
    text += std::string(" ") + what + " " + resolved.device_name(device.value) +
            reason_text(resolved, device.reason);
  };
  if (const OperatorAttributes* op = resolved.find_node(path)) {
    add("run", op->run);
    constexpr const char* names[] = {"keep", "offload", "recompute"};
    text += std::string(" ") + names[static_cast<std::size_t>(op->acts.value)];
    if (op->lookahead.value != 0) text += " lookahead " + std::to_string(op->lookahead.value);
    if (op->added) text += " added";
  } else if (const ParameterAttributes* parameter = resolved.find_parameter(path)) {
    add("param", parameter->param);
    add("state", parameter->state);
    if (parameter->lookahead.value != 0)
      text += " lookahead " + std::to_string(parameter->lookahead.value);
    for (const std::string& reader : parameter->readers) text += " read by " + reader;
  } else {
    text += " there is none";
  }
  return text + "\n";
}

std::string attribute_of(const ResolvedPolicy& resolved, const std::string& words) {
  const std::size_t space = words.find(' ');
  const std::string path = words.substr(0, space), name = words.substr(space + 1);
  for (const ExplainedAttribute& attribute : explain(resolved, path).attributes) {
    if (attribute.name == name)
      return path + ": " + name + " " + attribute.value + reason_text(resolved, *attribute.reason) +
             "\n";
  }
  return path + ": no " + name + "\n";
}

std::string table_text(const ResolvedPolicy& resolved, const std::string& path) {
  const ParameterAttributes& table = *resolved.find_parameter(path);
  const TableTraffic& traffic = table.traffic;
  if (!traffic.crosses) return path + ": nothing crosses\n";
  std::string text =
      path + ": " + std::to_string(traffic.rows) + " rows" + (traffic.counted ? ", counted," : "") +
      " of at most " + std::to_string(traffic.most_rows) + " for " + std::to_string(traffic.ids) +
      " ids; " + std::to_string(traffic.bytes_rows) + " bytes as rows, " +
      std::to_string(traffic.bytes_results) + " as results, " +
      std::to_string(traffic.bytes_uncached) + " without a cache; ship " +
      std::string(name_of(table.ship.value)) + reason_text(resolved, table.ship.reason);
  if (table.cached.rows != nullptr) {
    text += "; cache";
    for (const std::int64_t row : *table.cached.rows) text += " " + std::to_string(row);
    text += " on " + resolved.device_name(table.cached.device) +
            reason_text(resolved, table.cache.reason);
  }
  return text + "\n";
}

std::string placed_text(const ResolvedPolicy& resolved, const std::string& name) {
  const ForwardPlacement placement = forward_placement(resolved);
  std::string text;
  if (const auto node = placement.nodes.find(name); node != placement.nodes.end())
    text = "runs on " + resolved.device_name(node->second.device);
  if (const auto state = placement.parameters.find(name); state != placement.parameters.end())
    text = "is on " + resolved.device_name(state->second.param) + ", its state on " +
           resolved.device_name(state->second.state) + " (" + state->second.reason + ")";
  return name + " " + (text.empty() ? "follows" : text) + "\n";
}

/// Resolves the policy until its questions are answered, or there is no answer; `said` has them.
ResolvedPolicy answered(const PolicyInput& input, std::string& said) {
  PlacementFacts facts = input.facts;
  while (true) {
    ResolvedPolicy resolved =
        resolve_text(input.text, input.place, input.options, facts, *input.graph);
    if (resolved.questions.unique_rows && input.rows) {
      said += "asks how many rows are read\n";
      facts.unique_rows.emplace();
      if (*input.rows != "unknown") facts.unique_rows->emplace("embed.weight", stoll(*input.rows));
    } else if (!resolved.questions.constraints.empty() && input.cached) {
      facts.constraints = resolved.questions.constraints;
      for (const CacheRequest& asked : facts.constraints) {
        said += "asks for a cache of " + asked.parameter + ": " + cache_text(asked.size) + " on " +
                resolved.device_name(asked.device) + "\n";
        TableCache& cache = facts.caches.emplace_back();
        cache.off = *input.cached;
        if (!cache.off.empty()) continue;
        cache.rows =
            std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{3, 5});
        cache.bytes = 128;
        cache.hit_rate = 0.75;
        cache.cold_rows = 2;
      }
    } else {
      return resolved;
    }
  }
}

std::string checked(const std::string& after, const PolicyEdit& edit, const Graph& graph) {
  ResolveOptions options;
  options.added.push_back({"loss.total", ""});
  const ResolvedPolicy resolved = resolve_text("", {}, options, {}, graph);
  const PolicyItems items(graph, {}, added_parts(resolved));
  return counts_text(check_edit(after, "p.toml", edit, {graph, items, resolved}));
}

std::string edited(const std::string& file, const PolicyInput& input) {
  PolicyEdit edit;
  edit.devices = input.devices;
  std::istringstream words(input.edit);
  words >> edit.at;
  for (std::string word; words >> word;) {
    const bool is_filter = word.starts_with('?');
    const std::size_t is = word.find('=');
    if (word == "remove")
      edit.remove = true;
    else if (word.starts_with('-'))
      edit.clear.push_back(word.substr(1));
    else
      (is_filter ? edit.filters : edit.set)
          .emplace_back(word.substr(is_filter ? 1 : 0, is - (is_filter ? 1 : 0)),
                        word.substr(is + 1));
  }
  if (input.checks) return checked(edit_policy(file, "p.toml", edit), edit, *input.graph);
  std::vector<std::string> before, after;
  const auto split = [](const std::string& text, std::vector<std::string>& lines) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
  };
  split(file, before);
  split(edit_policy(file, "p.toml", edit), after);
  while (!before.empty() && !after.empty() && before.front() == after.front()) {
    before.erase(before.begin());
    after.erase(after.begin());
  }
  while (!before.empty() && !after.empty() && before.back() == after.back()) {
    before.pop_back();
    after.pop_back();
  }
  std::string text;
  for (const std::string& line : before) text += "-" + line + "\n";
  for (const std::string& line : after) text += "+" + line + "\n";
  return text;
}

std::string said_of_policy(const std::string& file, const std::string& argument) {
  PolicyInput input(argument);
  std::string said;
  try {
    if (input.edits) return edited(file, input);
    if (input.is_whole) {
      parse_policy(input.text, "folder/policy.toml");
      return "accepted";
    }
    input.options.bindings = parse_device_arguments(input.devices);
    if (!input.rules.empty()) input.text += "rules = [\n" + input.rules + "]\n";
    const ResolvedPolicy resolved = answered(input, said);
    for (const std::string& words : input.explained) said += attribute_of(resolved, words);
    for (const std::string& path : input.tables) said += table_text(resolved, path);
    for (const std::string& name : input.placed) said += placed_text(resolved, name);
    if (input.shows_shards) {
      for (const auto& [name, shard] : shardings_of(resolved))
        said += name + ": " + std::string(name_of(shard)) + "\n";
    }
    if (input.shown.empty() && said.empty()) said = "accepted\n";
    for (const std::string& path : input.shown) said += place_of(resolved, path);
    for (std::size_t i = 0; input.shows_uses && i < resolved.rules.size(); ++i)
      said += "rule " + std::to_string(i + 1) + ": " + counts_text(resolved.rules[i].matched) +
              "; decides " + std::to_string(resolved.rules[i].decided) + ", falls back for " +
              std::to_string(resolved.rules[i].fallen) + "\n";
    for (const Diagnostic& note : resolved.notes) said += "note: " + to_string(note) + "\n";
    for (const Diagnostic& warning : resolved.warnings)
      said += "warning: " + to_string(warning) + "\n";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    said = error.what();
  }
  return with_all(said, "folder/policy.toml", "policy.toml");
}

class PolicyText : public ::testing::TestWithParam<ExpectedCase> {};

TEST_P(PolicyText, IsAsExpected) {
  const std::string file = GetParam().text("policy"), before = GetParam().text("before");
  GetParam().check([&](const std::string& input) { return said_of_policy(file, before + input); });
}

INSTANTIATE_TEST_SUITE_P(, PolicyText, ::testing::ValuesIn(expected_cases("policy_file")),
                         name_of_case);

}  // namespace
}  // namespace tandem::testing
