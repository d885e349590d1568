#include "tests/placement/policy_input.h"

#include <sstream>

#include "tests/placement/policy_graphs.h"

namespace tandem::testing {

PolicyInput::PolicyInput(const std::string& input) {
  std::istringstream lines(input);
  for (std::string line; std::getline(lines, line);) take(line);
}

void PolicyInput::take(const std::string& line) {
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
  } else if (option == "--explain") {
    explained.push_back(value);
  } else if (option == "--shards") {
    shows_shards = true;
  } else if (option == "--table") {
    tables.push_back(value);
  } else if (option == "--placed") {
    placed.push_back(value);
  } else if (option == "--graph") {
    graph = &policy_graph(value);
  } else if (option == "--rows") {
    rows = value;
  } else if (option == "--known_rows") {
    facts.unique_rows = {{"embed.weight", std::stoll(value)}};
  } else if (option == "--cached") {
    cached = space == std::string::npos ? "" : value;
  } else if (option == "--check") {
    checks = true;
  } else if (option == "--edit") {
    edit = value;
    edits = true;
  } else {
    rules += line + ",\n";
  }
}

}  // namespace tandem::testing
