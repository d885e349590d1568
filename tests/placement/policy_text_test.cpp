// What a policy decides, as tests/expected/policy_file has it: places with their reasons, edited
// files, warnings, errors.
#include <gtest/gtest.h>

#include <sstream>

#include "placement/counts.h"
#include "placement/edit.h"
#include "tests/harness/expected_output.h"
#include "tests/placement/support.h"

namespace tandem::testing {
namespace {

/// What an input says:
///   { at = ... }       a rule; "--text LINE" is another line of the file
///   --whole LINE       a line of the file, which is only parsed
///   --place RULE, --device ARGUMENT, --machine USE, --default DEVICE, --added PATH
///   --without PATH BECAUSE   the second device has no kernel for it
///   --raw PATH NAME          the name of an operator in the file
///   --show PATH              where an operator or a parameter is
///   --uses                   what each rule matches and decides
///   --edit AT KEY=VALUE ...  edits the text "policy": "-KEY" clears, "?KEY=VALUE" is a filter,
///                            "remove" removes; the lines that differ are shown
struct PolicyInput {
  std::string rules, text, edit;
  std::vector<std::string> place, devices, shown;
  ResolveOptions options;
  PlacementFacts facts;
  bool is_whole = false, edits = false, shows_uses = false;

  explicit PolicyInput(const std::string& input) {
    std::istringstream lines(input);
    for (std::string line; std::getline(lines, line);) take(line);
  }

 private:
  void take(const std::string& line) {
    const std::size_t space = line.find(' ');
    const std::string option = line.substr(0, space), value = line.substr(space + 1);
    const std::size_t second = value.find(' ');
    const std::string name = value.substr(0, second), rest = value.substr(second + 1);
    if (option == "--text") {
      text += value + "\n";
    } else if (option == "--whole") {
      text += value + "\n";
      is_whole = true;
    } else if (option == "--place") {
      place.push_back(value);
    } else if (option == "--device") {
      devices.push_back(value);
    } else if (option == "--machine") {
      options.machine.push_back(value);
    } else if (option == "--default") {
      options.default_device = value;
    } else if (option == "--added") {
      options.added.push_back({value, "Mul"});
    } else if (option == "--without") {
      facts.refusals[{1, name}] = rest;
    } else if (option == "--raw") {
      facts.raw_names[name] = rest;
    } else if (option == "--show") {
      shown.push_back(value);
    } else if (option == "--uses") {
      shows_uses = true;
    } else if (option == "--edit") {
      edit = value;
      edits = true;
    } else {
      rules += line + ",\n";
    }
  }
};

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
    const ResolvedPolicy resolved =
        resolve_text(input.text, input.place, input.options, input.facts);
    if (input.shown.empty()) said = "accepted\n";
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
  const std::string file = GetParam().text("policy");
  GetParam().check([&](const std::string& input) { return said_of_policy(file, input); });
}

INSTANTIATE_TEST_SUITE_P(, PolicyText, ::testing::ValuesIn(expected_cases("policy_file")),
                         name_of_case);

}  // namespace
}  // namespace tandem::testing
