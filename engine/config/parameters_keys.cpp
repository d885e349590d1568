// The keys of [parameters].
#include <concepts>

#include "engine/config/keys/key_visitor.h"
#include "engine/formats/weights/name_rules.h"
#include "engine/formats/weights/weights_file.h"
#include "engine/passes/adapters/adapter_kind.h"

namespace tandem {

DEFINE_COPIES(ParametersConfig);
bool ParametersConfig::operator==(const ParametersConfig&) const = default;

bool packs(const StorageRule& rule) {
  return rule.kind != StorageKind::float32 && rule.kind != StorageKind::split_bfloat16;
}

template <std::derived_from<InitDefaults> Kind>
static void visit(KeyVisitor&, Kind&) {}
static void visit(KeyVisitor& v, ConstantInit& c) { v.key("value", c.value, "of all elements"); }
static void visit(KeyVisitor& v, NormalInit& c) {
  v.key("mean", c.mean, "the middle");
  v.key("std", c.std, at_least(0), "the standard deviation");
}
static void visit(KeyVisitor& v, UniformInit& c) {
  v.key("low", c.low, "the least value");
  v.key("high", c.high, "the greatest value");
  v.when_read([&](const TableReader& table) {
    if (c.low > c.high) table.report(table.where(), "low", "low is above high");
  });
}

namespace {

constexpr std::string_view vocabulary_head = "vocabulary(";

/// A number, or "vocabulary(FIELD)".
KeyForm table_rows(ShapeRule& rule) {
  return {integer_value | string_value,
          [&](const Found& found) {
            rule.rows = found.value.integer;
            if (found.value.kind == ConfigValue::Kind::integer) return;
            std::string_view text = found.value.text;
            if (text.starts_with(vocabulary_head) && text.ends_with(")")) {
              text.remove_prefix(vocabulary_head.size());
              text.remove_suffix(1);
              rule.vocabulary = text;
            }
            if (rule.vocabulary.empty())
              found.report("not a number of rows", "a number, or \"vocabulary(FIELD)\"",
                           toml_string(found.value.text));
          },
          [&] {
            if (rule.vocabulary.empty()) return std::to_string(rule.rows);
            return toml_string(std::string(vocabulary_head) + rule.vocabulary + ")");
          }};
}

void visit_freeze(KeyVisitor& v, FreezeRule& rule) {
  v.key("at", selector(rule.at), required, "which parameters");
  v.key("until", rule.until, by_default("(the whole run)"), "train them after this");
  v.key("from", rule.from, by_default("(the first step)"),
        "freeze them after this, for the rest of the run");
  v.when_read([&](const TableReader& table) {
    if (rule.until && rule.until->unit == Duration::Unit::seconds)
      table.report(table.find("until")->where, "until", "parameters thaw after steps or epochs");
    if (rule.from && rule.from->unit == Duration::Unit::seconds)
      table.report(table.find("from")->where, "from", "parameters freeze after steps or epochs");
    if (rule.from && rule.until)
      table.report(table.find("from")->where, "from",
                   "a rule freezes until some step or from one on", "until or from, not both");
  });
}

/// Pairs of patterns of names: [["model.**", "**"], ...].
KeyForm rename_pairs(std::vector<RenamePair>& member) {
  return {list_value,
          [&](const Found& found) {
            for (const ConfigValue& item : found.value.items) {
              if (item.kind != ConfigValue::Kind::list) continue;
              constexpr std::size_t parts = 2;
              if (item.items.size() != parts) {
                found.table.report(item.where, found.key, "not a pair of names",
                                   "an old one and a new one, like [\"model.**\", \"**\"]",
                                   std::to_string(item.items.size()) + " texts");
                continue;
              }
              const std::string &from = item.items[0].text, &to = item.items[1].text;
              if (item.items[0].kind != ConfigValue::Kind::string ||
                  item.items[1].kind != ConfigValue::Kind::string)
                continue;
              const std::string problem = name_pattern_problem(from, to);
              if (problem.empty())
                member.emplace_back(from, to);
              else
                found.table.report(item.where, found.key, problem, "",
                                   toml_list_of_strings({from, to}));
            }
          },
          [&] {
            std::vector<std::string> texts;
            for (const auto& [from, to] : member) texts.push_back(toml_list_of_strings({from, to}));
            return toml_list(texts);
          }};
}

KeyForm selector_or_none(std::string& member) {
  KeyForm result = selector(member);
  result.write = text_or_none(member).write;
  return result;
}

void visit_load(KeyVisitor& v, LoadRule& rule) {
  static const std::string from = "a file of weights that ends in " + known_weights() +
                                  ", whose best checkpoint is taken, else the newest";
  v.key("from", path(rule.from), required, from);
  v.key("at", selector(rule.at), "which parameters");
  v.key("strip", text_or_none(rule.strip), "a prefix that the file's names lose first");
  v.key("rename", rename_pairs(rule.rename),
        parts("[]", list_value, "an old and a new name; the first pair that matches counts"),
        parts("[][]", string_value, "a name, in which * and ** stand for what they matched"),
        "what the file's names become");
  v.key("add", text_or_none(rule.add), "a prefix that the file's names get last");
  v.key(
      "transpose", selector_or_none(rule.transpose),
      "matrices that the file has the other way round, as PyTorch's Linear has them for a MatMul");
  v.key("missing", true_or_false(rule.missing_is_error, "error|keep"),
        "a covered parameter that the file lacks: an error, or it keeps its value");
  v.key("unexpected", true_or_false(rule.unexpected_is_error, "error|ignore"),
        "a covered tensor that the model lacks: an error, or it is left out");
  v.key("other_shape", true_or_false(rule.other_shape_is_error, "error|keep"),
        "a parameter that has another shape in the file: an error, or it keeps its value");
  v.when_read([&](const TableReader& table) {
    if (rule.from.empty() || weights_format_of(rule.from) != nullptr) return;
    table.report(table.find("from")->where, "from", "unknown kind of file", known_weights(),
                 rule.from);
  });
}

void visit_init(KeyVisitor& v, InitRule& rule) {
  v.key("at", selector(rule.at), required, "which parameters");
  v.key("kind", rule.kind, required, "the distribution");
  v.of_kind(rule.kind, passed_over);  // in resolved files of earlier versions
}

void visit_shape(KeyVisitor& v, ShapeRule& rule) {
  v.key("at", selector(rule.at), required, "which parameters");
  v.key("rows", table_rows(rule), required, at_least(1),
        "extent of axis 0, or \"vocabulary(FIELD)\"; without an init rule they start at zero");
}

void visit_storage(KeyVisitor& v, StorageRule& rule) {
  v.key("at", selector(rule.at), required, "which parameters");
  v.key("kind", rule.kind, required,
        "split_bfloat16: lookups read, and links transfer, the value rounded to bfloat16; updates "
        "of rows work on the whole float32. Others than float32: matrices that do not train lie "
        "packed in memory, and are computed with in float32");
  v.key("block", rule.block, at_least(0),
        "for int8, int4 and nf4: neighbours in a row that share a scale; 0: 64 for nf4, else 32");
  v.when_read([&](const TableReader& table) {
    constexpr std::int64_t vector = 8;
    if (rule.block % vector != 0)
      table.report(table.find("block")->where, "block", "not a multiple of 8", "32, 64, ...",
                   std::to_string(rule.block));
  });
}

KeyForm row_numbers(std::vector<std::int64_t>& member) {
  return {list_value,
          [&](const Found& found) {
            for (const ConfigValue& item : found.value.items) {
              if (item.kind == ConfigValue::Kind::integer) member.push_back(item.integer);
            }
          },
          [&] {
            std::vector<std::string> texts;
            for (const std::int64_t row : member) texts.push_back(std::to_string(row));
            return toml_list(texts);
          }};
}

void visit_head(KeyVisitor& v, LayerRule& rule) {
  v.key("classes", rule.classes, required, at_least(1), "its outputs for a sample");
  v.key("at", selector_or_none(rule.at),
        "its weight, where the model's outputs come from several layers");
}

void visit_lora(KeyVisitor& v, AdapterRule& rule) {
  constexpr double certain = 1;
  v.key("at", selector(rule.at), required,
        "which weights of MatMul, Gemm and Conv; other parameters that it covers stay as they are; "
        "all-linear: those of every MatMul and Gemm before the output layer");
  v.key("rank", rule.rank, at_least(1), "columns of the first and rows of the second adapter");
  v.key("alpha", rule.alpha, at_least(0), "what the adapters make is multiplied by alpha / rank");
  v.key("dropout", rule.dropout, from_below(0, certain),
        "probability with which an element that adapters read is left out");
  for (const AdapterKind& kind : all_adapters()) v.key(kind.name, rule.*kind.flag, kind.help);
}

KeyForm trained_parameters(std::vector<TrainRule>& member) {
  return {list_value,
          [&](const Found& found) {
            for (const ConfigValue& item : found.value.items) {
              if (item.kind == ConfigValue::Kind::string) member.push_back({item.text, item.where});
            }
          },
          [&] { return toml_texts(member, &TrainRule::at); }};
}

void visit_fixed_rows(KeyVisitor& v, FixedRowsRule& rule) {
  v.key("at", selector(rule.at), required, "which parameters");
  v.key("rows", row_numbers(rule.rows), required, parts("[]", integer_value, at_least(0), "a row"),
        "along axis 0, from 0");
}

}  // namespace

void visit(KeyVisitor& v, ParametersConfig& c) {
  v.tables("freeze", c.freeze, "one rule", visit_freeze,
           "parameters that do not train; only the last rule that covers a parameter decides, and "
           "a rule that decides nothing is reported");
  v.tables("load", c.load, "one rule", visit_load, "values from other files");
  v.tables("init", c.init, "one rule", visit_init, "new initial values");
  v.tables("head", c.head, "one layer", visit_head,
           "last layers that get another width, in the exported file, too: weight and bias start "
           "as PyTorch's Linear does, or by init; load skips them if a file has another shape; two "
           "rules for one layer are refused");
  v.tables("lora", c.lora, "one rule", visit_lora,
           "adapters of low rank that train in place of all other parameters; the last rule that "
           "covers a weight counts");
  v.key("train", trained_parameters(c.train), written_if(!c.train.empty()),
        parts("[]", selector_value, "which parameters"),
        "with lora: what trains in addition to the adapters and a new last layer; without it: "
        "tensors that were recognised as buffers and train nevertheless");
  v.tables("shape", c.shape, "one rule", visit_shape,
           "tables that the file holds a placeholder of: rows that they get at import, where only "
           "lookups (Gather along axis 0) read them");
  v.tables(
      "storage", c.storage, "one rule", visit_storage,
      "how parameters are kept in memory: tables that only lookups read, and matrices that do not "
      "train; the last rule that covers a parameter counts");
  v.tables("fixed_rows", c.fixed_rows, "one rule", visit_fixed_rows,
           "rows that keep the values they start with, as those of PyTorch's padding_idx; rows of "
           "several rules add up");
}

}  // namespace tandem
