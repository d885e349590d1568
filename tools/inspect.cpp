// tandem inspect MODEL.onnx
#include <memory>
#include <string>

#include "tandem/tandem.h"
#include "tools/arguments.h"

namespace tandem::tool {
namespace {

/// NAME=COUNT, split at `equals`; `misuse`: the error, with the option and what is expected.
std::pair<std::string, std::int64_t> parse_count(const std::string& text, std::size_t equals,
                                                 std::int64_t least, Diagnostic misuse) {
  std::int64_t count = -1;
  try {
    std::size_t used = 0;
    if (equals != std::string::npos && equals > 0) {
      count = std::stoll(text.substr(equals + 1), &used);
      if (used != text.size() - equals - 1) count = -1;
    }
  } catch (const std::exception&) {
  }
  misuse.got = text;
  if (count < least) throw Error(ErrorKind::usage, std::move(misuse));
  return {text.substr(0, equals), count};
}

/// "deep:weight=1000000"; a selector may hold an equals sign.
std::pair<std::string, std::int64_t> parse_rows(const std::string& text) {
  return parse_count(text, text.rfind('='), 1,
                     {.message = "--rows",
                      .expected = "SELECTOR=N with at least 1 row",
                      .fix = "for example --rows '{wide,deep}:weight=184968'"});
}

}  // namespace

std::pair<std::string, std::int64_t> parse_binding(const std::string& text) {
  return parse_count(
      text, text.find('='), 0,
      {.message = "--bind",
       .expected = "NAME=EXTENT with an extent of at least 1, or 0 for the length of a cache",
       .fix = "for example --bind batch=32"});
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
  command->add_option("--batch-norm", options->inspect.batch_norm, "train, inference or file")
      ->check(CLI::IsMember({"train", "inference", "file"}));
  command
      ->add_option("--without", options->inspect.without,
                   "Leave out one of the passes below (repeatable)")
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
  on_choice(*command, invocation, [options, &invocation] {
    for (const std::string& text : options->bind)
      options->inspect.bind.push_back(parse_binding(text));
    for (const std::string& text : options->rows) options->inspect.rows.push_back(parse_rows(text));
    const api::InspectReport report = api::inspect(options->model, options->inspect);
    print(report, invocation);
    return report.blocks_training ? 2 : 0;
  });
}

}  // namespace tandem::tool
