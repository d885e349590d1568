// The keys of [model] and [precision].
#include "engine/training/config/key_visitor.h"

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
        parts(".*", integer_value, "extent of this dimension", at_least(0)),
        "extents of free dimensions by name; the batch follows from batch_size; inputs that hold "
        "nothing under an extent of 0, such as empty caches, need no data");
  v.key("batch_norm", true_or_false(c.train_batch_norm, "train|inference"),
        "BatchNormalization in inference form: train it, or keep its statistics fixed");
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
