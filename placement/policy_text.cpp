#include "placement/policy_text.h"

#include <algorithm>

#include "engine/graph/text.h"
#include "placement/policy_keys.h"
#include "placement/toml_text.h"

namespace tandem {
namespace {

using Kind = ConfigValue::Kind;

ConfigValue parse_tree(std::string_view text, const std::string& path) {
  std::vector<Diagnostic> errors;
  ConfigValue tree = parse_toml(text, path, errors);
  if (!errors.empty()) throw Error(ErrorKind::usage, std::move(errors));
  return tree;
}

// Whether two values are equal, ignoring the order within tables.
bool equal(const ConfigValue& a, const ConfigValue& b) {
  if (a.kind != b.kind || a.boolean != b.boolean || a.text != b.text || a.integer != b.integer ||
      a.number != b.number || a.items.size() != b.items.size() ||
      a.members.size() != b.members.size()) {
    return false;
  }
  for (const ConfigValue::Member& member : a.members) {
    const ConfigValue* other = b.find(member.key);
    if (!other || !equal(member.value, *other)) return false;
  }
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), equal);
}

ConfigValue parsed_value(const std::string& toml) {
  return *parse_tree("value = " + toml, "").find("value");
}

}  // namespace

std::string rule_value(const std::string& key, const std::string& written) {
  const KeyInfo* info = key.empty() ? nullptr : policy_keys().find("rules[]." + key);
  if (!info) {
    std::vector<std::string> known;
    for (const KeyInfo& k : policy_keys().keys) {
      if (k.path.starts_with("rules[].")) known.emplace_back(k.path.substr(8));
    }
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "unknown key of a rule",
                           .path = key,
                           .fix = did_you_mean(nearest_name(key, known), "", "`")});
  }
  const bool wants_text = (info->type & (string_value | selector_value)) != 0;
  std::vector<Diagnostic> ignored;
  const ConfigValue tree = parse_toml("value = " + written, "", ignored);
  const ConfigValue* value = tree.find("value");
  const bool is_toml = ignored.empty() && tree.members.size() == 1 && value;
  return is_toml && (value->kind == Kind::string) == wants_text ? written : toml_string(written);
}

bool is_count_of_auto(std::string_view comment) {
  const auto skip = [&](std::string_view what) {
    if (!comment.starts_with(what)) return false;
    comment.remove_prefix(what.size());
    return true;
  };
  const auto skip_number = [&] {
    const std::size_t end = std::min(comment.find_first_not_of("0123456789."), comment.size());
    comment.remove_prefix(end);
    return end > 0;
  };
  if (!skip("# ") || !skip_number()) return false;
  if (!skip(" operator") && !skip(" parameter") && !skip(" buffer") && !skip(" added part"))
    return false;
  skip("s");
  if (!skip(", ") || !skip_number() || !skip(" ")) return false;
  while (!comment.empty() && (comment.back() == ' ' || comment.back() == '\r')) {
    comment.remove_suffix(1);
  }
  return comment == "B" || comment == "KiB" || comment == "MiB" || comment == "GiB";
}

PolicyText::PolicyText(std::string_view text, const std::string& path)
    : text_(text), path_(path), wanted_(parse_tree(text, path)) {}

ConfigValue PolicyText::tree() const { return parse_tree(text_, path_); }

std::size_t PolicyText::list_start(const char* name) const {
  const ConfigValue now = tree();
  const ConfigValue* list = now.find(name);
  if (!list) return npos;
  const std::size_t start = offset_of(text_, list->where);
  if (list->kind != Kind::list || start == npos || text_[start] != '[' ||
      text_.compare(start, 2, "[[") == 0) {
    Diagnostic d = at(list->where, name, "cannot be edited in this form");
    d.expected = std::string(name) + " = [ ... ], one rule a line";
    throw Error(ErrorKind::usage, std::move(d));
  }
  return start;
}

std::optional<std::size_t> PolicyText::find_rule(const PolicyEdit& edit) const {
  const ConfigValue now = tree();
  const ConfigValue* rules = now.find("rules");
  if (!rules) return std::nullopt;
  for (std::size_t i = rules->items.size(); i-- > 0;) {
    const ConfigValue& rule = rules->items[i];
    const ConfigValue* selector = rule.find("at");
    if (!selector || selector->text != edit.at) continue;
    std::size_t filters = 0;
    for (const std::string_view key : rule_filters()) filters += rule.find(key) != nullptr;
    const bool same = std::all_of(edit.filters.begin(), edit.filters.end(), [&](const auto& f) {
      const ConfigValue* value = rule.find(f.first);
      return value && equal(*value, parsed_value(rule_value(f.first, f.second)));
    });
    if (same && filters == edit.filters.size()) return i;
  }
  return std::nullopt;
}

void PolicyText::add_version() {
  if (wanted_.find("policy")) return;
  std::size_t place = skip_blank(text_, 0);
  if (place < text_.size()) place = start_of_line(text_, place);
  const bool open_line =
      place == text_.size() && place > start_of_line(text_, 0) && text_[place - 1] != '\n';
  text_.insert(place, lines(open_line ? "\npolicy = 1\n" : "policy = 1\n"));
  wanted_.members.push_back({"policy", Where{}, parsed_value("1")});
}

void PolicyText::set(std::size_t index, const std::string& key, const std::string& toml) {
  const ConfigValue now = tree();
  const ConfigValue& rule = now.find("rules")->items[index];
  ConfigValue& wanted = wanted_.find("rules")->items[index];
  if (const ConfigValue* old = rule.find(key)) {
    const std::size_t start = offset(old->where);
    text_.replace(start, end_of_value(text_, start) - start, toml);
    *wanted.find(key) = parsed_value(toml);
  } else {
    const std::size_t end = end_of_value(text_, offset(rule.members.back().value.where));
    text_.insert(end, ", " + key + " = " + toml);
    wanted.members.push_back({key, Where{}, parsed_value(toml)});
  }
}

void PolicyText::clear(std::size_t index, const std::string& key) {
  const ConfigValue now = tree();
  const ConfigValue& rule = now.find("rules")->items[index];
  for (std::size_t i = 0; i < rule.members.size(); ++i) {
    if (rule.members[i].key != key) continue;
    std::size_t start = offset(rule.members[i].where);
    std::size_t end = end_of_value(text_, offset(rule.members[i].value.where));
    if (i > 0) {
      start = end_of_value(text_, offset(rule.members[i - 1].value.where));
    } else if (rule.members.size() > 1) {
      end = offset(rule.members[1].where);
    }
    text_.erase(start, end - start);
    auto& members = wanted_.find("rules")->items[index].members;
    std::erase_if(members, [&](const auto& member) { return member.key == key; });
    return;
  }
}

void PolicyText::remove(std::size_t index, const char* list) {
  const ConfigValue now = tree();
  const std::size_t start = offset(now.find(list)->items[index].where);
  std::size_t end = end_of_value(text_, start);
  const std::size_t comma = skip_blank(text_, end);
  if (comma < text_.size() && text_[comma] == ',' && comma < after_line(text_, end)) {
    end = comma + 1;
  }
  const std::size_t line = start_of_line(text_, start), next = after_line(text_, end);
  const auto blank = [&](std::size_t from, std::size_t to) {
    return text_.find_first_not_of(" \t\r\n", from) >= to;
  };
  const std::size_t comment = text_.find_first_not_of(" \t", end);
  const std::size_t length = std::min(text_.find('\n', end), text_.size()) - comment;
  const bool counts =
      comment < next && is_count_of_auto(std::string_view(text_).substr(comment, length));
  const bool alone = blank(line, start) && (blank(end, next) || counts);
  if (alone) {
    text_.erase(line, next - line);
  } else {  // a comment after it stays
    text_.erase(start, text_.find_first_not_of(" \t", end) - start);
  }
  auto& items = wanted_.find(list)->items;
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(index));
}

void PolicyText::insert(const char* list, std::size_t index, const std::string& rule,
                        const std::string& behind) {
  const std::string line = rule + behind;
  const std::size_t start = list_start(list);
  if (start == npos) {
    add_list(list, "[\n  " + line + "\n]", std::string_view(list) == "rules" ? "auto" : "policy");
    ConfigValue made{.kind = Kind::list};
    made.items.push_back(parsed_value(rule));
    wanted_.members.push_back({list, Where{}, std::move(made)});
    return;
  }
  auto& items = wanted_.find(list)->items;
  const std::size_t place = std::min(index, items.size());
  if (place < items.size())
    insert_before(list, place, rule, line);
  else
    insert_last(list, rule, line);
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(place), parsed_value(rule));
}

void PolicyText::insert_before(const char* list, std::size_t index, const std::string& rule,
                               const std::string& line) {
  const ConfigValue now = tree();
  const std::size_t start = offset(now.find(list)->items[index].where);
  std::size_t place = start_of_line(text_, start);
  if (text_.find_first_not_of(" \t", place) != start) {
    text_.insert(start, rule + ", ");
    return;
  }
  const std::string indent = text_.substr(place, start - place);
  while (place > 0) {
    const std::size_t above = start_of_line(text_, place - 1);
    const std::size_t first = text_.find_first_not_of(" \t", above);
    if (first >= place || text_[first] != '#') break;
    place = above;
  }
  text_.insert(place, lines(indent + line + "\n"));
}

void PolicyText::insert_last(const char* list, const std::string& rule, const std::string& line) {
  const std::size_t start = list_start(list);
  const ConfigValue now = tree();
  const std::vector<ConfigValue>& items = now.find(list)->items;
  std::string indent = "  ";
  if (!items.empty()) {
    const std::size_t last = offset(items.back().where), end = end_of_value(text_, last);
    const std::size_t of_last = start_of_line(text_, last);
    const std::size_t first = text_.find_first_not_of(" \t", of_last);
    if (first == last) indent = text_.substr(of_last, first - of_last);
    if (text_[skip_blank(text_, end)] != ',') text_.insert(end, ",");
  }
  const std::size_t close = end_of_value(text_, start) - 1;  // the ]
  const std::size_t of_close = start_of_line(text_, close);
  if (of_close > start && text_.find_first_not_of(" \t", of_close) == close) {
    text_.insert(of_close, lines(indent + line + "\n"));
  } else if (items.empty()) {
    text_.replace(start, close + 1 - start, lines("[\n  " + line + "\n]"));
  } else {
    std::size_t from = close;
    while (text_[from - 1] == ' ' || text_[from - 1] == '\t') --from;
    text_.replace(from, close - from, " " + rule + " ");
  }
}

void PolicyText::replace_list(const char* name, const std::string& toml) {
  const std::size_t start = list_start(name);
  ConfigValue value = parsed_value(toml);
  if (start == npos) {
    add_list(name, toml, "policy");
    wanted_.members.push_back({name, Where{}, std::move(value)});
  } else {
    text_.replace(start, end_of_value(text_, start) - start, lines(toml));
    *wanted_.find(name) = std::move(value);
  }
}

std::string PolicyText::finish(std::string_view before) const {
  std::vector<Diagnostic> old_errors, errors;
  parse_policy(before, path_, {}, &old_errors);
  parse_policy(text_, path_, {}, &errors);
  if (errors.size() > old_errors.size()) throw Error(ErrorKind::usage, std::move(errors));
  if (!equal(tree(), wanted_)) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "this file cannot be edited by splicing lines",
                           .file = path_,
                           .fix = "edit it by hand, one rule a line"});
  }
  return text_;
}

std::size_t PolicyText::offset(const Where& where) const {
  const std::size_t found = offset_of(text_, where);
  if (found == npos) {
    throw Error(ErrorKind::usage, at(where, "", "this place cannot be found in the file's text"));
  }
  return found;
}

std::string PolicyText::lines(const std::string& text) const {
  const std::size_t first = text_.find('\n');
  if (first == npos || first == 0 || text_[first - 1] != '\r') return text;
  std::string result;
  for (const char c : text) result += c == '\n' ? "\r\n" : std::string(1, c);
  return result;
}

void PolicyText::add_list(const std::string& name, const std::string& toml, const char* behind) {
  const ConfigValue now = tree();
  const ConfigValue* key = now.find(behind);
  if (!key) key = now.find("policy");
  std::size_t place = 0;
  if (key) place = after_line(text_, end_of_value(text_, offset(key->where)) - 1);
  const bool open_line = place > 0 && text_[place - 1] != '\n';
  text_.insert(place, lines((open_line ? "\n" : "") + name + " = " + toml + "\n"));
}

}  // namespace tandem
