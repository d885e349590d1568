#include "placement/policy_keys.h"

#include <deque>
#include <string>

#include "engine/graph/text.h"
#include "placement/device_use.h"

namespace tandem {
namespace {

constexpr unsigned boolean = boolean_value, integer = integer_value, string = string_value,
                   path = path_value, selector = selector_value, table = table_value,
                   list = list_value;

// clang-format off: one key a line.
constexpr KeyInfo table_of_keys[] = {
    {"policy", integer, "required", "", "version of this file's form: 1"},
    {"auto", list, "[]", "",
     "rules written by `tandem policy auto`, replaced whole; same keys as in rules"},
    {"rules", list, "[]", "",
     "your rules, applied after auto; later lines win, attribute by attribute"},
    {"model", path | table, "", "",
     "the model that this policy was written for: with another one a warning names both"},
    {"model.file", path, "", "", "its file"},
    {"model.structure", string, "", "", "hash of its names and shapes, written by tools"},
    {"devices", table, "", "", "what device names stand for; $NAMES exist without"},
    {"devices.*", table, "", "", "one device, by the name that rules use"},
    {"devices.*.use", string, "(as the name says)", "", "$USES; N from 0 to 63"},
    {"devices.*.memory", string, "\"auto\"", "",
     "limit: a size (\"20GiB\"), a part of what it has (\"90%\") or \"auto\""},
    {"devices.*.threads", integer | string, "\"physical\"", "",
     "compute threads of the cpu: a number, which goes before the key threads of train.toml, or "
     "\"physical\""},
    {"devices.*.bandwidth", string, "", "", "of $LINKED's link, each way: \"25GB/s\""},
    {"devices.*.latency", string, "", "", "of $LINKED's link: \"10us\""},
    {"rules[]", table, "", "", "one rule: a selector, filters, attributes"},
    {"rules[].at", selector, "required", "",
     "which operators and parameters: an anchored glob over whole paths"},
    {"rules[].op", string, "", "", "only operators of this type (parameters: read by such alone)"},
    {"rules[].min", string, "", "",
     "only parameters of at least this many bytes (\"64MiB\"), and operators that read one"},
    {"rules[].after", selector, "", "", "only what depends on these operators or values"},
    {"rules[].before", selector, "", "", "only what these operators or values depend on"},
    {"rules[].on", string, "", "", "the device for run, param and state at once"},
    {"rules[].run", string, "(the device of the run)", "",
     "where an operator computes; its backward follows"},
    {"rules[].param", string, "(where its readers run)", "",
     "home of a parameter's compute-type weight"},
    {"rules[].state", string, "(param)", "",
     "home of the master weight and moments, and where the update runs"},
    {"rules[].acts", string, "\"keep\"", "keep|offload|recompute",
     "what becomes of an operator's results between forward and backward"},
    {"rules[].lookahead", integer, "1", "",
     "of weights and activations that live elsewhere: how many uses ahead they are fetched; of a "
     "host's table that is sent as rows, where a rule sets 1 or more: the next step's rows cross "
     "during this one (more acts as 1)",
     0, 64},
    {"rules[].ship", string, "\"auto\"", "auto|rows|results",
     "of lookups in a host's table that another device reads: rows: each row once, with an index; "
     "results: one row an id; auto: the fewer bytes"},
    {"rules[].cache", string, "", "",
     "of a host's table that another device reads: the size of that device's cache of the rows "
     "that "
     "the data names most often, with their optimizer states, \"2GiB\", or a part of the table, "
     "\"10%\""},
    {"rules[].shard", string, "\"whole\"", "whole|rows|columns|state|state+gradient|table|heads",
     "what each of several ranks keeps of a parameter; rows: of a table that lookups alone read, "
     "the rows r, r + ranks, ... with their optimizer states; table: whole tables, each with one "
     "rank; columns of a table, rows or columns of a matrix that products alone read: as many "
     "neighbours along the file's axis 0 or 1, with their optimizer states; heads: of a matrix "
     "beside attention, the "
     "axis that has whole heads; state: the optimizer's states of one part of it (ZeRO-1); "
     "state+gradient: of the gradient, too (ZeRO-2)"},
    {"rules[].need", string, "\"require\"", "require|prefer",
     "prefer: fall back where a device has no kernel, instead of an error"},
    {"rules[].optional", boolean, "false", "", "the rule may match nothing"},
    {"rules[].why", string, "", "", "a remark that explanations repeat"},
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
    "--policy` "
    "shows one key.\n\n"
    "- One rule a line. The last rule that matches wins, attribute by attribute, in this order: "
    "the "
    "device of the run, `auto`, `rules`, `--place`.\n"
    "- A selector is an anchored glob over whole paths: `*` and `?` stop at `.` and `:`; a leading "
    "`**.` and a trailing `.**` match zero or more parts; `{0..5}` is a range, `{a,b}` a set, "
    "`re:'...'` a regular expression. Without `:` it also covers the parameters that are read only "
    "there.\n"
    "- A device is `cpu`, $RANGES, or a name of the table `devices`. `--device $BINDING` binds a "
    "name. What is said of two names for one device holds for both, and must agree.\n"
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

std::vector<KeyInfo> all_keys() {
  static std::deque<std::string> paths, texts;  // those made here
  std::vector<KeyInfo> keys;
  for (const KeyInfo& key : table_of_keys) {
    keys.push_back(key);
    if (key.path.starts_with("devices"))
      keys.back().help = texts.emplace_back(with_devices(key.help));
  }
  for (const KeyInfo& key : table_of_keys) {  // the items of auto
    if (!key.path.starts_with("rules[]")) continue;
    keys.push_back(key);
    keys.back().path = paths.emplace_back("auto" + std::string(key.path.substr(5)));
  }
  return keys;
}

}  // namespace

const KeyTable& policy_keys() {
  static const std::vector<KeyInfo> keys = all_keys();
  static const std::string head = with_devices(page_head);
  static const KeyTable table{"policy.toml", keys, other_words, head, "The file"};
  return table;
}

}  // namespace tandem
