// The `tandem` program: parses the command line, runs one subcommand, turns errors into exit codes.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tandem/tandem.h"
#include "tools/command.h"

namespace tandem::tool {
namespace {

int report(const Error& error, bool json) {
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Diagnostic& d : error.diagnostics()) {
      list.push_back({{"file", d.file},
                      {"line", d.line},
                      {"column", d.column},
                      {"path", d.path},
                      {"message", d.message},
                      {"expected", d.expected},
                      {"got", d.got},
                      {"fix", d.fix}});
    }
    std::puts(nlohmann::ordered_json{{"errors", list}}
                  .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                  .c_str());
  }
  std::fprintf(stderr, "tandem: %s\n", error.what());
  return static_cast<int>(error.kind());
}

int run(int argc, char** argv) {
  CLI::App app{"Trains ONNX models without Python, on hosts and accelerators.", "tandem"};
  app.footer(
      "Examples:\n"
      "  tandem inspect model.onnx                 what is in it, what is trainable, what is missing\n"
      "  tandem train train.toml                   train; progress here, results in runs/train-0001\n"
      "  tandem train train.toml --resume          go on with the newest unfinished run\n"
      "  tandem export runs/train-0001 --to trained.onnx\n"
      "Exit codes: 0 done, 1 run-time failure, 2 bad usage, model or configuration, 3 the plan does not fit,\n"
      "            4 bad data, 5 the loss is not finite, 130 and 143 interrupted after saving.");
  app.set_version_flag("--version", api::version());
  app.require_subcommand(1);
  Invocation invocation;
  add_inspect(app, invocation);
  add_train(app, invocation);
  add_export(app, invocation);
  add_bench(app, invocation);
  add_doctor(app, invocation);
  add_config(app, invocation);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : static_cast<int>(ErrorKind::usage);
  }
  try {
    return invocation.action();
  } catch (const Error& e) {
    return report(e, invocation.json);
  } catch (const std::bad_alloc&) {
    return report(Error(ErrorKind::does_not_fit, Diagnostic{"out of memory", "", 0, 0, "", "", "", "use a smaller batch_size or micro_batch"}),
                  invocation.json);
  } catch (const std::exception& e) {
    return report(Error(ErrorKind::runtime, Diagnostic{e.what(), "", 0, 0, "", "", "", ""}), invocation.json);
  }
}

}  // namespace

int print(const std::string& text, const std::string& json, bool as_json) {
  const std::string& chosen = as_json ? json : text;
  std::fwrite(chosen.data(), 1, chosen.size(), stdout);
  if (chosen.empty() || chosen.back() != '\n') std::fputc('\n', stdout);
  return 0;
}

}  // namespace tandem::tool

int main(int argc, char** argv) { return tandem::tool::run(argc, argv); }
