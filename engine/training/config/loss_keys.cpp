#include "engine/training/config/loss_keys.h"

#include <algorithm>
#include <deque>
#include <set>

#include "engine/graph/selector.h"
#include "engine/losses/loss.h"
#include "engine/training/config/option_keys.h"

namespace tandem {
namespace {

void gather(std::vector<Gathered>& all, std::string_view kind, const LossOptionInfo& option) {
  Gathered& key = gathered(all, option.key);
  key.type |= option.type;
  key.low = std::min(key.low, option.low);
  key.high = std::max(key.high, option.high);
  key.allowed = option.allowed;
  key.item_help = option.item_help;
  say(key.helps, option.help, kind);
  say(key.fallbacks, option.fallback, kind);
}

LossOptionInfo named_value(std::string_view key, std::string_view help) {
  return {.key = key, .type = string_value, .help = help};
}

std::vector<KeyInfo> make_keys() {
  static std::deque<std::string> texts;  // that the keys point into
  const auto keep = [&](std::string text) -> std::string_view {
    return texts.emplace_back(std::move(text));
  };
  const auto path = [&](const std::string& key) { return keep("loss.terms[]." + key); };
  std::string names;
  std::vector<Gathered> read, options;
  std::vector<std::string> unweighted;
  for (const LossKind& kind : all_losses()) {
    names += (names.empty() ? "" : "|") + std::string(kind.name);
    for (const LossValue& value : kind.values)
      gather(read, kind.name, named_value(value.key, value.help));
    if (kind.labels.form != LabelForm::none)
      gather(read, kind.name, named_value(kind.labels.key, kind.labels.help));
    for (const LossOptionInfo& option : kind.options) gather(options, kind.name, option);
    if (!kind.sample_weights) unweighted.emplace_back(kind.name);
  }
  std::vector<KeyInfo> keys{
      {path("kind"), string_value, "required", keep(names), "", "the formula, in docs/losses.md"}};
  for (const Gathered& key : read)
    keys.push_back({path(key.key), string_value, "", "", "", keep(help_of(key))});
  keys.push_back({path("weight"), number_value, "1.0", "", "", "factor of this term"});
  keys.push_back({path("reduction"), string_value, "\"mean\"", joined_names<reductions>, "",
                  "over the batch (batchmean is the sum divided by the number of samples)"});
  keys.push_back({path("sample_weights"), string_value, "", "", "",
                  keep("data field with a weight for each sample, or for each position of it; a "
                       "mean divides by the sum of the weights (not for " +
                       joined(unweighted, ", ") + ")")});
  for (const Gathered& key : options) {
    const bool number = (key.type & (number_value | integer_value | list_value)) != 0;
    const double low = number ? key.low : -1e300, high = number ? key.high : 1e300;
    keys.push_back({path(key.key), key.type, keep(fallback_of(key)), keep(key.allowed), "",
                    keep(help_of(key)), low, high});
    if ((key.type & list_value) == 0) continue;
    keys.push_back(
        {path(key.key + "[]"), number_value, "", "", "", keep(key.item_help), low, high});
  }
  return keys;
}

/// A value of the file, or the default as TOML, in the option's type.
LossOption option_of(const LossOptionInfo& info, const ConfigValue& value) {
  if ((info.type & list_value) != 0) {
    if (value.kind != ConfigValue::Kind::list) return std::vector<double>{value.number};
    std::vector<double> list;
    for (const ConfigValue& item : value.items) list.push_back(item.number);
    return list;
  }
  if ((info.type & number_value) != 0) return value.number;
  if ((info.type & integer_value) != 0) return value.integer;
  if ((info.type & boolean_value) != 0) return value.boolean;
  return value.text;
}

LossOption default_of(const LossOptionInfo& info) {
  std::vector<Diagnostic> none;
  const ConfigValue root = parse_toml("x = " + std::string(info.fallback), "", none);
  return option_of(info, *root.find("x"));
}

/// Reads the options of a kind. The table of keys has the widest range of all kinds.
void read_options(const TableReader& table, LossTerm& term) {
  for (const LossOptionInfo& info : term.kind->options) {
    const ConfigValue* value = table.valid(info.key);
    if (value == nullptr) {
      if (!info.fallback.empty() && !info.fallback.starts_with('('))
        term.options.emplace(info.key, default_of(info));
      continue;
    }
    const LossOption option = option_of(info, *value);
    const auto* number = std::get_if<double>(&option);
    if (number != nullptr && (*number < info.low || *number > info.high)) {
      std::string range = info.low > -1e300 ? "at least " + toml_number(info.low) : "";
      if (info.high < 1e300)
        range += (range.empty() ? "at most " : ", at most ") + toml_number(info.high);
      table.report(value->where, info.key, "out of range for " + std::string(term.kind->name),
                   range, toml_number(*number));
    }
    const auto* list = std::get_if<std::vector<double>>(&option);
    if (list == nullptr || !list->empty()) term.options.emplace(info.key, option);
  }
}

/// The keys that a kind knows besides those of every term.
std::vector<std::string> keys_of(const LossKind& kind) {
  std::vector<std::string> keys;
  for (const LossValue& value : kind.values) keys.emplace_back(value.key);
  if (kind.labels.form != LabelForm::none) keys.emplace_back(kind.labels.key);
  if (kind.sample_weights) keys.emplace_back("sample_weights");
  for (const LossOptionInfo& option : kind.options) keys.emplace_back(option.key);
  return keys;
}

void refuse_keys_of_others(const TableReader& table, const LossKind& kind) {
  constexpr std::string_view of_every_term[] = {"kind", "weight", "reduction"};
  constexpr std::size_t prefix = std::string_view("loss.terms[].").size();
  const std::vector<std::string> known = keys_of(kind);
  for (const KeyInfo& info : loss_keys()) {
    const std::string_view key = info.path.substr(prefix);
    if (std::find(known.begin(), known.end(), key) != known.end() ||
        std::find(std::begin(of_every_term), std::end(of_every_term), key) !=
            std::end(of_every_term))
      continue;
    const ConfigValue* value = table.valid(key);
    if (value == nullptr) continue;
    const std::string near = nearest_name(key, known);
    table.report(value->where, key, "not an option of " + std::string(kind.name),
                 "its own are " + joined(known, ", "), "",
                 near.empty() ? "" : "did you mean `" + near + "`?");
  }
}

std::string read_name(const TableReader& table, std::string_view key, const LossKind& kind) {
  std::string name;
  table.read(key, name);
  if (!table.find(key)) {
    table.report(table.where(), key, "this key is missing: " + std::string(kind.name) + " needs it",
                 "string");
  }
  return name;
}

void read_term(const TableReader& table, LossTerm& term) {
  term.where = table.where();
  const ConfigValue* kind = table.valid("kind");
  term.kind = kind ? find_loss(kind->text) : nullptr;
  if (term.kind != nullptr) term.name = term.kind->name;
  table.read("name", term.name);
  table.read("weight", term.weight);
  table.read("reduction", term.reduction);
  if (term.kind == nullptr) return;  // which was reported
  for (const LossValue& value : term.kind->values)
    term.values.push_back(read_name(table, value.key, *term.kind));
  if (term.kind->labels.form != LabelForm::none)
    term.labels = read_name(table, term.kind->labels.key, *term.kind);
  if (term.kind->sample_weights) table.read("sample_weights", term.sample_weights);
  read_options(table, term);
  refuse_keys_of_others(table, *term.kind);
}

}  // namespace

const std::vector<KeyInfo>& loss_keys() {
  static const std::vector<KeyInfo> keys = make_keys();
  return keys;
}

void read_loss(const TableReader& root, LossConfig& to) {
  const TableReader table = root.table("loss");
  if (!table.exists()) return;
  to.where = table.where();
  table.read("output", to.output);
  std::set<std::string> names;
  for (const TableReader& term : table.tables("terms")) {
    LossTerm& loss = to.terms.emplace_back();
    read_term(term, loss);
    if (loss.kind != nullptr && !names.insert(loss.name).second)
      term.report(term.where(), "name", "two terms have the same name", "", loss.name);
  }
  if (!to.output.empty() && !to.terms.empty()) {
    table.report(table.where(), "output", "the graph has a loss of its own, or terms make one",
                 "output or terms, not both");
  }
}

}  // namespace tandem
