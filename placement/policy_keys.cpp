#include "placement/policy_keys.h"

#include <algorithm>
#include <deque>

#include "engine/config/keys/key_visitor.h"
#include "engine/graph/text.h"
#include "placement/device_use.h"
#include "placement/quantities.h"

namespace tandem {
namespace {

constexpr unsigned integer = integer_value, string = string_value, path = path_value,
                   table = table_value, list = list_value;

// clang-format off: one key a line.
constexpr KeyInfo keys_of_file[] = {
    {"policy", integer, "required", "", "version of this file's format: 1"},
    {"auto", list, "[]", "",
     "rules written by `tandem policy auto`, replaced whole; same keys as in rules"},
    {"rules", list, "[]", "",
     "your rules, applied after auto; later lines win, attribute by attribute"},
    {"model", path | table, "", "",
     "the model that this policy was written for: with another one a warning names both"},
    {"model.file", path, "", "", "its file"},
    {"model.structure", string, "", "", "hash of its names and shapes, written by tools"},
    {"devices", table, "", "", "what device names mean; $NAMES exist without being defined"},
    {"devices.*", table, "", "", "one device, by the name that rules use"},
    {"devices.*.use", string, "(as the name says)", "", "$USES; N from 0 to 63"},
    {"devices.*.memory", string, "\"auto\"", "",
     "limit: a size (\"20GiB\"), a part of what it has (\"90%\") or \"auto\""},
    {"devices.*.threads", integer | string, "\"physical\"", "",
     "compute threads of the cpu: a number, which overrides the key threads of train.toml, or "
     "\"physical\""},
    {"devices.*.bandwidth", string, "", "", "rate of $LINKED's link in each direction: \"25GB/s\""},
    {"devices.*.latency", string, "", "", "latency of $LINKED's link: \"10us\""},
};
// clang-format on

constexpr std::pair<std::string_view, std::string_view> other_words[] = {
    {"device", "on"},       {"place", "on"},      {"match", "at"},
    {"name", "at"},         {"path", "at"},       {"select", "at"},
    {"pattern", "at"},      {"op_type", "op"},    {"type", "op"},
    {"params", "param"},    {"weights", "param"}, {"weight", "param"},
    {"optimizer", "state"}, {"moments", "state"}, {"activations", "acts"},
    {"activation", "acts"}, {"compute", "run"},   {"prefetch", "lookahead"},
    {"min_size", "min"},    {"size", "min"},      {"comment", "why"},
    {"reason", "why"},      {"rule", "rules"},    {"version", "policy"}};

constexpr std::string_view page_head =
    "# The keys of policy.toml\n\n"
    "Written from the table that also checks the file; do not edit. `tandem config explain KEY "
    "--policy` shows one key.\n\n"
    "- One rule a line. The last rule that matches wins, attribute by attribute, in this order: "
    "the device of the run, `auto`, `rules`, `--place`.\n"
    "- A selector is an anchored glob over whole paths: `*` and `?` stop at `.` and `:`; a leading "
    "`**.` and a trailing `.**` match zero or more parts; `{0..5}` is a range, `{a,b}` a set, "
    "`re:'...'` a regular expression. Without `:` it also covers the parameters that are read only "
    "there.\n"
    "- A device is `cpu`, $RANGES, or a name of the table `devices`. `--device $BINDING` binds a "
    "name. What is said about two names for one device holds for both, and must agree.\n"
    "- `[]` stands for the items of a list, `*` for any name.\n";

// The text with what the list of device families says in place of the words with "$".
std::string with_devices(std::string_view text) {
  const std::pair<std::string_view, std::string> words[] = {
      {"$NAMES", joined(known_names())},
      {"$USES", use_forms(" (this process's own)")},
      {"$LINKED", nouns_of(&DeviceFamily::has_set_link, true)},
      {"$RANGES", name_ranges()},
      {"$BINDING", default_accelerator() + "=" + use_without_hardware(0) + ",memory=2GiB"}};
  std::string result(text);
  for (const auto& [word, said] : words) {
    const std::size_t at = result.find(word);
    if (at != std::string::npos) result.replace(at, word.size(), said);
  }
  return result;
}

KeyForm selector_form(std::optional<Selector>& member) {
  return {selector_value, [&](const Found& found) { member.emplace(found.value.text); },
          [&] { return member ? toml_string(member->text()) : std::string(); }};
}

KeyForm size_form(std::optional<std::uint64_t>& member) {
  return {string_value,
          [&](const Found& found) {
            member = parse_size(found.value.text);
            if (!member) found.report("not a size", "\"64MiB\" or \"2GiB\"", describe(found.value));
          },
          [&] { return member ? toml_string(exact_size(*member)) : std::string(); }};
}

KeyForm cache_form(std::optional<CacheSize>& member) {
  return {string_value,
          [&](const Found& found) {
            CacheSize size;
            size.bytes = parse_size(found.value.text).value_or(0);
            if (size.bytes == 0) size.part = parse_percent(found.value.text).value_or(0);
            if (size.bytes > 0 || size.part > 0)
              member = size;
            else
              found.report("not the size of a cache", "\"2GiB\", or a part of the table, \"10%\"",
                           describe(found.value));
          },
          [&] {
            if (!member) return std::string();
            return toml_string(member->bytes > 0 ? exact_size(member->bytes) : cache_text(*member));
          }};
}

/// Keys that narrow a rule down.
void visit_filters(KeyVisitor& v, PolicyRule& rule) {
  v.key("op", text_or_none(rule.op),
        "only operators of this type (for parameters: those that only such operators read)");
  v.when_read([&](const TableReader& table) {
    if (const ConfigValue* op = table.valid("op"); op && rule.op.empty())
      table.report(op->where, "op", "no operator has an empty type", "a type, \"Gather\"");
  });
  v.key("min", size_form(rule.min),
        "only parameters of at least this many bytes (\"64MiB\"), and operators that read one");
  v.key("after", selector_form(rule.after), "only what depends on these operators or values");
  v.key("before", selector_form(rule.before), "only what these operators or values depend on");
}

/// Keys that say what becomes of what a rule matches.
void visit_attributes(KeyVisitor& v, PolicyRule& rule) {
  const bool is_on = rule.run && rule.param && rule.state;
  v.key("on",
        KeyForm{string_value,
                [&](const Found& found) { rule.run = rule.param = rule.state = found.value.text; },
                [&, is_on] { return is_on ? toml_string(*rule.run) : std::string(); }},
        "the device for run, param and state at once");
  v.key("run", rule.run, by_default("(the device of the run)"), written_if(!is_on),
        "where an operator computes; its backward follows");
  v.key("param", rule.param, by_default("(where its readers run)"),
        written_if(!is_on || rule.param != rule.run), "home of a parameter's compute-type weight");
  v.key("state", rule.state, by_default("(param)"), written_if(!is_on || rule.state != rule.run),
        "home of the master weight and moments, and where the update runs");
  v.key("acts", rule.acts, by_default("\"keep\""),
        "what becomes of an operator's results between forward and backward");
  v.key("lookahead", rule.lookahead, by_default("1"), between(0, 64),
        "for weights and activations that live elsewhere: how many uses ahead they are fetched; "
        "for a table of the host that is sent as rows, if a rule sets 1 or more: the next step's "
        "rows are copied during this one (more acts as 1)");
  v.key("ship", rule.ship, by_default("\"auto\""), one_of("auto|rows|results"),
        "for lookups in a table of the host that another device reads: rows: each row once, with "
        "an index; results: one row for each id; auto: the one with fewer bytes");
  v.key("cache", cache_form(rule.cache),
        "for a table of the host that another device reads: the size of that device's cache of the "
        "rows that the data names most often, with their optimizer states, \"2GiB\", or a part of "
        "the table, \"10%\"");
  v.key("shard", rule.shard, by_default("\"whole\""),
        one_of("whole|rows|columns|state|state+gradient|table|heads"),
        "what each of several ranks keeps of a parameter; rows: of a table that only lookups read, "
        "the rows r, r + ranks, ... with their optimizer states; table: whole tables, each on one "
        "rank; columns of a table, rows or columns of a matrix that only products read: equal "
        "blocks of neighbours along the file's axis 0 or 1, with their optimizer states; heads: of "
        "a matrix next to attention, blocks of whole heads; state: the optimizer's states of one "
        "part of it (ZeRO-1); state+gradient: of the gradient, too (ZeRO-2)");
}

std::vector<std::string> names_in_rule(void (*visit_rule)(KeyVisitor&, PolicyRule&)) {
  PolicyRule any;
  return names_of_keys([&](KeyVisitor& v) { visit_rule(v, any); });
}

std::vector<KeyInfo> all_keys() {
  static std::deque<std::string> paths, texts;  // those made here
  std::vector<KeyInfo> keys(std::begin(keys_of_file), std::end(keys_of_file));
  for (KeyInfo& key : keys) {
    if (key.path.starts_with("devices")) key.help = texts.emplace_back(with_devices(key.help));
  }
  PolicyRule any;
  const std::vector<KeyInfo> of_rule = list_keys([&](KeyVisitor& v) { visit(v, any); });
  for (const std::string_view rule : {"rules[]", "auto[]"}) {
    keys.push_back({rule, table, "", "", "one rule: a selector, filters, attributes"});
    for (const KeyInfo& key : of_rule) {
      keys.push_back(key);
      keys.back().path = paths.emplace_back(std::string(rule) + "." + std::string(key.path));
    }
  }
  return keys;
}

}  // namespace

void visit(KeyVisitor& v, PolicyRule& rule) {
  v.key("at",
        KeyForm{selector_value, [&](const Found& found) { rule.at = Selector(found.value.text); },
                [&] { return toml_string(rule.at.text()); }},
        required, "which operators and parameters: an anchored glob over whole paths");
  visit_filters(v, rule);
  visit_attributes(v, rule);
  v.key("need",
        word(
            "require|prefer", [&] { return rule.prefer ? 1 : 0; },
            [&](std::size_t number) { rule.prefer = number == 1; }),
        written_if(rule.prefer),
        "prefer: fall back where a device has no kernel, instead of an error");
  v.key("optional", rule.optional, written_if(rule.optional), "the rule may match nothing");
  v.key("why", text_or_none(rule.why), "a remark that explanations repeat");
  v.when_read([](const TableReader& table) {
    static const std::vector<std::string> attributes = names_in_rule(visit_attributes);
    if (std::none_of(attributes.begin(), attributes.end(),
                     [&](const std::string& key) { return table.find(key) != nullptr; }))
      table.report(table.where(), "", "this rule sets nothing", "one of " + joined(attributes));
  });
}

const std::vector<std::string>& rule_keys() {
  static const std::vector<std::string> names = names_in_rule(visit);
  return names;
}

const std::vector<std::string>& rule_filters() {
  static const std::vector<std::string> names = names_in_rule(visit_filters);
  return names;
}

const KeyTable& policy_keys() {
  static const std::vector<KeyInfo> keys = all_keys();
  static const std::string head = with_devices(page_head);
  static const KeyTable table{"policy.toml", keys, other_words, head, "The file"};
  return table;
}

}  // namespace tandem
