// tandem launch -n N -- train TRAIN.toml: runs several processes on this machine through mpirun.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "api/program/launched.h"
#include "tandem/tandem.h"
#include "tools/command.h"
#include "tools/go_on.h"
#include "tools/launch_note.h"

namespace tandem::tool {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& message, const std::string& got,
                         const std::string& fix) {
  throw Error(ErrorKind::usage, Diagnostic{.message = message, .got = got, .fix = fix});
}

constexpr int no_such_command = 127;  // exit code of a shell

/// The output of `mpirun --version`; empty where there is no mpirun in PATH.
std::optional<std::string> launcher_version() {
  std::string text;
  FILE* const pipe = popen("mpirun --version 2>&1", "r");
  if (pipe == nullptr) return text;
  char buffer[512];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
  const int status = pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == no_such_command) return std::nullopt;
  return text;
}

/// Sets what containers and small machines need, unless the user has set it.
void prepare_environment(bool is_open_mpi) {
  if (!is_open_mpi) return;
  if (geteuid() == 0) {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  }
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
}

std::vector<std::string> command_line(int ranks, bool is_open_mpi,
                                      const std::vector<std::string>& command) {
  std::vector<std::string> line{"mpirun", "-np", std::to_string(ranks)};
  // A rank's threads may use all cores that it is given, instead of being bound to a single one.
  if (is_open_mpi) line.insert(line.end(), {"--oversubscribe", "--bind-to", "none"});
  line.push_back(fs::canonical("/proc/self/exe"));
  line.insert(line.end(), command.begin(), command.end());
  return line;
}

volatile std::sig_atomic_t child = 0, ranks_started = 0, signal_received = 0, ended_early = 0;
const char* volatile note_path = "";

/// Forwards a signal. mpirun passes SIGUSR1 on to its ranks, which save and end; with any signal
/// that ends mpirun itself, it would give them one second. Ranks that do not handle it yet have
/// nothing to save. A second signal is not forwarded gently.
void pass_on(int signal) {
  const bool is_wish = signal_received == 0 && are_ranks_up(note_path, ranks_started);
  if (signal_received == 0 && !is_wish) ended_early = 1;
  if (child > 0) (void)kill(child, is_wish ? SIGUSR1 : SIGTERM);
  signal_received = signal;
}

constexpr int wishes[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};  // requests to save and end

/// Returns the exit code; 128 + signal where a signal has ended the process.
int run_to_end(const std::vector<std::string>& line) {
  std::vector<char*> arguments;
  for (const std::string& argument : line) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    for (const int signal : wishes) std::signal(signal, SIG_DFL);
    setpgid(0, 0);  // keeps the terminal's Ctrl-C from it
    if (freopen("/dev/null", "r", stdin) == nullptr) _exit(127);  // nor does it read the keyboard
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execvp(arguments[0], arguments.data());
    std::perror("tandem launch: mpirun");
    _exit(127);
  }
  child = pid;
  if (signal_received != 0) {  // it came before there was a child
    ended_early = 1;
    (void)kill(pid, SIGTERM);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  child = 0;
  if (WIFSIGNALED(status)) sleep(3);  // waits for processes of mpirun, which end by themselves
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool is_of_wish(int code) {
  return std::any_of(std::begin(wishes), std::end(wishes),
                     [code](int signal) { return code == 128 + signal; });
}

/// Whether another try may succeed: a process was killed or the system failed, and not the user's
/// files.
bool may_go_better(int code) {
  return signal_received == 0 && (code == 1 || code > 128) && !is_of_wish(code);
}

/// The exit code of a launch whose ranks ended with `code`: 128 + signal where they followed a
/// request to end, or where it came before there was anything to save. mpirun's own code is 1 if a
/// signal reached it too.
int exit_code(int code, bool has_saved) {
  const bool is_followed = has_saved || ended_early != 0 || code == 0 || is_of_wish(code);
  return signal_received != 0 && is_followed ? 128 + signal_received : code;
}

/// Prints how to resume a training that has ended early.
void say_how_to_go_on(const Invocation& invocation, int ranks,
                      const std::vector<std::string>& command, const std::string& run_dir) {
  if (!has_checkpoint(run_dir)) return;
  std::vector<std::string> words{invocation.program, "launch", "-n", std::to_string(ranks), "--"};
  const std::vector<std::string> resumed = resuming(command, run_dir);
  words.insert(words.end(), resumed.begin(), resumed.end());
  std::fprintf(stderr, "tandem launch: continue with: %s\n", shell_line(words).c_str());
}

/// `least`: the minimum number of ranks; each further try starts one fewer.
int launch(int ranks, int restarts, int least, const std::vector<std::string>& command,
           const Invocation& invocation) {
  if (command.empty())
    refuse("tandem launch: there is no command", "", "tandem launch -n 4 -- train train.toml");
  const bool trains = command.front() == "train";
  if (!works_as_ranks(command.front()))
    refuse("tandem launch: no command that works as several processes", command.front(),
           "train, eval, predict and doctor do; run others without `launch`");
  if (restarts > 0 && !trains)
    refuse("tandem launch --restarts: a command that cannot be resumed", command.front(),
           "leave --restarts out");
  const std::optional<std::string> version = launcher_version();
  if (!version) {
    refuse(
        "tandem launch needs mpirun, which is not in PATH", "",
        "install it (Debian: apt-get install openmpi-bin), or start the ranks with Slurm's srun");
  }
  const bool is_open_mpi = version->find("Open") != std::string::npos;
  prepare_environment(is_open_mpi);
  struct sigaction action {};
  action.sa_handler = pass_on;
  const LaunchNote note;
  note_path = note.path().c_str();
  for (const int signal : wishes) sigaction(signal, &action, nullptr);
  std::string run_dir;
  for (int again = 0;; ++again) {
    ranks_started = ranks;
    note.clear();
    const int code = run_to_end(
        command_line(ranks, is_open_mpi, run_dir.empty() ? command : resuming(command, run_dir)));
    if (const std::string found = note.run_dir(); !found.empty()) run_dir = found;
    if (!may_go_better(code) || again >= restarts) {
      const int result = exit_code(code, note.has_saved());
      const bool is_refused = result == static_cast<int>(ErrorKind::usage);
      if (result != 0 && !is_refused && trains)
        say_how_to_go_on(invocation, ranks, command, run_dir);
      return result;
    }
    std::fprintf(stderr, "tandem launch: the run has ended with exit code %d; try %d of %d %s\n",
                 code, again + 1, restarts,
                 run_dir.empty() ? "starts it again: there was no run directory yet"
                                 : ("resumes " + run_dir).c_str());
    if (ranks > least) {
      --ranks;
      std::fprintf(stderr, "tandem launch: with %d ranks\n", ranks);
    }
  }
}

}  // namespace

void add_launch(CLI::App& app, Invocation& invocation) {
  struct Options {
    int ranks = 0, restarts = 0, least = 0;
    std::vector<std::string> command;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "launch", "Start several processes of this machine that work together, over mpirun");
  command->add_option("-n,--ranks", options->ranks, "How many processes")
      ->required()
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--restarts", options->restarts,
                   "How often a training that was killed or failed is resumed")
      ->check(CLI::Range(0, 1000));
  command
      ->add_option(
          "--least", options->least,
          "Each of these tries starts one process fewer, but at least this many (default: all)")
      ->check(CLI::Range(1, 4096));
  command->add_option("command", options->command, "What to run: train train.toml …");
  command->footer(
      "Each process is a rank: together they do what one would do. Over several machines mpirun or "
      "srun starts\n"
      "`tandem train` itself (docs/processes.md).\n"
      "Examples:\n"
      "  tandem launch -n 4 --restarts 2 -- train train.toml\n"
      "  tandem launch -n 8 --restarts 4 --least 4 -- train train.toml\n"
      "  tandem launch -n 4 -- predict runs/train-0001 --data rows.tsv --to predictions.tsv");
  command->callback([options, &invocation] {
    invocation.action = [options, &invocation] {
      const int least = options->least > 0 ? options->least : options->ranks;
      if (options->least > 0 && options->restarts == 0)
        refuse("tandem launch --least: nothing is restarted", "", "add --restarts N");
      if (least > options->ranks)
        refuse("tandem launch --least: more ranks than there are", std::to_string(least),
               "at most the number of -n");
      return launch(options->ranks, options->restarts, least, options->command, invocation);
    };
  });
}

}  // namespace tandem::tool
