// Saves the state of a Session to a file and restores it: everything that its next steps depend on.
// Also its learning rate.
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "api/train/moved_from.h"
#include "api/train/session/session_impl.h"
#include "engine/data/number_text.h"
#include "engine/formats/json_file.h"
#include "engine/formats/new_file.h"
#include "engine/formats/safetensors.h"
#include "engine/graph/text.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/updates/parameter_choice.h"

namespace tandem::api {
namespace {

constexpr const char* record_key = "tandem.session";  // key in the file's metadata
constexpr int record_format = 1;

/// Contents of the file besides tensors.
struct Record {
  std::uint64_t steps = 0, seed = 0;
  std::int64_t skipped_in_a_row = 0;
  std::optional<double> learning_rate;
  std::map<std::string, std::string> optimizers;  // by parameter, as in checkpoints
  MissedStepCounts missed_steps;                  // by parameter
};

std::string to_json(const Record& record) {
  nlohmann::ordered_json json{{"format", record_format},
                              {"step", record.steps},
                              {"seed", record.seed},
                              {"skipped_in_a_row", record.skipped_in_a_row},
                              {"optimizers", record.optimizers},
                              {"missed_steps", record.missed_steps}};
  if (record.learning_rate) json["lr"] = *record.learning_rate;
  return json.dump();
}

Record record_of(const SafetensorsFile& file, const std::string& path) {
  const auto found = file.metadata().find(record_key);
  if (found == file.metadata().end()) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "this file is not the state of a Session",
                           .file = path,
                           .expected = "a file that Session::save_state has written",
                           .fix = "parameters.load loads only weights"});
  }
  const JsonFile json({.file = path, .what = "its record"}, found->second);
  const JsonItem root = json.root();
  root.at("format").natural(record_format, record_format);
  Record record;
  record.steps = root.at("step").natural();
  record.seed = root.at("seed").natural(0, std::numeric_limits<std::uint64_t>::max());
  record.skipped_in_a_row = static_cast<std::int64_t>(root.at("skipped_in_a_row").natural());
  for (const auto& [name, kind] : root.at("optimizers").object())
    record.optimizers[name] = kind.any_text();
  for (const auto& [name, count] : root.at("missed_steps").object())
    record.missed_steps[name] = static_cast<std::int64_t>(count.natural());
  if (const std::optional<JsonItem> lr = root.find("lr"))
    record.learning_rate = lr->number(0, 1e300);
  return record;
}

[[noreturn]] void refuse_state(const std::string& path, std::string key, std::string message,
                               std::string expected, std::string got, std::string fix) {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .file = path,
                                           .path = std::move(key),
                                           .expected = std::move(expected),
                                           .got = std::move(got),
                                           .fix = std::move(fix)});
}

/// Throws where the tensors do not match those of the model in name and type, or where the
/// optimizer differs.
void compare(const std::string& path, const Record& record, const SafetensorsFile& file,
             const Graph& forward, const RunConfig& config,
             const std::map<std::string, std::string>& optimizers) {
  if (record.seed != config.seed)
    refuse_state(path, "seed", "the session was saved with another seed",
                 std::to_string(record.seed), std::to_string(config.seed),
                 "seed=" + std::to_string(record.seed));
  std::vector<Diagnostic> problems;
  const auto report = [&](const std::string& name, std::string message, std::string expected,
                          std::string got) {
    problems.push_back({.message = std::move(message),
                        .file = path,
                        .path = name,
                        .expected = std::move(expected),
                        .got = std::move(got)});
  };
  for (const State& state : forward.states) {
    if (!state.derived.is_saved() || state.held_by != HeldBy::checkpoint) continue;
    const HostTensor* const saved = file.find(state.name);
    if (saved == nullptr)
      report(state.name, "the saved state does not have this", to_string(state.start.type()),
             "none");
    else if (saved->type() != state.start.type())
      report(state.name, "the saved state has another type", to_string(state.start.type()),
             to_string(saved->type()));
  }
  for (const auto& [name, kind] : optimizers) {
    const auto found = record.optimizers.find(name);
    const std::string was = found == record.optimizers.end() ? "none" : found->second;
    if (was != kind) report(name, "the session was saved with another optimizer", was, kind);
  }
  if (problems.empty()) return;
  problems.back().fix = "open the session with the model and the settings that it was saved with";
  throw Error(ErrorKind::usage, std::move(problems));
}

}  // namespace

void Session::save_state(const std::string& path) const {
  Impl& my = held(impl_, session_handle);
  CheckpointContent content;
  collect_states(my.states, content);
  std::vector<NamedTensor> tensors = std::move(content.model);
  std::move(content.optimizer.begin(), content.optimizer.end(), std::back_inserter(tensors));
  std::set<std::string> there;
  for (const NamedTensor& tensor : tensors) there.insert(tensor.name);
  for (const State& state : my.forward().states) {  // states that no program holds yet
    const bool is_saved = state.derived.is_saved() && state.held_by == HeldBy::checkpoint;
    if (is_saved && there.insert(state.name).second)
      tensors.push_back({state.name, my.read(state)});
  }
  for (const auto& [name, value] : my.written) {
    if (there.insert(name).second) tensors.push_back({name, value});
  }
  const Record record{my.steps,         my.config.seed,       my.scale_watch.in_a_row(),
                      my.learning_rate, my.optimizer_kinds(), my.missed.after(my.taken())};
  NewFile place(path, path);
  const std::string made = place.make();
  write_safetensors(made, tensors, {{record_key, to_json(record)}});
  place.finish(made);
}

void Session::restore_state(const std::string& path) {
  Impl& my = held(impl_, session_handle);
  const SafetensorsFile file(path);
  const Record record = record_of(file, path);
  compare(path, record, file, my.forward(), my.config, my.optimizer_kinds());
  // Programs are made again, so that every state starts with the value in the file.
  my.trainings.clear();
  my.predictors.clear();
  my.evaluations.clear();
  my.states = StateStore();
  my.arenas = make_arenas();
  my.written.clear();
  for (const NamedTensor& tensor : file.tensors()) my.written[tensor.name] = tensor.tensor;
  my.steps = record.steps;
  my.missed = MissedSteps();
  my.missed.restore(record.missed_steps);
  my.learning_rate = record.learning_rate;
  const HostTensor* const skipped = file.find(skipped_steps_state);
  my.scale_watch.start(skipped != nullptr ? skipped->as<std::int64_t>()[0] : 0,
                       record.skipped_in_a_row);
}

void Session::Impl::refuse_own_training(const char* call) {
  if (parts.model->algorithm({config.batch_size, true}) == nullptr) return;
  throw Error(
      ErrorKind::usage,
      Diagnostic{
          .message = "the model's training_info says how it trains",
          .path = call,
          .fix = "its rate is one of its initializers: set_parameter, where that is a parameter"});
}

void Session::set_learning_rate(double lr) {
  Impl& my = held(impl_, session_handle);
  my.refuse_own_training("set_learning_rate");
  if (!std::isfinite(lr) || lr < 0) {
    throw Error(ErrorKind::usage, Diagnostic{.message = "not a learning rate",
                                             .path = "set_learning_rate",
                                             .expected = "a number of 0 or more",
                                             .got = number_text(lr)});
  }
  my.learning_rate = lr;
}

double Session::learning_rate() const {
  Impl& my = held(impl_, session_handle);
  my.refuse_own_training("learning_rate");
  return my.learning_rate.value_or(my.config.optimizer.base.lr);
}

std::uint64_t Session::steps() const { return held(impl_, session_handle).steps; }

std::map<std::string, std::string> Session::Impl::optimizer_kinds() {
  if (parts.model->algorithm({config.batch_size, true}) != nullptr) return {};
  std::map<std::string, std::string> kinds = parameter_kinds(config, forward());
  const auto add_average = [&](const char* key, bool is_kept) {
    kinds[key] = is_kept ? "kept" : "none";
  };
  add_average("optimizer.ema", config.optimizer.ema.has_value());
  add_average("optimizer.swa", config.optimizer.swa.has_value());
  add_average("optimizer.lookahead", config.optimizer.lookahead.has_value());
  return kinds;
}

}  // namespace tandem::api
