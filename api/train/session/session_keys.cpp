#include "api/train/session/session_keys.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "api/train/config_settings.h"
#include "api/train/given_objects.h"
#include "engine/config/keys/config_keys.h"
#include "engine/config/keys/config_value.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"

namespace tandem::api {
namespace {

// Keys and whole sections that a Session supports; `check_values` checks their values.
constexpr std::string_view honoured[] = {
    "model",        "model.bind", "model.batch_norm", "model.random", "policy",    "device",
    "steps",  // the length of a schedule
    "seed",         "threads",    "parameters",       "loss",         "optimizer", "precision",
    "eval.metrics",  // what evaluate measures
};

bool is_in(std::string_view key, std::string_view section) {
  if (!key.starts_with(section)) return false;
  const std::string_view rest = key.substr(section.size());
  return rest.empty() || rest[0] == '[' || (rest[0] == '.' && section != "model");
}

// Alternatives, by the beginning of a key; the first match is used.
constexpr std::pair<std::string_view, std::string_view> instead[] = {
    {"model", "give the path to the constructor"},
    {"batch_size", "give it to the constructor"},
    {"micro_batch", "here a step is one micro-batch"},
    {"epochs", "call step as often as you like"},
    {"max_time", "call step as often as you like"},
    {"name", "a Session has no run directory; save writes a file"},
    {"run_dir", "a Session has no run directory; save writes a file"},
    {"data", "feed tensors to step and predict"},
    {"eval", "feed held-out tensors to evaluate"},
    {"checkpoint", "call save"},
    {"log", "step returns the loss"},
};

Diagnostic refusal(const Where& where, const std::string& key) {
  Diagnostic d = at(where, key, "a Session does not honour this key");
  d.fix = "a Trainer does";
  for (const auto& [start, fix] : instead) {
    const bool is_it =
        key.starts_with(start) && (key.size() == start.size() || key[start.size()] == '.');
    if (!is_it) continue;
    d.fix = std::string(fix) + "; a Trainer takes it";
    break;
  }
  return d;
}

/// Skips keys that no table knows, which the check of all configurations reports.
class Refusals {
 public:
  explicit Refusals(std::vector<Diagnostic>& problems) : problems_(problems) {}

  void walk(const ConfigValue& value, const std::string& path) {
    const KeyInfo* key = path.empty() ? nullptr : train_keys().find(path);
    if (key == nullptr && !path.empty()) return;
    const bool is_path = path == "model" && value.kind == ConfigValue::Kind::string;
    const bool refused = key != nullptr && (!session_honours(key->path) || is_path);
    if (refused && value.members.empty()) {  // else its members are reported
      problems_.push_back(refusal(value.where, path));
      return;
    }
    for (std::size_t i = 0; i < value.items.size(); ++i)
      walk(value.items[i], path + "." + std::to_string(i));
    for (const ConfigValue::Member& member : value.members)
      walk(member.value, path.empty() ? member.key : path + "." + member.key);
  }

 private:
  std::vector<Diagnostic>& problems_;
};

void refuse_epochs(const std::optional<tandem::Duration>& duration, const Where& where,
                   const std::string& key, std::vector<Diagnostic>& problems) {
  if (!duration || duration->unit == tandem::Duration::Unit::steps) return;
  Diagnostic d = at(where, key, "a Session counts only steps");
  d.expected = "\"500 steps\"";
  d.got = to_string(*duration);
  d.fix = "a Trainer knows its epochs";
  problems.push_back(std::move(d));
}

/// Refuses values that only have a meaning in runs. `source`: what messages name in place of a
/// file.
void check_values(const RunConfig& config, std::string_view source,
                  std::vector<Diagnostic>& problems) {
  const Where here{std::string(source)};
  const ScheduleConfig& schedule = config.optimizer.schedule;
  bool needs_length = false;
  const auto check_schedule = [&](const ScheduleConfig& one, const std::string& path) {
    each_duration(one, [&](const std::string& key, const tandem::Duration& duration) {
      refuse_epochs(duration, here, path + "." + key, problems);
    });
    needs_length = needs_length || one.needs_length();
  };
  check_schedule(schedule, "optimizer.schedule");
  for (std::size_t i = 0; i < config.optimizer.groups.size(); ++i) {
    if (const auto& own = config.optimizer.groups[i].schedule)
      check_schedule(*own, "optimizer.groups." + std::to_string(i) + ".schedule");
  }
  const OptimizerConfig& optimizer = config.optimizer;
  if (optimizer.ema)
    refuse_epochs(optimizer.ema->start, optimizer.ema->where, "optimizer.ema.start", problems);
  if (optimizer.swa) {
    refuse_epochs(optimizer.swa->start, optimizer.swa->where, "optimizer.swa.start", problems);
    refuse_epochs(optimizer.swa->every, optimizer.swa->where, "optimizer.swa.every", problems);
  }
  for (const FreezeRule& rule : config.parameters.freeze) {
    refuse_epochs(rule.until, rule.where, "parameters.freeze.until", problems);
    refuse_epochs(rule.from, rule.where, "parameters.freeze.from", problems);
  }
  for (const ShapeRule& rule : config.parameters.shape) {
    if (rule.vocabulary.empty()) continue;
    Diagnostic d = at(rule.where, "parameters.shape.rows", "a Session has no vocabularies");
    d.expected = "a number of rows";
    d.got = "vocabulary(" + rule.vocabulary + ")";
    problems.push_back(std::move(d));
  }
  if (config.steps && !needs_length) {
    Diagnostic d = at(here, "steps", "a Session honours this key only as the length of a schedule");
    d.expected = "together with a schedule over the length of the run, such as cosine or linear";
    d.fix = "call step as often as you like";
    problems.push_back(std::move(d));
  }
}

}  // namespace

std::span<const std::string_view> session_keys() { return honoured; }

bool session_honours(std::string_view pattern) {
  const std::span<const KeyInfo> keys = train_keys().keys;
  return std::any_of(std::begin(honoured), std::end(honoured),
                     [&](std::string_view section) { return is_in(pattern, section); }) &&
         std::any_of(keys.begin(), keys.end(),
                     [&](const KeyInfo& key) { return key.path == pattern; });
}

namespace {

/// The settings that none of the problems is about.
std::vector<std::string> without(const std::vector<Diagnostic>& problems,
                                 std::vector<std::string> settings) {
  std::erase_if(settings, [&](const std::string& setting) {
    const std::string key = setting.substr(0, setting.find('='));
    return std::any_of(problems.begin(), problems.end(), [&](const Diagnostic& d) {
      return d.path == key || d.path.starts_with(key + ".") || key.starts_with(d.path + ".");
    });
  });
  return settings;
}

/// The settings with what every configuration needs. `model`: a placeholder, which is replaced.
RunConfig read_settings(ConfigValue settings, std::int64_t batch_size,
                        const std::vector<std::string>& overrides) {
  ConfigValue* model = settings.find("model");
  if (model == nullptr) {
    settings.add("model", table_setting());
    model = settings.find("model");
  }
  model->add("file", text_setting("model.onnx"));
  settings.add("batch_size", integer_setting(batch_size));
  settings.add("max_time", text_setting("1 h"));  // every configuration needs an end
  return run_config_of(std::move(settings), normal_path("session.toml"), overrides);
}

void check_model_path(const std::string& path, bool is_looked_for,
                      std::vector<Diagnostic>& problems) {
  if (path.empty())
    problems.push_back({.message = "the model's path is empty"});
  else if (is_looked_for && !path_exists(path))
    problems.push_back({.message = "cannot open the model: no such file", .file = path});
}

RunConfig finished(RunConfig config, const std::string& model_path) {
  config.model.file = normal_path(model_path);
  config.file.clear();  // there is no file
  return config;
}

}  // namespace

RunConfig session_config(const SessionConfig& config) {
  const std::string model_path = config.model.file.value_or("");
  std::vector<Diagnostic> problems;
  check_model_path(model_path, true, problems);
  ConfigValue settings = settings_of(config);
  Refusals(problems).walk(settings, "");
  RunConfig read;
  try {
    read = read_settings(std::move(settings), config.batch_size, {});
    check_values(read, "SessionConfig", problems);
  } catch (const Error& error) {
    problems.insert(problems.end(), error.diagnostics().begin(), error.diagnostics().end());
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  if (const std::optional<Policy> made = policy_of(config)) read.policy = made->name();
  return finished(std::move(read), model_path);
}

// Settings with mistakes are left out of later checks, so that the errors of one check do not hide
// those of the next.
RunConfig session_config(const std::string& model_path, std::int64_t batch_size,
                         const std::vector<std::string>& settings, const Policy* policy) {
  std::vector<Diagnostic> problems;
  check_model_path(model_path, !settings.empty(), problems);
  ConfigValue tree;
  std::vector<Diagnostic> unreadable;  // reported where the settings are read
  for (const std::string& setting : settings) apply_override(tree, setting, unreadable);
  Refusals(problems).walk(tree, "");

  const auto read = [&](const std::vector<std::string>& overrides) {
    return read_settings(table_setting(), batch_size, overrides);
  };
  std::vector<std::string> honoured_settings = without(problems, settings);
  RunConfig config;
  bool is_read = false, is_whole = false;
  try {
    config = read(honoured_settings);
    is_read = is_whole = true;
  } catch (const Error& error) {
    const std::vector<Diagnostic>& found = error.diagnostics();
    problems.insert(problems.end(), found.begin(), found.end());
    try {
      config = read(without(found, honoured_settings));
      is_read = true;
    } catch (const Error&) {  // the remaining settings are no valid configuration
    }
  }
  std::vector<Diagnostic> of_values;
  if (is_read) check_values(config, command_line, of_values);
  if (is_read && policy != nullptr && !config.policy.empty()) {
    of_values.push_back({.message = "there are two policies",
                         .path = "policy",
                         .expected = "a file, or a policy that is none",
                         .got = "both (" + config.policy + ")"});
  }
  for (Diagnostic& d : of_values) {  // the schedule that needs `steps` may have been left out
    if (is_whole || d.path != "steps") problems.push_back(std::move(d));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  if (policy != nullptr) config.policy = policy->name();
  return finished(std::move(config), model_path);
}

}  // namespace tandem::api
