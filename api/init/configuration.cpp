// Writes the sections of a train.toml, one function for each.
#include "api/init/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <span>

#include "api/init/adapters.h"
#include "api/init/buckets.h"
#include "api/init/fields.h"
#include "api/init/loss.h"
#include "api/init/model_config.h"
#include "api/init/networks/network.h"
#include "api/init/said_keys.h"
#include "engine/config/keys/config_value.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

namespace fs = std::filesystem;

constexpr double held_out_part = 0.1;
constexpr std::int64_t least_samples_to_hold_out = 20;
constexpr std::int64_t usual_steps = 5000, most_epochs = 30;
// Extent given to free dimensions in order to inspect the model.
constexpr std::int64_t trial_length = 4;

/// Facts about model and data, and the first conclusions from them.
struct Known {
  ModelFacts model;
  std::optional<DataFacts> data;
  std::vector<InputFacts> inputs;
  FieldGuesses fields;
  LossChoice loss;
  const Network* network = nullptr;
  std::string folder;
  std::int64_t samples = 0;  // number of training samples; 0: unknown
  RunLength length;
  std::optional<BucketGuess> buckets;
  std::map<std::string, std::int64_t> said_bind;
  std::string unbound;  // why the model cannot have the lengths of the samples

  bool holds_out = false;  // holds out a part of the training data

  bool is_estimated() const { return data && !data->estimated_by.empty(); }
  bool is_counted() const { return !is_estimated() && !(data && data->has_more_rows); }
  /// A number that follows from that of the samples.
  std::string about(std::int64_t number) const {
    return (is_counted() ? "" : is_estimated() ? "about " : "at least ") + std::to_string(number);
  }
};

std::string files_toml(const std::vector<ArrayFiles>& files, const std::string& folder) {
  const auto list = [&](const std::vector<std::string>& paths) {
    const auto near = [&](const std::string& path) { return near_path(path, folder); };
    return "[ " + joined(paths, ", ", near) + " ]";
  };
  if (files.size() == 1 && files[0].name.empty()) return list(files[0].paths);
  const auto item = [&](const ArrayFiles& array) {
    return toml_key(array.name) + " = " + list(array.paths);
  };
  return "{ " + joined(files, ", ", item) + " }";
}

/// The names of the files, for a terminal.
std::string files_text(const std::vector<ArrayFiles>& files) {
  std::vector<std::string> all;
  for (const ArrayFiles& array : files)
    all.insert(all.end(), array.paths.begin(), array.paths.end());
  return shown_names(all, [](const std::string& path) {
    const std::string near = fs::path(path).lexically_relative(current_folder()).string();
    return near.empty() || near.starts_with("..") ? path : near;
  });
}

void guess_model(const Known& known, Draft& draft) {
  GuessedSection& top = draft.section("");
  const std::string file = near_path(known.model.path, known.folder);
  auto bound = known.fields.bind;
  bound.insert(known.said_bind.begin(), known.said_bind.end());
  if (known.buckets) bound.erase(known.buckets->dimension);  // each step has its own length
  std::string keys, why;
  why = bound.empty() ? "" : "free dimensions of the file, as long as the samples are";
  for (const auto& [input, value] : known.model.values) {
    bound[input] = value;
    why += fmt::format("{}{} = {} chooses the half of the file that reads no cache",
                       why.empty() ? "" : "; ", input, value);
  }
  if (!bound.empty()) {
    keys += ", bind = { " +
            joined(bound, ", ",
                   [](const auto& one) {
                     return fmt::format("{} = {}", toml_key(one.first), one.second);
                   }) +
            " }";
  }
  if (known.model.mixes_batch_norms()) {
    keys += ", batch_norm = \"file\"";
    why += (why.empty() ? "" : "; ") +
           std::string("the file has BatchNormalization in training and in inference");
  }
  top.keys.push_back(
      {"model", keys.empty() ? file : fmt::format("{{ file = {}{} }}", file, keys), why, ""});
  for (const std::string& name : known.model.free) {
    top.keys.push_back(
        {"model.bind", "", "",
         name == "?" || name.empty()
             ? "the file leaves a dimension free and without a name: export it with a name or a "
               "number"
             : fmt::format(
                   "how long is \"{}\"? Write model = {{ file = {}, bind = {{ {} = 16 }} }} "
                   "with its length{}",
                   name, file, toml_key(name), known.unbound.empty() ? "" : "; " + known.unbound)});
  }
  if (run_name(known.model.path) != known.model.path) {
    top.keys.push_back({"name", toml_string(run_name(known.model.path)),
                        "run directories are runs/NAME-0001, runs/NAME-0002, ...", ""});
  }
}

/// The largest power of two that is at most x.
std::int64_t power_of_two(double x) {
  return x < 1 ? 1 : std::int64_t{1} << static_cast<int>(std::floor(std::log2(x)));
}

void guess_batch(const Engine& engine, Known& known, Draft& draft) {
  const Network& network = *known.network;
  const ModelFacts& model = known.model;
  std::int64_t batch = 32;
  std::string why = "a usual size; without data nothing more is known";
  if (known.samples > 0) {
    const auto part =
        static_cast<double>(known.samples) / static_cast<double>(network.samples_a_step);
    batch = std::clamp(power_of_two(part), network.least_batch, network.most_batch);
    why = fmt::format("a power of two of about 1/{} of {} samples{}, from {} to {} for {}",
                      network.samples_a_step, known.about(known.samples),
                      known.is_estimated() ? ", estimated " + known.data->estimated_by : "",
                      network.least_batch, network.most_batch, network.name);
    if (batch > known.samples) {
      batch = power_of_two(static_cast<double>(known.samples));
      why = known.samples == 1
                ? "there is one sample"
                : fmt::format("the largest power of two that {} samples fill", known.samples);
    }
  }
  // Values are kept for the backward pass, which has about as many of its own; a parameter has a
  // gradient and at most two moments.
  const double room = 0.5 * static_cast<double>(engine.cpu->memory_bytes()) -
                      4.0 * static_cast<double>(model.parameter_bytes);
  while (batch > 1 && 2 * model.bytes_per_sample * static_cast<double>(batch) > room) {
    batch /= 2;
    why = fmt::format("what half of the memory holds, {:.0f} MB a sample",
                      2 * model.bytes_per_sample / 1e6);
  }
  if (model.fixed_batch > 0) {
    batch = model.fixed_batch;
    why = "the file takes no other batch";
  }
  draft.section("").keys.push_back({"batch_size", std::to_string(batch), why, ""});
  known.length.batch = batch;
}

void guess_epochs(Known& known, Draft& draft) {
  std::int64_t epochs = 10;
  std::string why = "a first try";
  const std::int64_t a_epoch =
      std::max<std::int64_t>(1, (known.samples + known.length.batch - 1) / known.length.batch);
  if (known.samples > 0) {
    epochs = std::clamp<std::int64_t>(usual_steps / a_epoch, 1, most_epochs);
    why = fmt::format("about {} steps of {} a pass, {} passes at most: a first try", usual_steps,
                      known.about(a_epoch), most_epochs);
  }
  draft.section("").keys.push_back({"epochs", std::to_string(epochs), why, ""});
  draft.section("").keys.push_back({"seed", "1", "", ""});
  known.length.steps = epochs * a_epoch;
  known.length.is_counted = known.is_counted();
}

/// `trains`: whether to write about training.
void write_loss(const Known& known, bool trains, Draft& draft) {
  const LossChoice& loss = known.loss;
  GuessedSection& section = draft.section("loss");
  if (loss.of_model && loss.todo.empty()) {
    draft.notes.push_back(loss.why);
    if (!loss.output.empty())
      section.keys.push_back({"output", toml_string(loss.output), loss.why, ""});
    return;
  }
  const std::string labels = loss.labels.name.empty() ? "labels" : loss.labels.name;
  const std::string term = loss.term.kind.empty() ? "" : "[ " + term_toml(loss.term, labels) + " ]";
  section.keys.push_back({loss.of_model ? "output" : "terms", term, loss.why, loss.todo});
  if (!loss.term.note.empty() && trains) draft.notes.push_back(loss.term.note);
}

void write_data(const Known& known, Draft& draft) {
  GuessedSection& data = draft.section("data");
  GuessedSection& train = draft.section("data.train");
  if (!known.data) {
    const std::string todo = "no data was given";
    data.keys.push_back({"kind", "\"npz\"", "", todo + ": idx, cifar, npz, csv, tsv or images"});
    train.keys.push_back({"files", "[ \"train.npz\" ]", "", todo + ": the files to train on"});
    return;
  }
  data.keys.push_back({"kind", toml_string(known.data->kind), "", ""});
  if (const std::int64_t rows = known.loss.unlabelled; rows > 0) {
    const std::string what = fmt::format(
        "{} {} no \"{}\"", rows, rows == 1 ? "row has" : "rows have", known.loss.labels.from->name);
    data.keys.push_back({"on_bad", "\"skip\"", what + ", and are left out", ""});
    draft.notes.push_back(what +
                          ": data.on_bad = \"skip\" leaves them out, as any other row that cannot "
                          "be read, which the run counts");
  }
  for (const GuessedKey& key : known.data->keys) data.keys.push_back(key);
  if (!known.data->tokenizer.empty()) {
    data.keys.push_back({"tokenizer", near_path(known.data->tokenizer, known.folder),
                         "it is in the folder of the data or of the model", ""});
  }
  if (known.buckets)
    data.keys.push_back({"buckets", known.buckets->toml(), known.buckets->why, ""});
  train.keys.push_back({"files", files_toml(known.data->train, known.folder), "", ""});
  draft.files.push_back({"data.train.files", "train      " + files_text(known.data->train)});
  GuessedSection& eval = draft.section("data.eval");
  if (!known.data->eval.empty()) {
    eval.keys.push_back({"files", files_toml(known.data->eval, known.folder),
                         known.data->said.held_out.empty()
                             ? "held out, as the names of the files say"
                             : "held out, as --eval says",
                         ""});
    draft.files.push_back({"data.eval.files", "held out   " + files_text(known.data->eval)});
  } else if (known.holds_out) {
    draft.files.push_back({"data.eval.fraction",
                           "held out   a tenth of the samples  (no file is named as held out; "
                           "--eval names one)"});
    eval.keys.push_back({"fraction", fmt::format("{:g}", held_out_part),
                         "no file is named as held out: a tenth of the samples, chosen by the seed",
                         ""});
  }
}

std::string fields_problem(const Known& known) {
  std::int64_t rows = -1;
  std::string first;
  for (const FieldGuess& field : known.fields.fields) {
    if (field.from == nullptr) continue;
    if (rows >= 0 && field.from->rows != rows)
      return fmt::format("\"{}\" has {} samples, \"{}\" has {}", first, rows, field.from->name,
                         field.from->rows);
    rows = field.from->rows;
    first = field.from->name;
  }
  const ArrayFacts* labels = known.loss.labels.from;
  if (labels != nullptr && rows >= 0 && labels->rows != rows)
    return fmt::format("\"{}\" has {} samples, \"{}\" has {}", first, rows, labels->name,
                       labels->rows);
  return "";
}

void write_fields(const Known& known, Draft& draft) {
  GuessedSection& section = draft.section("data.fields");
  const std::string unequal = fields_problem(known);
  const auto add = [&](const FieldGuess& field) {
    std::string todo = field.todo;
    if (todo.empty() && field.from == nullptr) todo = "which array of the data is it?";
    if (known.data && !known.data->problem.empty()) todo = known.data->problem;
    if (todo.empty()) todo = unequal;
    const std::string value = field.from != nullptr  ? field_toml(field)
                              : !field.offer.empty() ? field.offer
                                                     : "{ from = \"ARRAY\" }";
    section.keys.push_back({field.name, value, field.why, todo});
  };
  for (const FieldGuess& field : known.fields.fields) {
    if (!field.is_left_out && !field.is_said) add(field);
  }
  const bool is_there =
      std::any_of(known.fields.fields.begin(), known.fields.fields.end(),
                  [&](const auto& f) { return f.name == known.loss.labels.name; });
  const bool has_labels = known.loss.labels.from != nullptr || !known.loss.labels.todo.empty();
  if (has_labels && !is_there) {
    FieldGuess labels = known.loss.labels;
    if (!known.loss.todo.empty()) labels.todo = goes_with_loss;
    add(labels);
  } else if (!known.loss.of_model) {
    add({.name = "labels", .todo = "the labels, as loss.terms names them"});
  }
}

/// How the values of a table are distributed in the file, as a rule of parameters.init; "" where
/// all are 0.
std::string init_rule(const ModelFacts& model, const std::string& table) {
  const std::vector<State>& states = model.imported.graph.states;
  const auto state = std::find_if(states.begin(), states.end(), [&](const State& one) {
    return one.path == table || one.name == table;
  });
  if (state == states.end() || state->start.bytes() == 0) return "";
  Numbers values;
  values.add(state->start);
  const double mean = values.mean(), deviation = values.deviation();
  if (!values.finite || (deviation == 0 && mean == 0)) return "";
  const std::string at = toml_string(table);
  if (deviation == 0)
    return fmt::format("{{ at = {}, kind = \"constant\", value = {:.6g} }}", at, mean);
  const bool is_centred = std::abs(mean) < 0.1 * deviation;
  return fmt::format("{{ at = {}, kind = \"normal\"{}, std = {:.6g} }}", at,
                     is_centred ? "" : fmt::format(", mean = {:.6g}", mean), deviation);
}

/// Tables that have exactly as many rows as there are texts get one row more.
void write_rows(const Known& known, Draft& draft) {
  std::string rules, values;
  for (const FieldGuess& field : known.fields.fields) {
    for (const auto& [table, rows] : field.rows) {
      rules += fmt::format("\n  {{ at = {}, rows = {} }},", toml_string(table), rows);
      if (const std::string rule = init_rule(known.model, table); !rule.empty())
        values += "\n  " + rule + ",";
    }
  }
  if (rules.empty()) return;
  draft.section("parameters")
      .keys.push_back({"shape", "[" + rules + "\n]",
                       "a row for each text, and row 0 for what training lacks; values of a new "
                       "shape are initialized again",
                       ""});
  if (values.empty()) return;
  draft.section("parameters")
      .keys.push_back(
          {"init", "[" + values + "\n]", "with the mean and deviation of the file's values", ""});
}

void write_eval(const Known& known, Draft& draft) {
  if (!known.data || (known.data->eval.empty() && !known.holds_out)) return;
  GuessedSection& section = draft.section("eval");
  section.keys.push_back({"every", "\"1 epoch\"", "", ""});
  if (known.loss.of_model || !known.loss.todo.empty() || known.loss.term.metrics.empty()) return;
  const std::string metrics = joined(known.loss.term.metrics, ", ", toml_string);
  section.keys.push_back({"metrics", "[ " + metrics + " ]", "", ""});
  section.keys.push_back({"best", toml_string(known.loss.term.metrics[0]),
                          "the checkpoint that eval, predict and export take", ""});
}

using Bindings = std::vector<std::pair<std::string, std::int64_t>>;

/// Empty where the model cannot have these lengths; `why` then gets the error.
std::optional<ModelFacts> model_with(const Engine& engine, const std::string& model,
                                     const Bindings& bind, bool in_stages,
                                     std::string* why = nullptr) {
  try {
    return look_into_model(engine, model, bind, in_stages);
  } catch (const Error& error) {
    if (why != nullptr && !error.diagnostics().empty()) *why = error.diagnostics()[0].message;
    return std::nullopt;
  }
}

/// Which inputs are rows of tables does not depend on lengths, but a model with free dimensions
/// cannot be analysed: this imports it with short ones.
void find_tables(const Engine& engine, const std::string& model, bool in_stages, Known& known) {
  Bindings bind(known.said_bind.begin(), known.said_bind.end());
  for (const std::string& name : known.model.free) {
    if (!name.empty() && name != "?") bind.emplace_back(name, trial_length);
  }
  std::optional<ModelFacts> bound = model_with(engine, model, bind, in_stages);
  if (!bound) return;
  known.network = &network_of(*bound);
  if (const std::int64_t most = positions_of(*bound, trial_length); most > 0) {
    const std::int64_t said = known.data->most_length;
    known.data->most_length = said > 0 ? std::min(said, most) : most;
  }
  known.model.tables = std::move(bound->tables);
  known.model.input_rows = std::move(bound->input_rows);
  known.inputs = inputs_of(known.model);
}

/// Free dimensions get the lengths of the samples, and possibly buckets of shorter ones.
void bind_free_dimensions(const Engine& engine, const std::string& model, bool in_stages,
                          Known& known) {
  Bindings bind(known.fields.bind.begin(), known.fields.bind.end());
  bind.insert(bind.end(), known.said_bind.begin(), known.said_bind.end());
  std::string why;
  std::optional<ModelFacts> bound = model_with(engine, model, bind, in_stages, &why);
  if (!bound) {
    // A length from the data is binding, so a failure is an error; a chosen one becomes a question.
    if (!known.data->chose_length) look_into_model(engine, model, bind, in_stages);
    for (const auto& [name, length] : known.fields.bind)
      known.unbound += fmt::format("{}{} = {}", known.unbound.empty() ? "" : ", ", name, length);
    known.unbound = fmt::format("the model does not take {}: {}", known.unbound, why);
    known.fields.bind.clear();
    return;
  }
  known.model = std::move(*bound);
  known.inputs = inputs_of(known.model);
  const auto free = std::move(known.fields.bind);
  known.fields = guess_fields(known.inputs, *known.data);
  known.fields.bind = free;
  if (known.model.has_training_info || known.model.fixed_batch > 0 || in_stages) return;
  known.buckets = guess_buckets(known.inputs, known.fields);
  if (!known.buckets) return;
  const Bindings shortest{{known.buckets->dimension, known.buckets->lengths.front()}};
  if (!model_with(engine, model, shortest, in_stages)) known.buckets.reset();
}

/// For a table: the columns that neither inputs nor labels are made of, nor could be.
std::string unread_columns(const Known& known) {
  if (known.data->rows_read == 0) return "";
  std::set<std::string> read;
  const auto add = [&](const ArrayFacts* array) {
    if (array != nullptr) read.insert(array->columns.begin(), array->columns.end());
  };
  for (const FieldGuess& field : known.fields.fields) {
    add(field.from);
    read.insert(field.offered.begin(), field.offered.end());
  }
  for (const auto& [field, columns] : known.data->said.fields)
    read.insert(columns.begin(), columns.end());
  add(known.loss.labels.from);
  read.insert(known.loss.labels.offered.begin(), known.loss.labels.offered.end());
  std::vector<std::string> unread;
  for (const ArrayFacts& array : known.data->arrays) {
    if (!read.empty() && array.columns.size() == 1 && read.insert(array.columns[0]).second)
      unread.push_back(array.columns[0]);
  }
  constexpr std::size_t most = 20;
  const std::size_t shown = std::min(unread.size(), most);
  return joined(std::span(unread).first(shown)) + (unread.size() > shown ? ", …" : "");
}

/// Dimensions whose lengths are given are bound as if the file had them.
void bind_as_said(const Engine& engine, const std::string& model, const GuessScope& scope,
                  Known& known) {
  for (const std::string& name : known.model.free) {
    if (const auto found = scope.bind.find(name); found != scope.bind.end())
      known.said_bind.insert(*found);
  }
  if (known.said_bind.empty()) return;
  const Bindings bind(known.said_bind.begin(), known.said_bind.end());
  known.model = look_into_model(engine, model, bind, scope.in_stages);
}

Known look(const Engine& engine, const std::string& model, const std::string& data,
           const GuessScope& scope) {
  const bool in_stages = scope.in_stages;
  Known known;
  known.model = look_into_model(engine, model, {}, in_stages);
  bind_as_said(engine, model, scope, known);
  known.inputs = inputs_of(known.model);
  if (data.empty()) {
    for (const InputFacts& input : known.inputs)
      known.fields.fields.push_back({.name = input.name});
  } else {
    known.data = look_into_data(data, scope.said);
    known.data->model_folder = fs::path(known.model.path).parent_path().string();
    known.data->model_stem = fs::path(known.model.path).replace_extension("").string();
    known.data->most_length = positions_in_config(known.data->model_folder);
    if (!known.model.free.empty()) find_tables(engine, model, in_stages, known);
    std::vector<std::string> outputs;
    for (const NamedValue& output : known.model.imported.graph.outputs)
      outputs.push_back(output.name);
    fit_data(known.inputs, *known.data, outputs);
    known.fields = guess_fields(known.inputs, *known.data);
    if (!known.fields.bind.empty()) bind_free_dimensions(engine, model, in_stages, known);
    for (const FieldGuess& field : known.fields.fields) {
      if (field.from != nullptr && known.samples == 0) known.samples = field.from->rows;
    }
  }
  if (known.data && known.samples == 0) {
    for (const ArrayFacts& array : known.data->arrays)
      known.samples = std::max(known.samples, array.rows);
  }
  for (FieldGuess& field : known.fields.fields) {
    if (known.data && known.data->said.fields.contains(field.name))
      field = {.name = field.name, .is_said = true};
  }
  if (scope.has_loss)
    known.loss.of_model = true;  // no loss has to be guessed
  else
    known.loss =
        guess_loss(known.model, known.inputs, known.fields, known.data ? &*known.data : nullptr);
  if (known.buckets && known.loss.own_labels)  // as long as the ids that they are made of
    known.buckets->cut.push_back(known.loss.labels.name);
  if (known.data) offer_columns(known.inputs, *known.data, known.loss, known.fields);
  const bool is_seen = known.model.free.empty() || known.network == nullptr;
  if (is_seen) known.network = &network_of(known.model);
  if (known.data && known.samples > 0)
    known.samples = std::max(known.samples, known.data->all_rows);
  known.holds_out = known.data && known.data->eval.empty() &&
                    // A model that is only used has all of its data held out.
                    (known.samples >= least_samples_to_hold_out || !scope.trains);
  if (known.holds_out)
    known.samples -= std::llround(held_out_part * static_cast<double>(known.samples));
  return known;
}

}  // namespace

std::string run_name(const std::string& model) {
  const fs::path path = normal_path(model);
  const std::string stem = path.stem().string();
  if (stem == "model" && path.parent_path().has_filename())
    return path.parent_path().filename().string();
  return stem;
}

std::string near_path_text(const std::string& path, const std::string& folder) {
  const std::string normal = normal_path(path);
  std::string relative = fs::path(normal).lexically_relative(normal_path(folder)).string();
  const bool is_far = relative.empty() || relative.starts_with("../../..");
  return is_far ? normal : relative;
}

std::string near_path(const std::string& path, const std::string& folder) {
  return toml_string(near_path_text(path, folder));
}

GuessScope training_scope(const std::string& model, const std::string& data,
                          const std::string& folder, const std::vector<std::string>& overrides) {
  GuessScope scope;
  scope.recorded = recorded_training(model, data, folder, overrides);
  scope.has_loss = scope.recorded.has_loss;
  scope.said = said_of_data(scope.recorded.keys, true);
  const SaidOfData now = said_of_data(overrides, false);
  if (now.decimal) scope.said.decimal = now.decimal;
  if (now.thousands) scope.said.thousands = now.thousands;
  if (now.missing) scope.said.missing = now.missing;
  scope.bind = said_bind(scope.recorded.keys);
  for (const auto& [name, length] : said_bind(overrides)) scope.bind[name] = length;
  return scope;
}

GuessedConfiguration guess_configuration(const Engine& engine, const std::string& model,
                                         const std::string& data, const std::string& folder,
                                         const GuessScope& scope) {
  Known known = look(engine, model, data, scope);
  known.folder = folder;
  GuessedConfiguration result;
  Draft& draft = result.draft;
  guess_model(known, draft);
  guess_batch(engine, known, draft);
  guess_epochs(known, draft);
  draft.section("loss");  // fixes its place in the file
  if (!scope.has_loss) write_loss(known, scope.trains, draft);
  if (!known.model.has_training_info) {
    known.network->optimize(known.model, known.length, draft.section("optimizer"));
    if (scope.trains)
      draft.notes.push_back("optimizer and schedule are those of " +
                            std::string(known.network->name));
  }
  write_data(known, draft);
  write_fields(known, draft);
  write_rows(known, draft);
  if (scope.trains) write_adapters(known.model, draft);
  write_eval(known, draft);
  if (known.data) lay_over(scope.recorded, known.model.path, *known.data, draft);
  if (known.data) {
    for (const std::string& note : known.data->notes) draft.notes.push_back(note);
    if (known.data->rows_read > 0 && scope.trains) {
      draft.notes.push_back(fmt::format("columns were measured over {} {} rows",
                                        known.data->has_more_rows ? "the first" : "all",
                                        known.data->rows_read));
    }
    if (const std::string unread = unread_columns(known); !unread.empty())
      draft.notes.push_back("nothing reads the columns " + unread);
  }
  for (const ModelNotice& notice : known.model.notices) {
    // The configuration keeps the modes of the file.
    if (notice.kind == "batch_norm_modes") continue;
    std::vector<std::string>& list = notice.is_warning ? draft.warnings : draft.model_notes;
    list.push_back(on_one_line(in_one_line(notice)));
  }
  for (const ExportNote& note : known.model.export_notes)
    draft.notes.push_back("the export has lost something: " + note.text + "; fixed by " + note.fix);
  for (std::string& note : draft.notes) note = on_one_line(std::move(note));
  const std::string file = fs::path(known.model.path).filename().string();
  result.head = "How " + file + " is trained, as guessed from " +
                (known.data ? "the model and from its data" : "the model") +
                ". A comment says why; `tandem config explain KEY` says what a key means, "
                "`tandem train train.toml --dry-run` checks all of it.";
  for (const std::string& warning : draft.warnings) result.head += "\nWarning: " + warning + ".";
  for (const std::string& note : draft.notes) result.head += "\nNote: " + note + ".";
  for (const std::string& note : draft.model_notes) result.head += "\nNote: " + note + ".";
  GuessedPolicy policy = guess_policy(known.model);
  result.policy = std::move(policy.text);
  result.rules = std::move(policy.rules);
  result.names = policy_names(known.model.imported.graph);
  return result;
}

}  // namespace tandem::api
