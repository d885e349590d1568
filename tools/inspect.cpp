// tandem inspect MODEL.onnx
#include <memory>
#include <string>

#include "tandem/tandem.h"
#include "tools/arguments.h"

namespace tandem::tool {
std::pair<std::string, std::int64_t> parse_binding(const std::string& text) {
  const std::size_t equals = text.find('=');
  std::int64_t extent = 0;
  try {
    std::size_t used = 0;
    if (equals != std::string::npos && equals > 0) {
      extent = std::stoll(text.substr(equals + 1), &used);
      if (used != text.size() - equals - 1) extent = 0;
    }
  } catch (const std::exception&) {
  }
  if (extent <= 0) {
    Diagnostic d;
    d.message = "--bind";
    d.expected = "NAME=EXTENT with an extent of at least 1";
    d.got = text;
    d.fix = "for example --bind batch=32";
    throw Error(ErrorKind::usage, std::move(d));
  }
  return {text.substr(0, equals), extent};
}

/// "deep:weight=1000000"; a selector may hold an equals sign.
std::pair<std::string, std::int64_t> parse_rows(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  std::int64_t rows = 0;
  try {
    std::size_t used = 0;
    if (equals != std::string::npos && equals > 0) {
      rows = std::stoll(text.substr(equals + 1), &used);
      if (used != text.size() - equals - 1) rows = 0;
    }
  } catch (const std::exception&) {
  }
  if (rows <= 0) {
    Diagnostic d;
    d.message = "--rows";
    d.expected = "SELECTOR=N with at least 1 row";
    d.got = text;
    d.fix = "for example --rows '{wide,deep}:weight=184968'";
    throw Error(ErrorKind::usage, std::move(d));
  }
  return {text.substr(0, equals), rows};
}

void add_inspect(CLI::App& app, Invocation& invocation) {
  struct Options {
    std::string model;
    std::vector<std::string> bind, rows;
    api::InspectOptions inspect;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Say what is in a model, what is trainable and why, what blocks training");
  command->add_option("model", options->model, "The ONNX file")->required();
  command->add_option("--bind", options->bind, "Extents of free dimensions: batch=32 sequence=128");
  command
      ->add_option("--rows", options->rows,
                   "Rows of tables, as [parameters] shape sets them (repeatable): deep:weight=1000")
      ->type_name("SELECTOR=N")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--stage", options->inspect.stage,
                   "Print a stage: graph, training, placement, lowered, plan")
      ->check(CLI::IsMember({"graph", "training", "placement", "lowered", "plan"}));
  command->add_option("--batch-norm", options->inspect.batch_norm, "train or inference")
      ->check(CLI::IsMember({"train", "inference"}));
  command
      ->add_option("--without", options->inspect.without,
                   "Leave out a pass (repeatable), of those below")
      ->type_name("PASS")
      ->expected(1)
      ->take_all();
  command->add_flag("--parameters", options->inspect.parameters,
                    "List every parameter: whether it trains, and why");
  command->add_flag("--json", invocation.json, "One JSON object on standard output");
  std::string passes, line;
  for (const std::string& name : api::pass_names()) {
    if (line.size() + name.size() > 90) {
      passes += line + "\n";
      line.clear();
    }
    line += "  " + name;
  }
  command->footer("Passes:\n" + passes + line +
                  "\nExit code 2 where something blocks training.\nExample: tandem inspect "
                  "model.onnx --bind batch=32 --stage plan");
  command->callback([options, &invocation] {
    invocation.action = [options, &invocation] {
      for (const std::string& text : options->bind)
        options->inspect.bind.push_back(parse_binding(text));
      for (const std::string& text : options->rows)
        options->inspect.rows.push_back(parse_rows(text));
      const api::InspectReport report = api::inspect(options->model, options->inspect);
      print(report.text, report.json, invocation.json);
      return report.blocks_training ? 2 : 0;
    };
  });
}

}  // namespace tandem::tool
