// Writes a resolved configuration as TOML that reads back to an equal one.
#include <string>

#include "engine/losses/loss.h"
#include "engine/training/config/config_names.h"
#include "engine/training/config/config_value.h"
#include "engine/training/config/optimizer_keys.h"

namespace tandem {
namespace {

class TomlWriter {
 public:
  std::string finish() { return std::move(text_); }

  void section(std::string_view name) { text_ += "\n[" + std::string(name) + "]\n"; }
  void raw(std::string_view key, const std::string& value) {
    text_ += std::string(key) + " = " + value + "\n";
  }
  void add(std::string_view key, const std::string& value) { raw(key, toml_string(value)); }
  void add(std::string_view key, double value) { raw(key, toml_number(value)); }
  void add(std::string_view key, std::int64_t value) { raw(key, std::to_string(value)); }
  void add(std::string_view key, bool value) { raw(key, value ? "true" : "false"); }
  template <class T>
  void add(std::string_view key, const std::optional<T>& value) {
    if (value) add(key, *value);
  }
  void add(std::string_view key, const Duration& value) { add(key, to_string(value)); }
  // Not at all where empty: an empty path or name means the key is absent.
  void add_text(std::string_view key, const std::string& value) {
    if (!value.empty()) add(key, value);
  }

 private:
  std::string text_;
};

std::string list_of(const std::vector<std::string>& toml_items) {
  std::string text = "[";
  for (const std::string& item : toml_items) text += (text.size() == 1 ? " " : ", ") + item;
  return text + (toml_items.empty() ? "]" : " ]");
}

std::string numbers(const std::vector<double>& values) {
  std::vector<std::string> items;
  for (double value : values) items.push_back(toml_number(value));
  return list_of(items);
}

std::string strings(const std::vector<std::string>& values) {
  std::vector<std::string> items;
  for (const std::string& value : values) items.push_back(toml_string(value));
  return list_of(items);
}

// { key = value, ... } on one line.
class Inline {
 public:
  Inline& raw(const std::string& key, const std::string& value) {
    text_ += (text_.size() == 1 ? " " : ", ") + key + " = " + value;
    return *this;
  }
  Inline& add(const std::string& key, const std::string& value) {
    return raw(key, toml_string(value));
  }
  Inline& add(const std::string& key, double value) { return raw(key, toml_number(value)); }
  Inline& flag(const std::string& key, bool value) { return raw(key, value ? "true" : "false"); }
  std::string finish() const { return text_ + (text_.size() == 1 ? "}" : " }"); }

 private:
  std::string text_ = "{";
};

void write_items(TomlWriter& out, std::string_view key, const std::vector<std::string>& items) {
  if (items.empty()) return;
  std::string text = "[\n";
  for (const std::string& item : items) text += "  " + item + ",\n";
  out.raw(key, text + "]");
}

void write_parameters(TomlWriter& out, const ParametersConfig& config) {
  if (config == ParametersConfig{}) return;
  out.section("parameters");
  std::vector<std::string> items;
  for (const FreezeRule& rule : config.freeze) {
    Inline item;
    item.add("at", rule.at);
    if (rule.until) item.add("until", to_string(*rule.until));
    items.push_back(item.finish());
  }
  write_items(out, "freeze", items);
  items.clear();
  for (const LoadRule& rule : config.load) {
    items.push_back(Inline()
                        .add("from", rule.from)
                        .add("at", rule.at)
                        .add("missing", std::string(rule.missing_is_error ? "error" : "keep"))
                        .finish());
  }
  write_items(out, "load", items);
  items.clear();
  for (const InitRule& rule : config.init) {
    items.push_back(Inline()
                        .add("at", rule.at)
                        .add("kind", std::string(choice_name(rule.kind)))
                        .add("mean", rule.mean)
                        .add("std", rule.std)
                        .add("low", rule.low)
                        .add("high", rule.high)
                        .add("value", rule.value)
                        .finish());
  }
  write_items(out, "init", items);
  items.clear();
  for (const ShapeRule& rule : config.shape) {
    Inline item;
    item.add("at", rule.at);
    if (rule.vocabulary.empty()) item.raw("rows", std::to_string(rule.rows));
    if (!rule.vocabulary.empty()) item.add("rows", "vocabulary(" + rule.vocabulary + ")");
    items.push_back(item.finish());
  }
  write_items(out, "shape", items);
  items.clear();
  for (const StorageRule& rule : config.storage) {
    items.push_back(
        Inline().add("at", rule.at).add("kind", std::string(choice_name(rule.kind))).finish());
  }
  write_items(out, "storage", items);
}

std::string option_text(const LossOption& option) {
  if (const auto* list = std::get_if<std::vector<double>>(&option)) return numbers(*list);
  if (const auto* whole = std::get_if<std::int64_t>(&option)) return std::to_string(*whole);
  if (const auto* number = std::get_if<double>(&option)) return toml_number(*number);
  if (const auto* flag = std::get_if<bool>(&option)) return *flag ? "true" : "false";
  return toml_string(std::get<std::string>(option));
}

void write_loss(TomlWriter& out, const LossConfig& config) {
  if (config.terms.empty() && config.output.empty()) return;
  out.section("loss");
  out.add_text("output", config.output);
  std::vector<std::string> items;
  for (const LossTerm& term : config.terms) {
    const LossKind& kind = *term.kind;
    Inline item;
    item.add("name", term.name).add("kind", std::string(kind.name));
    for (std::size_t i = 0; i < kind.values.size(); ++i)
      item.add(std::string(kind.values[i].key), term.values[i]);
    if (kind.labels.form != LabelForm::none) item.add(std::string(kind.labels.key), term.labels);
    if (!term.sample_weights.empty()) item.add("sample_weights", term.sample_weights);
    item.add("weight", term.weight);
    item.add("reduction", std::string(choice_name(term.reduction)));
    for (const LossOptionInfo& option : kind.options) {
      const auto found = term.options.find(option.key);
      if (found != term.options.end())
        item.raw(std::string(option.key), option_text(found->second));
    }
    items.push_back(item.finish());
  }
  write_items(out, "terms", items);
}

void write_optimizer(TomlWriter& out, const OptimizerConfig& config) {
  out.section("optimizer");
  for (const auto& [key, value] : optimizer_lines(config.base)) out.raw(key, value);
  std::vector<std::string> items;
  for (const OptimizerGroup& group : config.groups) {
    Inline item;
    item.add("at", group.at);
    for (const auto& [key, value] : optimizer_lines(group.options)) item.raw(key, value);
    items.push_back(item.finish());
  }
  write_items(out, "groups", items);
  const ScheduleConfig& schedule = config.schedule;
  Inline item;
  item.add("kind", std::string(choice_name(schedule.kind)));
  if (schedule.warmup) item.add("warmup", to_string(*schedule.warmup));
  if (schedule.kind == ScheduleKind::cosine || schedule.kind == ScheduleKind::linear) {
    item.add("final", schedule.final);
  }
  if (schedule.kind == ScheduleKind::step) {
    if (schedule.step_size) item.add("step_size", to_string(*schedule.step_size));
    item.add("gamma", schedule.gamma);
  }
  out.raw("schedule", item.finish());
  out.add("clip_norm", config.clip_norm);
}

void write_files(TomlWriter& out, const SplitConfig& split) {
  if (split.files.empty()) return;
  if (split.files.size() == 1 && split.files[0].name.empty()) {
    out.raw("files", strings(split.files[0].paths));
    return;
  }
  Inline files;
  for (const ArrayFiles& array : split.files) {
    files.raw(toml_key(array.name), strings(array.paths));
  }
  out.raw("files", files.finish());
}

std::string functions(const std::vector<Transform>& transforms) {
  std::vector<std::string> texts;
  for (const Transform& transform : transforms) texts.push_back(transform.text);
  return strings(texts);
}

void write_data(TomlWriter& out, const DataConfig& config) {
  out.section("data");
  out.add("kind", std::string(choice_name(config.kind)));
  if (is_table(config.kind)) {
    if (!config.columns.empty()) out.raw("columns", strings(config.columns));
    out.add("header", config.header);
    out.add("on_bad", std::string(choice_name(config.on_bad)));
    out.add_text("cache", config.cache);
  }
  out.add("workers", static_cast<std::int64_t>(config.workers));
  out.add("drop_last", config.drop_last);
  out.section("data.train");
  write_files(out, config.train);
  using Shuffle = ShuffleConfig::Kind;
  out.add("shuffle", config.shuffle.kind == Shuffle::none ? std::string("none")
                     : config.shuffle.kind == Shuffle::full
                         ? std::string("full")
                         : "buffer " + std::to_string(config.shuffle.buffer));
  if (!config.eval.files.empty() || config.eval_fraction > 0) {
    out.section("data.eval");
    write_files(out, config.eval);
    if (config.eval_fraction > 0) out.add("fraction", config.eval_fraction);
  }
  if (config.fields.empty()) return;
  out.section("data.fields");
  for (const FieldConfig& field : config.fields) {
    Inline item;
    if (field.stacked) {
      item.raw("from", strings(field.columns));
    } else {
      item.add("from", field.from);
    }
    if (!field.as.empty()) item.raw("as", functions(field.as));
    if (!field.augment.empty()) item.raw("augment", functions(field.augment));
    if (field.out_of_range != OutOfRange::error) {
      item.add("out_of_range", std::string(choice_name(field.out_of_range)));
    }
    out.raw(toml_key(field.name), item.finish());
  }
}

}  // namespace

std::string to_toml(const RunConfig& config) {
  TomlWriter out;
  Inline model, bind;
  for (const auto& [name, extent] : config.model.bind) {
    bind.raw(toml_key(name), std::to_string(extent));
  }
  model.add("file", config.model.file).raw("bind", bind.finish());
  model.add("batch_norm", std::string(config.model.train_batch_norm ? "train" : "inference"));
  out.raw("model", model.finish());
  out.add_text("policy", config.policy);
  out.add("device", config.device);
  out.add("batch_size", config.batch_size);
  if (config.micro_batch > 0) out.add("micro_batch", config.micro_batch);
  out.add("epochs", config.epochs);
  out.add("steps", config.steps);
  if (config.max_seconds) {
    out.add("max_time", Duration{*config.max_seconds, Duration::Unit::seconds});
  }
  out.add("seed", static_cast<std::int64_t>(config.seed));
  out.add("threads", static_cast<std::int64_t>(config.threads));
  out.add("name", config.name);
  out.add_text("run_dir", config.run_dir);
  write_parameters(out, config.parameters);
  write_loss(out, config.loss);
  write_optimizer(out, config.optimizer);
  out.section("precision");
  out.add("compute", std::string(name_of(config.precision.compute)));
  if (config.precision.loss_scale) {
    out.add("loss_scale", *config.precision.loss_scale);
  } else if (config.precision.scales_loss()) {
    out.add("loss_scale", std::string("dynamic"));
    out.add("growth_interval", config.precision.growth_interval);
  }
  std::vector<std::string> kept;
  for (const PrecisionConfig::Kept& rule : config.precision.keep_float32) kept.push_back(rule.at);
  if (!kept.empty()) out.raw("keep_float32", strings(kept));
  out.add("tf32", config.precision.tf32);
  if (config.data) write_data(out, *config.data);
  if (!(config.eval == EvalConfig{})) {
    out.section("eval");
    out.add("every", config.eval.every);
    out.raw("metrics", strings(config.eval.metrics));
    out.add_text("best", config.eval.best);
    out.add("patience", config.eval.patience);
  }
  out.section("checkpoint");
  out.add("every", config.checkpoint.every);
  out.add("keep", config.checkpoint.keep);
  out.add("shard_mib", config.checkpoint.shard_mib);
  out.section("log");
  out.add("every", config.log.every);
  return out.finish();
}

}  // namespace tandem
