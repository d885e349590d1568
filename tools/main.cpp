// The `tandem` program: parses the command line, runs one subcommand, turns errors into exit codes.
#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "api/program/launched.h"
#include "api/program/terminal.h"
#include "tandem/tandem.h"
#include "tools/command.h"
#include "tools/failing_files.h"

namespace tandem::tool {
namespace {

/// Opens closed standard streams, since the next opened file would get their number, and messages
/// would be written into it.
void open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDWR) == -1) _exit(1);
  }
}

constexpr std::size_t most_lines = 50, most_objects = 1000;

}  // namespace

int report(const Error& error, bool json) {
  const std::vector<Diagnostic>& all = error.diagnostics();
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Diagnostic& d : all) {
      if (list.size() == most_objects) break;
      list.push_back({{"file", d.file},
                      {"line", d.line},
                      {"column", d.column},
                      {"path", d.path},
                      {"message", d.message},
                      {"expected", d.expected},
                      {"got", d.got},
                      {"fix", d.fix}});
    }
    nlohmann::ordered_json object{{"errors", list}};
    if (all.size() > list.size()) object["more"] = all.size() - list.size();
    std::puts(object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  }
  std::string text;
  for (std::size_t i = 0; i < all.size() && i < most_lines; ++i)
    text += (text.empty() ? "" : "\n") + to_string(all[i]);
  if (all.size() > most_lines)
    text += "\n... and " + std::to_string(all.size() - most_lines) + " more";
  say("tandem: " + text);
  return static_cast<int>(error.kind());
}

namespace {

/// For errors that no part of the program expects: the message of a library, which does not give
/// the cause.
Error unexpected(const std::string& what, int argc, char** argv) {
  std::string command = "tandem";
  for (int i = 1; i < argc; ++i) command += std::string(" ") + argv[i];
  return {ErrorKind::runtime,
          Diagnostic{.message = "an unexpected error, which is a fault of tandem itself: " + what,
                     .fix = "please report it, with this command and its files: " + command}};
}

/// The name that is most similar to a word, by the number of different letters; "" where none is
/// similar.
std::string nearest_of(const std::vector<std::string>& names, const std::string& word) {
  const auto distance = [](const std::string& a, const std::string& b) {
    // The distance of Damerau and Levenshtein: two swapped letters count once.
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
      for (std::size_t j = 1; j <= b.size(); ++j) {
        const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
        d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
          d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
    return d[a.size()][b.size()];
  };
  std::string nearest;
  std::size_t least = 3;  // one more than the greatest distance
  for (const std::string& name : names) {
    const std::size_t letters = distance(word, name);
    if (letters >= least || letters >= name.size()) continue;
    least = letters;
    nearest = name;
  }
  return nearest;
}

std::string nearest_subcommand(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return nearest_of(names, word);
}

/// The option that an unknown one was probably meant for; "" where all are known or none is
/// similar.
std::string nearest_option(const CLI::App& command, int argc, char** argv) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  for (int i = 1; i < argc && argv[i] != std::string_view("--"); ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with("--")) continue;
    const std::string name(argument.substr(2, argument.find('=') - 2));
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string nearest = nearest_of(names, name);
    if (!nearest.empty()) return "--" + nearest;
  }
  return "";
}

/// The error for a command line that could not be parsed.
Error usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const std::string unknown = "unknown subcommand or option: ";
  Diagnostic d{.message = error.what()};
  // CLI11 reports a missing subcommand also where an unknown one is given.
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && app.get_subcommands().empty() &&
      argc > 1) {
    d.message = unknown + argv[1];
  }
  while (!d.message.empty() && d.message.back() == '\n') d.message.pop_back();
  std::string command = "tandem";
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    command += " " + at->get_name();
  }
  const std::string nearest =
      d.message.starts_with(unknown) ? nearest_subcommand(app, argv[1]) : std::string();
  if (!nearest.empty()) {
    d.fix = "did you mean `tandem " + nearest + "`? tandem --help lists all";
    return {ErrorKind::usage, std::move(d)};
  }
  const std::string option = nearest_option(*at, argc, argv);
  d.fix = option.empty() ? "run " + command + " --help for more information"
                         : "did you mean " + option + "? " + command + " --help lists all";
  return {ErrorKind::usage, std::move(d)};
}

/// Whether the command line has --json, even if it could not be parsed.
bool asks_for_json(int argc, char** argv) {
  for (int i = 1; i < argc && argv[i] != std::string_view("--"); ++i) {
    if (argv[i] == std::string_view("--json")) return true;
  }
  return false;
}

/// Refuses several processes for commands that do not divide their work: they would overwrite each
/// other's files.
void refuse_ranks(const CLI::App& app) {
  const std::string name = app.get_subcommands().front()->get_name();
  if (works_as_ranks(name)) return;
  const api::Launched launched = api::launched();
  if (launched.ranks == 1) return;
  Diagnostic d;
  d.message = "tandem " + name + " works only as one process";
  d.got = "rank " + std::to_string(launched.rank) + " of " + std::to_string(launched.ranks) +
          ", as the launcher's variables say";
  d.fix = "start it without mpirun; train, eval and predict work as several";
  throw Error(ErrorKind::usage, std::move(d));
}

/// The arguments in reverse order, as CLI11 wants them. `help train` becomes `train --help`;
/// `launch` is followed by a command with options of its own, so "--" is inserted before it unless
/// the user has written it.
std::vector<std::string> arguments_of(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.emplace_back("--help");
  }
  if (!arguments.empty() && arguments.front() == "launch") {
    const auto is_subcommand = [&](const std::string& argument) {
      const std::function<bool(const CLI::App*)> is_it = [&](const CLI::App* subcommand) {
        return subcommand->get_name() == argument;
      };
      return !app.get_subcommands(is_it).empty();
    };
    const auto command = std::find_if(
        arguments.begin() + 1, arguments.end(),
        [&](const std::string& argument) { return argument == "--" || is_subcommand(argument); });
    if (command != arguments.end() && *command != "--") arguments.insert(command, "--");
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

int run(int argc, char** argv) {
  CLI::App app{"Trains ONNX models without Python, on hosts and accelerators.", "tandem"};
  std::string examples;
  for (const Command& command : all_commands) examples += command.examples;
  app.footer(
      "Examples:\n" + examples +
      "Exit codes: 0 done, 1 run-time failure, 2 bad usage, model or configuration, 3 the plan "
      "does not fit,\n"
      "            4 bad data, 5 loss, parameters or metrics are not finite any more,\n"
      "            6 policy diff --exit-code, export --verify: they differ,\n"
      "            129, 130, 138 and 143 interrupted by SIGHUP, SIGINT, SIGUSR1 and SIGTERM; train "
      "has saved.");
  app.set_version_flag("--version", api::version());
  app.require_subcommand(1);
  Invocation invocation;
  if (argc > 0 && std::string_view(argv[0]).find('/') != std::string_view::npos)
    invocation.program = argv[0];
  if (argc > 1) invocation.arguments.assign(argv + 1, argv + argc);
  for (const Command& command : all_commands) command.add(app, invocation);
  try {
    app.parse(arguments_of(app, argc, argv));
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // for --help and --version
    return report(usage_error(app, e, argc, argv), asks_for_json(argc, argv));
  }
  try {
    refuse_ranks(app);
    return invocation.action();
  } catch (const ErrorElsewhere& e) {
    // Launchers kill all other ranks once one has ended, so this one waits for the rank that
    // reports the error.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return static_cast<int>(e.kind());
  } catch (const Error& e) {
    return report(e, invocation.json);
  } catch (const std::bad_alloc&) {
    return report(Error(ErrorKind::does_not_fit,
                        Diagnostic{"out of memory", "", 0, 0, "", "", "",
                                   "use a smaller batch_size or micro_batch, or fewer "
                                   "rows in parameters.shape"}),
                  invocation.json);
  } catch (const std::filesystem::filesystem_error& e) {
    return report(Error(ErrorKind::runtime, {.message = "the system refused: " + e.code().message(),
                                             .file = e.path1().string()}),
                  invocation.json);
  } catch (const std::system_error& e) {
    return report(
        Error(ErrorKind::runtime, {.message = "the system refused: " + e.code().message()}),
        invocation.json);
  } catch (const std::exception& e) {
    return report(unexpected(e.what(), argc, argv), invocation.json);
  }
}

}  // namespace

void say(const std::string& text) { std::fprintf(stderr, "%s\n", api::for_terminal(text).c_str()); }

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) say("warning: " + warning);
}

int print(const std::string& text, const std::string& json, bool as_json) {
  const std::string chosen = as_json ? json : api::for_terminal(text);
  std::fwrite(chosen.data(), 1, chosen.size(), stdout);
  if (chosen.empty() || chosen.back() != '\n') std::fputc('\n', stdout);
  return 0;
}

}  // namespace tandem::tool

int main(int argc, char** argv) {
  tandem::tool::open_standard_streams();
  tandem::tool::report_failing_files();
  const int code = tandem::tool::run(argc, argv);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::perror("tandem: cannot write to standard output");
    return code == 0 ? static_cast<int>(tandem::ErrorKind::runtime) : code;
  }
  return code;
}
