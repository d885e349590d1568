// The options of optimizers, and the schedule.
#include "engine/training/config/optimizer_keys.h"

#include <algorithm>
#include <deque>
#include <stdexcept>

#include "engine/training/config/key_visitor.h"
#include "engine/training/config/optimizer_options.h"

namespace tandem {
namespace {

using Kind = ConfigValue::Kind;

constexpr unsigned boolean = boolean_value, number = number_value, string = string_value,
                   selector_text = selector_value, table = table_value, list = list_value;

// clang-format off: one key a line.
// path, type, default, allowed, later, help, low, high
constexpr KeyInfo table_of_keys[] = {
    {"optimizer.kind", string, "required", names_of<OptimizerKind>, "rmsprop",
     "the rule (rowwise_adagrad, group_ftrl: for parameters of two dimensions or more)"},
    {"optimizer.lr", number, "0.001", "", "", "learning rate", 0},
    {"optimizer.weight_decay", number, "0.0", "", "",
     "added to the gradient (sgd, adam, lazy_adam, adagrad, rowwise_adagrad); decoupled for adamw, "
     "where the default is 0.01, and for lamb",
     0},
    {"optimizer.momentum", number, "0.0", "", "", "sgd", 0, 1},
    {"optimizer.dampening", number, "0.0", "", "", "sgd", 0, 1},
    {"optimizer.nesterov", boolean, "false", "", "", "sgd with momentum and without dampening"},
    {"optimizer.betas", list, "[0.9, 0.999]", "", "",
     "decay of both moments (adam, adamw, lazy_adam, lamb)"},
    {"optimizer.betas[]", number, "", "", "", "below 1", 0, 1},
    {"optimizer.beta1", number, "(betas)", "", "", "the first of betas", 0, 1},
    {"optimizer.beta2", number, "(betas)", "", "", "the second of betas", 0, 1},
    {"optimizer.eps", number, "1e-8", "", "",
     "added to the root of the second moment (adam, adamw, lazy_adam, lamb) or of the sum "
     "(adagrad, rowwise_adagrad); by default 1e-10 for adagrad, 1e-6 for lamb",
     0},
    {"optimizer.epsilon", number, "(eps)", "", "", "another name of eps", 0},
    {"optimizer.epsilon_form", string, "\"pytorch\"", names_of<EpsilonForm>, "",
     "eps added after (pytorch) or before (onnx) bias correction"},
    {"optimizer.bias_correction", boolean, "true", "", "",
     "of both moments (adam, adamw, lazy_adam, lamb)"},
    {"optimizer.lr_decay", number, "0.0", "", "",
     "lr / (1 + (step - 1) lr_decay) (adagrad, rowwise_adagrad)", 0},
    {"optimizer.initial_accumulator", number, "0.0", "", "",
     "where the sum of squares starts (adagrad, rowwise_adagrad; ftrl and group_ftrl, where the "
     "default is 0.1)",
     0},
    {"optimizer.l1", number, "0.0", "", "", "makes weights exactly 0 (ftrl, group_ftrl)", 0},
    {"optimizer.l2", number, "0.0", "", "", "pulls weights to 0 (ftrl, group_ftrl)", 0},
    {"optimizer.beta", number, "0.0", "", "",
     "added to the root of the accumulator (ftrl, group_ftrl)", 0},
    {"optimizer.l2_shrinkage", number, "0.0", "", "",
     "adds 2 l2_shrinkage w to the gradient of linear (ftrl, group_ftrl)", 0},
    {"optimizer.lr_power", number, "-0.5", "", "",
     "power of the accumulator in the rate (ftrl, group_ftrl)", -10, 0},
    {"optimizer.l21", number, "0.0", "", "", "makes whole rows exactly 0 (group_ftrl)", 0},
    {"optimizer.dialect", string, "\"mcmahan\"", names_of<FtrlForm>, "",
     "l2 |w|^2 / 2 as in the paper, or l2 |w|^2 as in TensorFlow and MindSpore (ftrl, group_ftrl)"},
    {"optimizer.always_adapt", boolean, "true", "", "",
     "false: no ratio of norms where weight_decay is 0 (lamb)"},
    {"optimizer.trust_clip", number, "0.0", "", "",
     "the ratio of norms is at most this; 0: no bound (lamb)", 0},
    {"optimizer.groups", list, "[]", "", "",
     "other options for some parameters; the last group that covers one takes it"},
    {"optimizer.groups[]", table, "", "", "",
     "a selector and the options that differ, kind included"},
    {"optimizer.groups[].at", selector_text, "required", "", "", "which parameters"},
    {"optimizer.groups[].kind", string, "(optimizer.kind)", names_of<OptimizerKind>, "rmsprop",
     "the rule"},
};
// clang-format on

std::vector<KeyInfo> make_rows() {
  static std::deque<std::string> texts;  // of the paths made here
  std::vector<std::string_view> options{"lr"};
  for (const OptionUse& use : option_uses) {
    options.push_back(use.key);
    if (use.key == "betas") options.push_back("betas[]");
  }
  std::vector<KeyInfo> keys(std::begin(table_of_keys), std::end(table_of_keys));
  for (const std::string_view option : options) {  // a group takes every option
    const auto* base = std::find_if(
        std::begin(table_of_keys), std::end(table_of_keys),
        [&](const KeyInfo& k) { return k.path == "optimizer." + std::string(option); });
    if (base == std::end(table_of_keys))
      throw std::logic_error("optimizer." + std::string(option) + " is missing in table_of_keys");
    KeyInfo copy = *base;
    texts.push_back("optimizer.groups[]." + std::string(option));
    copy.path = texts.back();
    if (!option.ends_with("[]")) {
      texts.push_back("(optimizer." + std::string(option) + ")");
      copy.fallback = texts.back();
    }
    keys.push_back(copy);
  }
  return keys;
}

// Keys of a table that mean something for another kind only.
void refuse_keys(const TableReader& table, const std::string& kind,
                 std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const ConfigValue* value = table.valid(key);
    if (!value) continue;
    table.report(value->where, key, "not an option of " + kind);
  }
}

// Lays the keys of a table over options that hold the defaults of the kind, or another table's
// values.
void overlay_options(const TableReader& table, OptimizerOptions& to) {
  table.read("lr", to.lr);
  for (const OptionUse& use : option_uses) {
    if (use.number != nullptr) table.read(use.key, to.*use.number);
  }
  table.read("nesterov", to.nesterov);
  std::vector<double> betas;
  table.read("betas", betas);
  if (const ConfigValue* list = table.valid("betas")) {
    const bool reported = std::any_of(list->items.begin(), list->items.end(),
                                      [](const auto& item) { return item.kind == Kind::invalid; });
    if (betas.size() == 2 && !reported) {
      to.beta1 = betas[0];
      to.beta2 = betas[1];
    } else if (!reported && (moment_kinds & kinds(to.kind)) != 0) {
      table.report(table.find("betas")->where, "betas", "wrong length", "two numbers",
                   std::to_string(betas.size()));
    }
    refuse_keys(table, "a table that has betas", {"beta1", "beta2"});
  }
  table.read("beta1", to.beta1);
  table.read("beta2", to.beta2);
  table.read("epsilon", to.eps);
  if (table.valid("eps")) refuse_keys(table, "a table that has eps", {"epsilon"});
  table.read("epsilon_form", to.epsilon_form);
  table.read("bias_correction", to.bias_correction);
  table.read("dialect", to.dialect);
  table.read("always_adapt", to.always_adapt);
}

/// `base`: the checked options that a group's lie over; what they have in common was reported
/// there.
void check_options(const TableReader& table, const OptimizerOptions& options,
                   const OptimizerOptions* base = nullptr) {
  const std::string kind(choice_name(options.kind));
  for (const OptionUse& use : option_uses) {
    if (!knows(options.kind, use)) refuse_keys(table, kind, {use.key});
  }
  if (options.kind == OptimizerKind::sgd) {
    const bool inherited = base && base->kind == options.kind && base->nesterov &&
                           base->momentum == options.momentum &&
                           base->dampening == options.dampening;
    if (options.nesterov && (options.momentum <= 0 || options.dampening != 0) && !inherited) {
      table.report(table.where(), "nesterov", "Nesterov needs momentum above 0 and no dampening");
    }
  } else if ((moment_kinds & kinds(options.kind)) != 0) {
    const bool inherited = base && (moment_kinds & kinds(base->kind)) != 0 &&
                           base->beta1 == options.beta1 && base->beta2 == options.beta2;
    if ((options.beta1 >= 1 || options.beta2 >= 1) && !inherited) {
      const ConfigValue* list = table.valid("betas");
      table.report(list ? list->where : table.where(), "betas", "out of range", "below 1",
                   toml_number(std::max(options.beta1, options.beta2)));
    }
  }
}

// Defaults that depend on the kind, where the optimizer's table says nothing else.
void fill_defaults(const TableReader& table, OptimizerOptions& to) {
  if (!table.valid("weight_decay")) to.weight_decay = to.kind == OptimizerKind::adamw ? 0.01 : 0.0;
  if (!table.valid("eps") && !table.valid("epsilon"))
    to.eps = to.kind == OptimizerKind::adagrad ? 1e-10
             : to.kind == OptimizerKind::lamb  ? 1e-6
                                               : 1e-8;
  if (!table.valid("initial_accumulator"))
    to.initial_accumulator = (ftrl_kinds & kinds(to.kind)) != 0 ? 0.1 : 0.0;
}

std::vector<std::pair<std::string, std::string>> option_lines(const OptimizerOptions& options) {
  std::vector<std::pair<std::string, std::string>> lines = {
      {"kind", toml_string(choice_name(options.kind))}, {"lr", toml_number(options.lr)}};
  const auto flag = [](bool value) { return std::string(value ? "true" : "false"); };
  for (const OptionUse& use : option_uses) {
    if (use.number != nullptr && knows(options.kind, use))
      lines.emplace_back(use.key, toml_number(options.*use.number));
  }
  if (options.kind == OptimizerKind::sgd) lines.emplace_back("nesterov", flag(options.nesterov));
  if ((moment_kinds & kinds(options.kind)) != 0) {
    lines.emplace_back("betas",
                       toml_list({toml_number(options.beta1), toml_number(options.beta2)}));
    if ((adam_kinds & kinds(options.kind)) != 0)
      lines.emplace_back("epsilon_form", toml_string(choice_name(options.epsilon_form)));
    lines.emplace_back("bias_correction", flag(options.bias_correction));
  }
  if ((lamb_kinds & kinds(options.kind)) != 0)
    lines.emplace_back("always_adapt", flag(options.always_adapt));
  if ((ftrl_kinds & kinds(options.kind)) != 0)
    lines.emplace_back("dialect", toml_string(choice_name(options.dialect)));
  return lines;
}

}  // namespace

const std::vector<KeyInfo>& optimizer_rows() {
  static const std::vector<KeyInfo> rows = make_rows();
  return rows;
}

void read_optimizer(const TableReader& table, OptimizerConfig& to) {
  table.read("kind", to.base.kind);
  fill_defaults(table, to.base);
  overlay_options(table, to.base);
  check_options(table, to.base);
  for (const TableReader& rule : table.tables("groups")) {
    OptimizerGroup& group = to.groups.emplace_back();
    group.where = rule.where();
    rule.read("at", group.at);
    group.options = to.base;
    rule.read("kind", group.options.kind);
    fill_defaults(table, group.options);
    overlay_options(rule, group.options);
    check_options(rule, group.options, &to.base);
  }
}

std::vector<std::pair<std::string, std::string>> optimizer_lines(const OptimizerConfig& config) {
  auto lines = option_lines(config.base);
  std::string groups;
  for (const OptimizerGroup& group : config.groups) {
    groups += (groups.empty() ? "[\n" : "") + std::string("  { at = ") + toml_string(group.at);
    for (const auto& [key, value] : option_lines(group.options))
      groups += ", " + key + " = " + value;
    groups += " },\n";
  }
  if (!groups.empty()) lines.emplace_back("groups", groups + "]");
  return lines;
}

}  // namespace tandem
