#include "engine/training/config/run_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <tuple>

#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/training/config/config_reader.h"
#include "engine/training/config/loss_keys.h"
#include "engine/training/config/optimizer_keys.h"

namespace tandem {
namespace {

using Kind = ConfigValue::Kind;

void read_model(const TableReader& root, ModelConfig& to) {
  const ConfigValue* model = root.valid("model");
  if (!model) return;
  to.where = model->where;
  if (model->kind == Kind::string) {
    to.file = root.resolve(*model);
    return;
  }
  const TableReader table = root.table("model");
  table.read_path("file", to.file);
  if (const ConfigValue* bind = table.valid("bind")) {
    for (const auto& member : bind->members) {
      if (member.value.kind == Kind::integer) to.bind[member.key] = member.value.integer;
    }
  }
  std::string batch_norm = "train";
  table.read("batch_norm", batch_norm);
  to.train_batch_norm = batch_norm == "train";
}

void read_shape_rule(const TableReader& rule, ParametersConfig& to) {
  ShapeRule& shape = to.shape.emplace_back();
  shape.where = rule.where();
  rule.read("at", shape.at);
  const ConfigValue* rows = rule.valid("rows");
  if (!rows) return;
  if (rows->kind == Kind::integer) {
    shape.rows = rows->integer;
    return;
  }
  constexpr std::string_view head = "vocabulary(";
  if (rows->text.starts_with(head) && rows->text.ends_with(")")) {
    shape.vocabulary = rows->text.substr(head.size(), rows->text.size() - head.size() - 1);
  }
  if (shape.vocabulary.empty()) {
    rule.report(rows->where, "rows", "not a number of rows", "a number, or \"vocabulary(FIELD)\"",
                toml_string(rows->text));
  }
}

void read_parameters(const TableReader& root, ParametersConfig& to) {
  const TableReader table = root.table("parameters");
  for (const TableReader& rule : table.tables("freeze")) {
    FreezeRule& freeze = to.freeze.emplace_back();
    freeze.where = rule.where();
    rule.read("at", freeze.at);
    rule.read("until", freeze.until);
    if (freeze.until && freeze.until->unit == Duration::Unit::seconds)
      rule.report(rule.find("until")->where, "until", "parameters thaw after steps or epochs");
  }
  for (const TableReader& rule : table.tables("load")) {
    LoadRule& load = to.load.emplace_back();
    load.where = rule.where();
    rule.read_path("from", load.from);
    rule.read("at", load.at);
    std::string missing = "error";
    rule.read("missing", missing);
    load.missing_is_error = missing == "error";
    if (!load.from.empty() && !load.from.ends_with(".safetensors") &&
        !load.from.ends_with(".npz")) {
      rule.report(rule.find("from")->where, "from", "unknown kind of file", ".safetensors or .npz",
                  load.from);
    }
  }
  for (const TableReader& rule : table.tables("init")) {
    InitRule& init = to.init.emplace_back();
    init.where = rule.where();
    rule.read("at", init.at);
    rule.read("kind", init.kind);
    rule.read("mean", init.mean);
    rule.read("std", init.std);
    rule.read("low", init.low);
    rule.read("high", init.high);
    rule.read("value", init.value);
    if (init.low > init.high) rule.report(rule.where(), "low", "low is above high");
  }
  for (const TableReader& rule : table.tables("shape")) read_shape_rule(rule, to);
  for (const TableReader& rule : table.tables("storage")) {
    StorageRule& storage = to.storage.emplace_back();
    storage.where = rule.where();
    rule.read("at", storage.at);
    rule.read("kind", storage.kind);
  }
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

// As refuse_keys, but where the command line chose `chosen`: keys that the file has for what it
// chose itself are left out.
void refuse_unless_overridden(const TableReader& table, const std::string& kind,
                              std::string_view chosen,
                              std::initializer_list<std::string_view> keys) {
  const ConfigValue* choice = table.find(chosen);
  for (const std::string_view key : keys) {
    const ConfigValue* value = table.valid(key);
    if (choice && value && choice->where.file == command_line && value->where.file != command_line)
      continue;
    refuse_keys(table, kind, {key});
  }
}

void require_key(const TableReader& table, std::string_view key, const std::string& kind) {
  if (table.find(key)) return;
  table.report(table.where(), key, "this key is missing: " + kind + " needs it", "string");
}

void read_schedule(const TableReader& root, const TableReader& table, ScheduleConfig& to) {
  if (!table.exists() || !table.valid("kind")) return;
  table.read("kind", to.kind);
  table.read("warmup", to.warmup);
  table.read("final", to.final);
  table.read("step_size", to.step_size);
  table.read("gamma", to.gamma);
  const std::string kind = table.find("kind")->text;
  if (to.warmup && to.warmup->unit == Duration::Unit::seconds) {
    table.report(table.find("warmup")->where, "warmup", "a schedule counts steps or epochs");
  }
  if (to.kind == ScheduleKind::step) {
    refuse_keys(table, kind, {"final"});
    require_key(table, "step_size", kind);
    if (to.step_size && to.step_size->unit == Duration::Unit::seconds) {
      table.report(table.find("step_size")->where, "step_size",
                   "a schedule counts steps or epochs");
    }
    return;
  }
  refuse_keys(table, kind, {"step_size", "gamma"});
  if (to.kind == ScheduleKind::constant) {
    refuse_keys(table, kind, {"final"});
  } else if (root.find("max_time") && !root.find("epochs") && !root.find("steps")) {
    // (Without max_time the missing end is an error of its own.)
    table.report(table.where(), "kind", kind + " needs the length of the run", "epochs or steps");
  }
}

void read_optimizer(const TableReader& root, OptimizerConfig& to) {
  const TableReader table = root.table("optimizer");
  if (!table.exists()) return;
  to.where = table.where();
  to.base = read_optimizer_options(table);
  for (const TableReader& rule : table.tables("groups")) {
    OptimizerGroup& group = to.groups.emplace_back();
    group.where = rule.where();
    rule.read("at", group.at);
    group.options = read_group_options(table, rule, to.base);
  }
  read_schedule(root, table.table("schedule"), to.schedule);
  table.read("clip_norm", to.clip_norm);
}

void read_precision(const TableReader& root, PrecisionConfig& to) {
  const TableReader table = root.table("precision");
  std::string compute(name_of(to.compute));
  table.read("compute", compute);
  if (const auto dtype = dtype_from_name(compute)) to.compute = *dtype;
  table.read("tf32", to.tf32);
  const ConfigValue* scale = table.valid("loss_scale");
  if (!to.scales_loss()) {
    const std::string kind = "compute = \"" + compute + "\"";
    refuse_unless_overridden(table, kind, "compute", {"loss_scale", "growth_interval"});
  } else if (scale && scale->kind != Kind::string) {
    to.loss_scale = scale->number;
    refuse_unless_overridden(table, "a fixed loss_scale", "loss_scale", {"growth_interval"});
  } else {
    table.read("growth_interval", to.growth_interval);
  }
  if (const ConfigValue* list = table.valid("keep_float32")) {
    for (const ConfigValue& item : list->items) {
      if (item.kind == Kind::string) to.keep_float32.push_back({item.text, item.where});
    }
  }
}

void read_eval(const TableReader& root, const RunConfig& config, EvalConfig& to) {
  const TableReader table = root.table("eval");
  if (!table.exists()) return;
  table.read("every", to.every);
  table.read("metrics", to.metrics);
  table.read("best", to.best);
  table.read("patience", to.patience);
  if (!to.best.empty() &&
      std::find(to.metrics.begin(), to.metrics.end(), to.best) == to.metrics.end()) {
    std::string known;
    for (const std::string& metric : to.metrics) known += (known.empty() ? "" : ", ") + metric;
    table.report(table.find("best")->where, "best", "not one of the metrics", known, to.best,
                 "add it to `eval.metrics`");
  }
  if (to.patience > 0 && to.best.empty()) {
    table.report(table.find("patience")->where, "patience", "patience needs `eval.best`");
  }
  if (config.data && config.data->eval.files.empty() && config.data->eval_fraction == 0 &&
      !root.table("data").find("eval")) {
    table.report(table.where(), "", "there is no data to evaluate on", "", "",
                 "add [data.eval] with files or fraction");
  }
}

void check_whole(const TableReader& root, const RunConfig& config) {
  if (config.micro_batch > 0 && config.batch_size % config.micro_batch != 0) {
    root.report(root.find("micro_batch")->where, "micro_batch", "does not divide batch_size",
                "a divisor of " + std::to_string(config.batch_size),
                std::to_string(config.micro_batch));
  }
  if (config.epochs && *config.epochs <= 0) {
    root.report(root.find("epochs")->where, "epochs", "out of range", "above 0",
                toml_number(*config.epochs));
  }
  if (!root.find("epochs") && !root.find("steps") && !root.find("max_time")) {
    root.report({config.file, 1, 1}, "", "nothing says when the run ends",
                "epochs, steps or max_time", "", "write `epochs = 10`");
  }
}

}  // namespace

bool RunConfig::operator==(const RunConfig& other) const {
  const auto all = [](const RunConfig& c) {
    return std::tie(c.model, c.policy, c.device, c.batch_size, c.micro_batch, c.epochs, c.steps,
                    c.max_seconds, c.seed, c.threads, c.name, c.run_dir, c.parameters, c.loss,
                    c.optimizer, c.precision, c.data, c.eval, c.checkpoint, c.log);
  };
  return all(*this) == all(other);
}

RunConfig parse_run_config(std::string_view text, const std::string& path,
                           const std::vector<std::string>& overrides) {
  std::vector<Diagnostic> errors;
  ConfigValue tree = parse_toml(text, path, errors);
  if (!errors.empty() && tree.members.empty()) throw Error(ErrorKind::usage, std::move(errors));
  for (const std::string& item : overrides) apply_override(tree, item, errors);
  check_config(tree, errors);

  namespace fs = std::filesystem;
  RunConfig config;
  const fs::path file = normal_path(path);
  const std::string folder = file.parent_path().string();
  config.file = file.string();
  const TableReader root(&tree, "", folder, errors);
  read_model(root, config.model);
  root.read_path("policy", config.policy);
  root.read("device", config.device);
  root.read("batch_size", config.batch_size);
  root.read("micro_batch", config.micro_batch);
  root.read("epochs", config.epochs);
  root.read("steps", config.steps);
  if (const ConfigValue* time = root.valid("max_time")) {
    const auto duration = parse_duration(time->text);
    if (duration->unit == Duration::Unit::seconds) {
      config.max_seconds = duration->value;
    } else {
      root.report(time->where, "max_time", "not a time", "\"30 min\" or \"2 h\"", describe(*time),
                  "`epochs` and `steps` count the others");
    }
  }
  std::int64_t seed = 1, threads = 0;
  root.read("seed", seed);
  root.read("threads", threads);
  config.seed = static_cast<std::uint64_t>(seed);
  config.threads = static_cast<int>(threads);
  config.name = file.stem().string();
  if (config.name == "train" && file.parent_path().has_filename()) {
    config.name = file.parent_path().filename().string();
  }
  root.read("name", config.name);
  if (config.name.empty() || config.name.find('/') != std::string::npos) {
    root.report(root.find("name") ? root.find("name")->where : Where{path}, "name",
                "not the name of a folder", "", toml_string(config.name));
  }
  root.read_path("run_dir", config.run_dir);
  read_parameters(root, config.parameters);
  read_loss(root, config.loss);
  read_optimizer(root, config.optimizer);
  read_precision(root, config.precision);
  read_data_config(root, config.data);
  read_eval(root, config, config.eval);
  const TableReader checkpoint = root.table("checkpoint");
  std::optional<Duration> save_every;
  checkpoint.read("every", save_every);
  if (save_every) config.checkpoint.every = *save_every;
  checkpoint.read("keep", config.checkpoint.keep);
  checkpoint.read("shard_mib", config.checkpoint.shard_mib);
  std::optional<Duration> log_every;
  root.table("log").read("every", log_every);
  if (log_every) config.log.every = *log_every;
  check_whole(root, config);

  if (!errors.empty()) {
    std::stable_sort(errors.begin(), errors.end(), [](const Diagnostic& a, const Diagnostic& b) {
      const auto key = [](const Diagnostic& d) {
        return std::tuple(d.file == command_line, d.line, d.column);
      };
      return key(a) < key(b);
    });
    throw Error(ErrorKind::usage, std::move(errors));
  }
  return config;
}

RunConfig read_run_config(const std::string& path, const std::vector<std::string>& overrides) {
  const auto refuse = [&](const char* message, const char* fix) {
    throw Error(
        ErrorKind::usage,
        Diagnostic{.message = message, .file = path, .expected = "a train.toml", .fix = fix});
  };
  constexpr std::uint64_t largest_file = 16 << 20;
  std::error_code ignored;
  if (is_directory(path)) refuse("this is a folder", "");
  if (!path_exists(path)) refuse("no such file", "");
  if (!std::filesystem::is_regular_file(path, ignored))  // a pipe might never end
    refuse("this is not a regular file", "store it in one first");
  if (file_size(path) > largest_file) refuse("the file is too large", "");
  return parse_run_config(read_file(path, largest_file), path, overrides);
}

}  // namespace tandem
