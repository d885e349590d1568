#include "tests/api/case_commands.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "api/init/facts.h"
#include "api/init/fields.h"
#include "api/program/data.h"
#include "api/program/init.h"
#include "api/program/policy_files.h"
#include "api/program/runs.h"
#include "engine/formats/files.h"
#include "tandem/tandem.h"
#include "tandem/trained.h"
#include "tests/harness/expected_output.h"
#include "tests/harness/folders.h"
#include "tests/harness/program.h"

namespace tandem::testing {

using nlohmann::json;

CaseCommand::CaseCommand(const std::string& in, Words of, Words with)
    : folder(in), words(std::move(of)), lines(std::move(with)) {
  for (const std::string& line : lines) {
    const std::size_t space = line.find(' ');
    if (line.starts_with("--"))
      options.emplace(line.substr(2, space - 2),
                      space == std::string::npos ? "" : line.substr(space + 1));
    else
      (line.starts_with('/') ? pointers : overrides).push_back(line);
  }
}

std::string CaseCommand::path(const std::string& name) const {
  return name.starts_with('/') ? name : folder + "/" + name;
}

std::string CaseCommand::value(const std::string& option, const std::string& otherwise) const {
  const auto found = options.find(option);
  return found == options.end() ? otherwise : found->second;
}

CaseCommand::Words CaseCommand::values(const std::string& option) const {
  Words all;
  const auto [first, last] = options.equal_range(option);
  for (auto found = first; found != last; ++found) all.push_back(found->second);
  return all;
}

namespace {

/// The values at the pointers of the command; the text, if the command has no pointers.
std::string chosen_output(const CaseCommand& c, const std::string& text,
                          const std::string& object) {
  if (c.pointers.empty()) return text;
  const json all = json::parse(object);
  std::string values;
  for (const std::string& pointer : c.pointers) {
    const json::json_pointer at(pointer);
    values += pointer + ": " + (all.contains(at) ? all.at(at).dump() : "there is none") + "\n";
  }
  return values;
}

/// JSON has the same warnings.
std::string warnings_of(const std::vector<std::string>& warnings, const std::string& object) {
  EXPECT_EQ(json::parse(object).value("warnings", json::array()), json(warnings));
  std::string text;
  for (const std::string& warning : warnings) text += "warning: " + warning + "\n";
  return text;
}

std::string init(const CaseCommand& c) {
  api::InitOptions options{.data = {}, .eval = {}, .to = c.path(c.value("to"))};
  for (const char* name : {"/train.toml", "/policy.toml"})
    std::filesystem::remove(options.to + name);
  if (c.words.size() > 2) options.data = c.path(c.words[2]);
  if (c.words.size() > 3) options.eval = c.path(c.words[3]);
  return api::init(c.path(c.words[1]), options).text;
}

/// Another current folder for as long as this lives.
class InFolder {
 public:
  explicit InFolder(const std::string& folder) : before_(std::filesystem::current_path()) {
    if (!folder.empty()) std::filesystem::current_path(folder);
  }
  ~InFolder() { std::filesystem::current_path(before_); }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;

 private:
  std::filesystem::path before_;
};

std::string train(const CaseCommand& c) {
  const InFolder in(c.has("in") ? c.path(c.value("in")) : "");
  api::TrainOptions options;
  options.overrides = c.overrides;
  options.place = c.values("place");
  options.devices = c.values("device");
  options.run_dir = c.path(c.value("run", "run"));
  options.resume = c.has("resume");
  options.accept_changes = c.has("accept");
  options.dry_run = c.has("dry-run");
  if (!options.resume && !options.dry_run) std::filesystem::remove_all(options.run_dir);
  std::string said;
  options.on_message = [&](const std::string& line) {
    said += line.substr(0, line.find(" into ")) + "\n";  // a folder whose name is a hash
  };
  options.on_progress = [&, stop = options.stop](const api::Progress& progress) {
    if (c.has("stop") && progress.step >= std::stoull(c.value("stop"))) stop.request_stop();
  };
  api::Trainer trainer(c.path(c.words.size() > 1 ? c.words[1] : "train.toml"), options);
  if (options.dry_run) return trainer.summary();
  const api::TrainResult result = trainer.run();
  for (const std::string& warning : result.warnings)
    EXPECT_NE(said.find(warning), std::string::npos) << warning << "\nis not in\n" << said;
  said += (result.interrupted ? "stopped at step " : "trained ") + std::to_string(result.steps) +
          (result.interrupted ? "" : " steps");
  for (const auto& [metric, value] : result.evaluation) said += " " + metric;
  return said;
}

template <class Options>
Options trained_options(const CaseCommand& c) {
  Options options;
  options.overrides = c.overrides;
  options.checkpoint = c.value("checkpoint");
  options.strict_words = c.has("strict");
  if (c.has("config")) options.config = c.path(c.value("config"));
  if (c.words.size() > 2) {
    for (const std::string& file : parts_of(c.words[2], ',')) options.data.push_back(c.path(file));
  }
  return options;
}

/// Whether the numbers are those that an earlier command has kept in the file; the first keeps
/// them.
std::string compared(const std::string& file, const std::string& name, const json& numbers) {
  if (!path_exists(file)) {
    write_file(file, numbers.dump());
    return ", kept in " + name;
  }
  return (read_file(file) == numbers.dump() ? ", as in " : ", not as in ") + name;
}

std::string eval(const CaseCommand& c) {
  std::string said;
  auto options = trained_options<api::TrainedOptions>(c);
  if (c.has("messages")) options.on_message = [&](const std::string& m) { said += m + "\n"; };
  const api::EvaluationReport report = api::evaluate_run(c.path(c.words[1]), options);
  said += warnings_of(report.warnings, report.json);
  for (const Diagnostic& problem : report.problems) said += to_string(problem) + "\n";
  const json object = json::parse(report.json);
  std::string metrics = "evaluated " + object.at("samples").dump() + " samples:";
  for (const auto& [name, value] : object.at("metrics").items()) {
    metrics += " " + name;
    char digits[40] = "";
    if (c.has("values")) std::snprintf(digits, sizeof digits, " %.3g", value.get<double>());
    metrics += digits;
  }
  if (c.has("like"))
    metrics += compared(c.path(c.value("like")), c.value("like"), object.at("metrics"));
  return said + chosen_output(c, c.has("text") ? report.text : metrics, report.json);
}

std::string predict(const CaseCommand& c) {
  std::string said;
  auto options = trained_options<api::PredictOptions>(c);
  if (c.has("messages")) options.on_message = [&](const std::string& m) { said += m + "\n"; };
  options.to = c.path(c.words.size() > 3 ? c.words[3] : "p.csv");
  options.as = c.value("as");
  options.ids = c.values("ids");
  if (c.has("names") || c.has("numbers")) options.class_names = c.has("names");
  const api::Report report = api::predict_run(c.path(c.words[1]), options);
  said += warnings_of(report.warnings, report.json);
  return said + (c.has("show") ? read_file(options.to) : "predicted");
}

std::string exported(const CaseCommand& c) {
  api::ExportSettings settings;
  settings.overrides = c.overrides;
  settings.checkpoint = c.value("checkpoint");
  return api::export_run(c.path(c.words[1]), c.path(c.words.at(2)), settings);
}

std::string reported(const CaseCommand& c) {
  api::write_report({c.path(c.words[1])}, c.path(c.words.at(2)));
  return "";
}

std::string values(const CaseCommand& c) {
  return chosen_output(c, "no /POINTER", read_file(c.path(c.words.at(1))));
}

std::string inspect(const CaseCommand& c) {
  api::InspectOptions options;
  options.parameters = c.has("parameters");
  for (const std::string& bind : c.values("bind")) {
    const std::size_t is = bind.find('=');
    options.bind.emplace_back(bind.substr(0, is), std::stoll(bind.substr(is + 1)));
  }
  const api::InspectReport report = api::inspect(c.path(c.words[1]), options);
  return chosen_output(c, report.text + (report.blocks_training ? "it does not train" : ""),
                       report.json);
}

std::string data(const CaseCommand& c) {
  api::DataOptions options;
  options.overrides = c.overrides;
  const api::DataReport checked = api::data_check(c.path("train.toml"), options);
  return chosen_output(c, checked.report.text + (checked.bad ? "\ntraining refuses this" : ""),
                       checked.report.json);
}

std::string of_program(const CaseCommand& c) {
  std::string arguments;
  for (std::size_t i = 1; i < c.words.size(); ++i) arguments += c.words[i] + " ";
  const Ended ended = run_program(arguments + "2>&1 </dev/null", "cd " + c.folder + "; ");
  std::string said;
  for (const std::string& line : parts_of(with_all(ended.text, program, "tandem"), '\n')) {
    const bool is_chosen = c.lines.empty() || line.find(c.lines[0]) != std::string::npos;
    if (is_chosen && !line.empty()) said += line + "\n";
  }
  return said + "exit code " + std::to_string(ended.code);
}

std::string field(const CaseCommand& c) {
  const std::string name = c.words.at(1);
  const std::int64_t extent = std::stoll(c.words.at(3));
  api::InputFacts input = c.words[2] == "float32"
                              ? api::InputFacts{name, {DType::float32, {extent}}, {"batch", "n"}, 0}
                              : api::InputFacts{name, {DType::int64, {}}, {"batch"}, extent};
  if (!c.word(4).empty()) input.tables[c.word(4)] = extent;
  api::DataFacts facts = api::look_into_data(c.path("data"));
  api::fit_data({input}, facts);
  const api::FieldGuesses guesses = api::guess_fields({input}, facts);
  const api::FieldGuess& guess = guesses.fields.at(0);
  std::string said = "as:";
  for (const std::string& function : guess.as) said += " " + function;
  for (const auto& [table, rows] : guess.rows)
    said += "\nrows: " + table + " " + std::to_string(rows);
  if (!guess.why.empty()) said += "\nwhy: " + guess.why;
  if (!guess.todo.empty()) said += "\ntodo: " + guess.todo;
  return said;
}

std::string policy(const CaseCommand& c) {
  api::PolicyOptions options;
  options.config = c.path("train.toml");
  for (const std::string& line : c.overrides) {
    const std::string value = line.substr(line.find('=') + 1);
    if (line.starts_with("policy="))
      options.policy = c.path(value);
    else if (line.starts_with("model="))
      options.model = c.path(value), options.config.clear();
    else if (line.starts_with("device="))
      options.devices.push_back(value);
    else if (line.starts_with("place="))
      options.place.push_back(value);
    else
      options.overrides.push_back(line);
  }
  const auto of = [&](const api::Report& report) {
    return chosen_output(c, report.text, report.json);
  };
  const std::string command = c.word(1), first = c.word(2), second = c.word(3);
  if (command == "names")
    return of(api::policy_names(options, first, second.empty() ? "graph" : second));
  if (command == "check") return of(api::policy_check(options));
  if (command == "explain") return of(api::policy_explain(options, first, api::phase_of(second)));
  if (command == "plan") return of(api::policy_plan(options));
  if (command == "diff") return of(api::policy_diff(options, c.path(first), c.path(second)));
  return "no such command";
}

/// With several runs or models, "A,B": what all say, or what each says where they differ. What they
/// predict must be the same.
std::string said_of_each(CaseCommand command) {
  std::vector<std::string> said, predicted;
  std::string all;
  for (const std::string& model : parts_of(command.word(1), ',')) {
    command.words[1] = model;
    said.push_back(said_by(command));
    all += model + ": " + said.back() + "\n";
    const std::string file = command.path(command.words.size() > 3 ? command.words[3] : "p.csv");
    if (command.words[0] == "predict" && std::filesystem::exists(file))
      predicted.push_back(read_file(file));
  }
  const bool differ = std::set<std::string>(predicted.begin(), predicted.end()).size() > 1;
  const bool agree = std::set<std::string>(said.begin(), said.end()).size() == 1;
  return (agree ? said[0] : all) + (differ ? "they predict different things" : "");
}

std::string done_by(const CaseCommand& command) {
  const std::string& name = command.words.at(0);
  if (name == "init") return init(command);
  if (name == "train") return train(command);
  if (name == "eval") return eval(command);
  if (name == "predict") return predict(command);
  if (name == "export") return exported(command);
  if (name == "report") return reported(command);
  if (name == "json") return values(command);
  if (name == "inspect") return inspect(command);
  if (name == "data") return data(command);
  if (name == "tandem") return of_program(command);
  if (name == "field") return field(command);
  if (name == "policy") return policy(command);
  return "no such command";
}

std::string error_text(const Error& error) {
  constexpr const char* kinds[] = {"", "runtime", "", "does not fit", "data", "diverged"};
  const std::string kind = kinds[static_cast<std::size_t>(error.kind())];
  return error.what() + (kind.empty() ? "" : "\nerror of kind: " + kind);
}

}  // namespace

std::string said_by(const CaseCommand& command) {
  if (command.words[0] != "tandem" && command.word(1).find(',') != std::string::npos)
    return said_of_each(command);
  try {
    return done_by(command);
  } catch (const Error& error) {
    return error_text(error);
  }
}

}  // namespace tandem::testing
