// The keys of [model] and [precision].
#include "engine/config/keys/key_visitor.h"

namespace tandem {
namespace {

using Kind = ConfigValue::Kind;

KeyForm extents(std::map<std::string, std::int64_t>& member) {
  return {table_value,
          [&](const Found& found) {
            for (const auto& extent : found.value.members) {
              if (extent.value.kind == Kind::integer) member[extent.key] = extent.value.integer;
            }
          },
          [&] {
            std::vector<std::pair<std::string, std::string>> values;
            for (const auto& [name, extent] : member)
              values.emplace_back(toml_key(name), std::to_string(extent));
            return toml_table(values);
          }};
}

/// A word for all operators, or a list of rules.
KeyForm mode_rules(std::vector<ModeRule>& member, std::string_view words) {
  return {string_value | list_value,
          [&member, words](const Found& found) {
            member.clear();
            const bool is_word = found.value.kind == Kind::string;
            if (is_word && found.value.text != words_of(words).front())  // as without a key
              member.push_back({"**", found.value.text});
            for (const ConfigValue& item : found.value.items) {
              const ConfigValue *at = item.find("at"), *mode = item.find("mode");
              if (item.kind != Kind::table || at == nullptr || mode == nullptr) continue;
              if (at->kind != Kind::string || mode->kind != Kind::string) continue;
              member.push_back({at->text, mode->text, item.where});
            }
          },
          [&member, words] {
            if (member.empty()) return toml_string(words_of(words).front());
            if (member.size() == 1 && member[0].at == "**") return toml_string(member[0].mode);
            std::vector<std::string> rules;
            for (const ModeRule& rule : member) {
              rules.push_back(
                  toml_table({{"at", toml_string(rule.at)}, {"mode", toml_string(rule.mode)}}));
            }
            return toml_list(rules);
          },
          std::string(words)};
}

KeyForm compute_type(DType& member) {
  return {string_value,
          [&](const Found& found) { member = dtype_from_name(found.value.text).value_or(member); },
          [&] { return toml_string(name_of(member)); }, "float32|bfloat16|float16"};
}

/// Unset: dynamic.
KeyForm loss_scale(std::optional<double>& member) {
  return {string_value | number_value,
          [&](const Found& found) {
            if (found.value.kind != Kind::string) member = found.value.number;
          },
          [&] { return member ? toml_number(*member) : toml_string("dynamic"); }, "dynamic"};
}

bool has_dynamic_scale(const PrecisionConfig& c) { return c.scales_loss() && !c.loss_scale; }

KeyForm kept_operators(std::vector<PrecisionConfig::Kept>& member) {
  return {list_value,
          [&](const Found& found) {
            for (const ConfigValue& item : found.value.items) {
              if (item.kind == Kind::string) member.push_back({item.text, item.where});
            }
          },
          [&] { return toml_texts(member, &PrecisionConfig::Kept::at); }};
}

/// Keys of the file that mean nothing under what `chosen` says are refused; where the command line
/// chose, they are left out.
void refuse_keys_under(const TableReader& table, std::string_view chosen,
                       const std::string& choice_text,
                       std::initializer_list<std::string_view> keys) {
  const ConfigValue* choice = table.find(chosen);
  for (const std::string_view key : keys) {
    const ConfigValue* value = table.valid(key);
    const std::string refusal = "not an option of " + choice_text;
    if (value && !table.leaves_out(key, choice, refusal)) table.report(value->where, key, refusal);
  }
}

void check_loss_scale(const TableReader& table, PrecisionConfig& c) {
  const PrecisionConfig defaults;
  if (!c.scales_loss()) {
    refuse_keys_under(table, "compute", "compute = \"" + std::string(name_of(c.compute)) + "\"",
                      {"loss_scale", "growth_interval"});
    c.loss_scale = defaults.loss_scale;
  } else if (c.loss_scale) {
    refuse_keys_under(table, "loss_scale", "a fixed loss_scale", {"growth_interval"});
  }
  if (!has_dynamic_scale(c)) c.growth_interval = defaults.growth_interval;
}

}  // namespace

void visit(KeyVisitor& v, ModelConfig& c) {
  v.place(c.where);
  v.key("file", path(c.file), required, "the ONNX file");
  v.key("bind", extents(c.bind),
        parts(".*", integer_value, "extent of this dimension, or value of this input", at_least(0)),
        "extents of free dimensions by name; the batch follows from batch_size; inputs that hold "
        "nothing under an extent of 0, such as empty caches, need no data. By its name also an "
        "input of one whole number or boolean that is the same in every step: use_cache_branch = 0 "
        "chooses the half of a merged decoder that reads no cache");
  const auto rules = [&](std::string_view name, std::vector<ModeRule>& member,
                         std::string_view words, std::string_view operators,
                         std::string_view help) {
    v.key(name, mode_rules(member, words), parts("[]", table_value, "one rule"),
          parts("[].at", selector_value, required, operators),
          parts("[].mode", string_value, required, one_of(words), "as the word for all"), help);
  };
  rules("batch_norm", c.batch_norm, "train|inference|file", "which BatchNormalization",
        "BatchNormalization in training: train normalises by the batch and moves the running "
        "statistics, whatever the file says; inference normalises by the running statistics, which "
        "stay; file follows the file for each node: its training_mode or, from torch.export, its "
        "name and metadata. One word for all, or a list of rules { at, mode } of which the last "
        "one that covers an operator counts; what no rule covers trains");
  rules("random", c.random, "known|train|always", "which operators that draw random numbers",
        "random numbers outside of training (Dropout is always off there): known leaves out those "
        "that modules have only in training and whose form is recognised (stochastic depth, "
        "dropout as a chain of operators, noise); train leaves out others, too, by their mean; "
        "always draws them in evaluation, prediction and the exported file as well. One word for "
        "all, or a list of rules { at, mode } as for batch_norm");
  v.key(
      "sync_batch_norm", c.sync_batch_norm,
      "of several ranks: BatchNormalization takes its statistics from the samples of all of them, "
      "not of each by itself");
}

void visit(KeyVisitor& v, PrecisionConfig& c) {
  v.key("compute", compute_type(c.compute),
        "of products and convolutions, on devices that are fast with it; masters, moments, "
        "statistics and losses stay float32");
  v.key("loss_scale", loss_scale(c.loss_scale), between(1e-6, 1e30), written_if(c.scales_loss()),
        "gradients are those of the loss times this (float16). dynamic: from 65536 on, halved "
        "where a gradient is not finite, which leaves that step out");
  v.key("growth_interval", c.growth_interval, at_least(1), written_if(has_dynamic_scale(c)),
        "steps without such a gradient until a dynamic scale doubles");
  v.key("keep_float32", kept_operators(c.keep_float32), written_if(!c.keep_float32.empty()),
        parts("[]", selector_value, "which operators"), "operators that stay float32 there, too");
  v.key("tf32", c.tf32,
        "float32 products and convolutions on a GPU of NVIDIA's read their operands with 10 bits "
        "of mantissa instead of 23, and add in float32; other devices compute as without it");
  v.when_read([&](const TableReader& table) { check_loss_scale(table, c); });
}

}  // namespace tandem
