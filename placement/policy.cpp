#include "placement/policy.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "engine/config/keys/key_visitor.h"
#include "engine/formats/files.h"
#include "placement/policy_keys.h"
#include "placement/quantities.h"

namespace tandem {

DEFINE_COPIES(PolicyRule);
DEFINE_COPIES(Policy);

namespace {

using Kind = ConfigValue::Kind;

constexpr std::uint64_t largest_file = std::uint64_t{4} << 20;  // 40,000 rules of 100 bytes
constexpr std::string_view place_argument = "--place";

void read_rules(const TableReader& root, std::string_view key, Layer layer, Policy& to) {
  for (const TableReader& table : root.tables(key)) {
    PolicyRule rule;
    rule.layer = layer;
    rule.where = table.where();
    read_keys(table, [&](KeyVisitor& v) { visit(v, rule); });
    if (!table.valid("at")) continue;
    for (const std::string& name : rule_keys()) {
      if (const ConfigValue* value = table.find(name)) rule.keys.emplace_back(name, value->where);
    }
    to.rules.push_back(std::move(rule));
  }
}

void read_file(std::string_view text, const std::string& path, Policy& to,
               std::vector<Diagnostic>& errors) {
  const std::size_t before = errors.size();
  ConfigValue tree = parse_toml(text, path, errors);
  if (errors.size() > before) return;
  check_config(tree, errors, policy_keys());
  std::error_code ignored;
  const std::string folder =
      std::filesystem::absolute(path, ignored).lexically_normal().parent_path().string();
  const TableReader root(&tree, "", folder, errors);
  if (const ConfigValue* version = root.valid("policy"); version && version->integer != 1) {
    root.report(version->where, "policy", "this program reads version 1", "policy = 1",
                describe(*version));
  }
  if (const ConfigValue* model = root.valid("model")) {
    to.model_where = model->where;
    if (model->kind == Kind::string) {
      to.model_file = root.resolve(*model);
    } else {
      root.table("model").read_path("file", to.model_file);
      root.table("model").read("structure", to.model_structure);
    }
  }
  to.devices = read_device_table(root);
  read_rules(root, "auto", Layer::automatic, to);
  read_rules(root, "rules", Layer::rules, to);
}

// Corrects a place in a `--place` argument: "place = " comes before its text in what is parsed.
void move_back(Where& where, int number, std::size_t prefix) {
  where.line = number;
  where.column = std::max(1, where.column - static_cast<int>(prefix));
}

void read_place(const std::string& text, int number, Policy& to, std::vector<Diagnostic>& errors) {
  constexpr std::string_view head = "policy = 1, rules = [ ";
  std::vector<Diagnostic> found;
  Policy parsed;
  const std::string file(place_argument);
  const ConfigValue tree =
      parse_toml("place = { " + std::string(head) + text + " ] }", file, found);
  constexpr std::size_t prefix = 10 + head.size();
  const ConfigValue* place = tree.find("place");
  const ConfigValue* rules = place ? place->find("rules") : nullptr;
  if (found.empty() && (!rules || place->members.size() != 2 || rules->items.size() != 1 ||
                        rules->items[0].kind != Kind::table)) {
    found.push_back(at(Where{file, 1, static_cast<int>(prefix) + 1}, "", "not a rule"));
  }
  if (found.empty()) {
    ConfigValue root = *place;
    check_config(root, found, policy_keys());
    const TableReader reader(&root, "", file, found);
    read_rules(reader, "rules", Layer::command_line, parsed);
  } else {
    for (Diagnostic& d : found) d.expected = "'{ at = \"wide.**\", on = \"cpu\" }'";
  }
  for (PolicyRule& rule : parsed.rules) {
    move_back(rule.where, number, prefix);
    for (auto& [key, where] : rule.keys) move_back(where, number, prefix);
    to.rules.push_back(std::move(rule));
  }
  for (Diagnostic& d : found) {
    Where where{d.file, d.line, d.column};
    move_back(where, number, prefix);
    d.line = where.line;
    d.column = where.column;
    if (d.path.starts_with("rules.0"))
      d.path = d.path.substr(std::min<std::size_t>(8, d.path.size()));
    errors.push_back(std::move(d));
  }
}

Policy parse(const std::string_view* text, const std::string& path,
             const std::vector<std::string>& place, std::vector<Diagnostic>* errors) {
  std::vector<Diagnostic> found;
  Policy policy;
  policy.file = path;
  if (text) read_file(*text, path, policy, found);
  for (std::size_t i = 0; i < place.size(); ++i) {
    read_place(place[i], static_cast<int>(i) + 1, policy, found);
  }
  sort_diagnostics(found);
  if (errors) {
    errors->insert(errors->end(), found.begin(), found.end());
  } else if (!found.empty()) {
    throw Error(ErrorKind::usage, std::move(found));
  }
  return policy;
}

}  // namespace

std::string cache_text(const CacheSize& size) {
  if (size.bytes > 0) return size_text(size.bytes);
  std::string text = std::to_string(100 * size.part);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + "%";
}

std::string_view name_of(Ship ship) { return ship == Ship::rows ? "rows" : "results"; }

std::string_view name_of(Activations acts) { return choice_name(acts); }

Where PolicyRule::where_of(std::string_view key) const {
  const auto find = [&](std::string_view wanted) -> const Where* {
    for (const auto& [name, place] : keys) {
      if (name == wanted) return &place;
    }
    return nullptr;
  };
  const Where* place = find(key);
  if (!place && (key == "run" || key == "param" || key == "state")) place = find("on");
  return place ? *place : where;
}

PolicyRule rule_on(std::string_view at, const std::string& device) {
  PolicyRule rule;
  rule.at = Selector(at);
  rule.run = rule.param = rule.state = device;
  return rule;
}

std::string to_toml(PolicyRule rule) {
  const std::string line = write_keys([&](KeyVisitor& v) { v.section("rule", rule, on_one_line); });
  return line.substr(7, line.size() - 8);  // between "rule = " and the line end
}

Policy parse_policy(std::string_view text, const std::string& path,
                    const std::vector<std::string>& place, std::vector<Diagnostic>* errors) {
  return parse(&text, path, place, errors);
}

std::string read_policy_text(const std::string& path) {
  if (!path_exists(path) || is_directory(path)) {
    const bool folder = is_directory(path);
    throw Error(ErrorKind::usage,
                Diagnostic{.message = folder ? "this is a folder" : "there is no such policy file",
                           .file = path,
                           .expected = "a policy.toml"});
  }
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    throw Error(ErrorKind::usage, Diagnostic{.message = "the policy is not a regular file",
                                             .file = path,
                                             .fix = "it is read several times: store it first"});
  }
  try {
    return read_file(path, largest_file);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    throw Error(ErrorKind::usage, Diagnostic{.message = "this is no policy file: it is too large",
                                             .file = path,
                                             .expected = "at most " + size_text(largest_file)});
  }
}

Policy policy_of_arguments(const std::vector<std::string>& place, std::vector<Diagnostic>* errors) {
  return parse(nullptr, "", place, errors);
}

void sort_diagnostics(std::vector<Diagnostic>& errors) {
  std::stable_sort(errors.begin(), errors.end(), [](const Diagnostic& a, const Diagnostic& b) {
    const auto key = [](const Diagnostic& d) {
      return std::tuple(d.file.starts_with("--"), d.line, d.column);
    };
    return key(a) < key(b);
  });
}

std::string short_text(const Where& where) {
  std::string text = std::filesystem::path(where.file).filename().string();
  if (where.line > 0) text += ":" + std::to_string(where.line);
  return text;
}

std::string selection_text(const PolicyRule& rule) {
  std::string text = "at = \"" + rule.at.text() + "\"";
  if (!rule.op.empty()) text += ", op = \"" + rule.op + "\"";
  if (rule.min) text += ", min = \"" + size_text(*rule.min) + "\"";
  if (rule.after) text += ", after = \"" + rule.after->text() + "\"";
  if (rule.before) text += ", before = \"" + rule.before->text() + "\"";
  return text;
}

std::string rule_text(const Policy& policy, int rule) {
  return rule < 0 ? "" : short_text(policy.rules[static_cast<std::size_t>(rule)].where);
}

}  // namespace tandem
