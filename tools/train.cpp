// tandem train TRAIN.toml: progress on a terminal, plain lines elsewhere, all on standard error.
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "api/program/keys.h"
#include "api/program/launched.h"
#include "api/program/terminal.h"
#include "api/program/tune.h"
#include "tools/arguments.h"
#include "tools/go_on.h"
#include "tools/interrupt.h"
#include "tools/launch_note.h"
#include "tools/live_page.h"

namespace tandem::tool {
namespace {

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

/// "step 20/120  epoch 0.51/3"; without totals for a run that ends by time.
std::string place_text(const api::Progress& p) {
  if (p.steps == 0) return fmt::format("step {}  epoch {:.2f}", p.step, p.epoch);
  const bool is_whole = p.epochs == std::floor(p.epochs);
  return fmt::format("step {}/{}  epoch {:.2f}/{:.{}f}", p.step, p.steps, p.epoch, p.epochs,
                     is_whole ? 0 : 2);
}

/// Commands to continue with, quoted for this shell.
std::string next_commands(const Invocation& invocation, const api::TrainResult& result) {
  const std::string program = api::for_shell(invocation.program),
                    run = api::for_shell(result.run_dir);
  std::string text;
  if (!result.evaluation.empty()) text += program + " eval " + run + "\n";
  return text + program + " export " + run + " --to trained.onnx";
}

constexpr double told_data_wait = 0.05;  // smaller fractions of the time are not reported

/// A line for each parameter: "  norm.gradient.fc1:weight 0.12".
std::string norms_text(const api::Progress& p) {
  std::string text;
  for (const auto& [name, value] : p.norms) text += fmt::format("  {} {:.5g}\n", name, value);
  return text;
}

/// Reads "100..104" or "100". Throws Error{usage}.
void read_trace_steps(const std::string& text, api::TrainOptions& options) {
  if (text.empty()) return;
  const char* const end = text.data() + text.size();
  const auto number = [end](const char* at, std::uint64_t& to) {
    const auto [stop, error] = std::from_chars(at, end, to);
    return error == std::errc() && to > 0 ? stop : nullptr;
  };
  std::uint64_t first = 0, last = 0;
  const char* at = number(text.data(), first);
  last = first;
  if (at != nullptr && at != end)
    at = text.ends_with("..") || !std::string_view(at, end).starts_with("..")
             ? nullptr
             : number(at + 2, last);
  if (at != end || last < first || options.trace_path.empty()) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "--trace-steps",
                           .expected = "steps from 1 on, as 100..104 or 100, and --trace FILE",
                           .got = text});
  }
  options.trace_first = first;
  options.trace_last = last;
}

class Display {
 public:
  explicit Display(bool with_norms)
      : terminal_(isatty(STDERR_FILENO) != 0), with_norms_(with_norms) {}

  void progress(const api::Progress& p) {
    std::string line = p.evaluation ? fmt::format("eval  step {}", p.step) : place_text(p);
    for (const auto& [name, value] : p.values) line += fmt::format("  {} {:.5g}", name, value);
    line += fmt::format("  {:.0f} samples/s", p.samples_per_second);
    if (p.data_wait > told_data_wait)
      line += fmt::format("  waits for data {:.0f} %", 100 * p.data_wait);
    if (!p.evaluation && p.seconds_left >= 0 && p.step != p.steps)
      line += "  left " + duration_text(p.seconds_left);
    const std::string norms = with_norms_ ? norms_text(p) : "";
    if (!terminal_ || !norms.empty()) {
      end_line();
      std::fprintf(stderr, "%s\n%s", line.c_str(), norms.c_str());
      return;
    }
    if (p.evaluation) {
      std::fprintf(stderr, "\r\033[K%s\n", line.c_str());
      return;
    }
    const double done =
        p.steps > 0 ? static_cast<double>(p.step) / static_cast<double>(p.steps) : 0;
    constexpr int width = 24;
    const int full = static_cast<int>(done * width);
    std::fprintf(stderr, "\r\033[K[%s%s] %s", std::string(full, '#').c_str(),
                 std::string(width - full, '.').c_str(), line.c_str());
    open_line_ = true;
    if (p.step == p.steps) end_line();
  }
  void message(const std::string& text) {
    end_line();
    say(text);
  }
  void end_line() {
    if (open_line_) std::fputc('\n', stderr);
    open_line_ = false;
  }

 private:
  bool terminal_, with_norms_;
  bool open_line_ = false;
};

struct TrainArguments {
  std::string config;
  std::string data;
  std::string lr_range;
  std::int64_t lr_steps = 100;
  api::TrainOptions train;
  std::string trace_steps;
  bool verbose = false, page = false;
};

/// Reads "1e-6,1"; "" for the default.
void read_lr_range(const std::string& text, api::LrRangeOptions& options) {
  if (text.empty()) return;
  const std::size_t comma = text.find(',');
  const bool read = comma != std::string::npos &&
                    CLI::detail::lexical_cast(text.substr(0, comma), options.from) &&
                    CLI::detail::lexical_cast(text.substr(comma + 1), options.to);
  if (read) return;
  throw Error(ErrorKind::usage, Diagnostic{.message = "not a range of learning rates",
                                           .file = "--lr-range",
                                           .expected = "FROM,TO with 0 < FROM < TO",
                                           .got = text});
}

int sweep_lr(const TrainArguments& arguments, const Invocation& invocation) {
  if (api::launched().ranks > 1) {
    throw Error(ErrorKind::usage, Diagnostic{.message = "--lr-range works as one process",
                                             .file = "--lr-range",
                                             .fix = "start it without a launcher"});
  }
  const api::TrainOptions& train = arguments.train;
  if (train.resume || train.dry_run || !arguments.data.empty()) {
    throw Error(ErrorKind::usage, Diagnostic{.message = "--lr-range trains nothing",
                                             .file = "--lr-range",
                                             .fix = "leave --resume, --dry-run and --data out"});
  }
  api::LrRangeOptions options;
  read_lr_range(arguments.lr_range, options);
  options.steps = arguments.lr_steps;
  options.folder = train.run_dir;
  options.overrides = train.overrides;
  options.place = train.place;
  options.devices = train.devices;
  options.stop = train.stop;
  Display display(false);
  options.on_progress = [&](const api::Progress& p) { display.progress(p); };
  options.on_message = [&](const std::string& text) { display.message(text); };
  catch_interrupts(options.stop, Waiting::goes_on);
  std::signal(SIGPIPE, SIG_IGN);
  return until_interrupted([&] {
    const api::LrRangeReport report = api::lr_range(arguments.config, options);
    display.end_line();
    print(report, invocation);
    return report.interrupted ? 128 + interrupted_by() : 0;
  });
}

}  // namespace

void add_train(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<TrainArguments>();
  CLI::App* command = app.add_subcommand("train", "Train as a train.toml says");
  command->add_option("config", options->config, "The train.toml, or with --data an ONNX file")
      ->required();
  command->add_option("overrides", options->train.overrides,
                      "Keys to set: optimizer.lr=0.01 epochs=3");
  command->add_option("--data", options->data,
                      "With an ONNX file: a file or folder of data, from which the rest is guessed "
                      "as by init");
  command->add_option(
      "--run-dir", options->train.run_dir,
      "Where to write (default: the next free runs/NAME-0001 in the folder of the configuration)");
  command->add_flag(
      "--resume", options->train.resume,
      "Continue --run-dir or the newest unfinished run, as it was started: its keys, --place and "
      "--device are used again; one that has reached its length continues to that of train.toml");
  command->add_flag("--accept-changes", options->train.accept_changes,
                    "Resume although the model or the data have changed since the checkpoint, or "
                    "placement, devices or length are not those of the start");
  command->add_flag(
      "--dry-run", options->train.dry_run,
      "Check everything, the run directory too, build the plan, print the summary, train nothing");
  command->add_flag("--log-operators", options->train.log_operators,
                    "With each log line: the step's times by operator, ids and rows of tables");
  CLI::Option* const lr_range =
      command
          ->add_option("--lr-range", options->lr_range,
                       "Train nothing: raise the learning rate over a few steps until the loss "
                       "diverges, and suggest one (default: 1e-7,10)")
          ->type_name("FROM,TO")
          ->expected(0, 1);
  command->add_option("--lr-steps", options->lr_steps, "Steps of --lr-range (default: 100)")
      ->check(number_between(10, 1e6));
  command
      ->add_option("--trace", options->train.trace_path,
                   "Write a Chrome trace of some steps, to be opened in ui.perfetto.dev")
      ->type_name("FILE");
  command
      ->add_option("--trace-steps", options->trace_steps,
                   "Which steps: 100..104, or 100 (default: the third to the fifth that run)")
      ->type_name("FROM..TO");
  command->add_flag(
      "-v,--verbose", options->verbose,
      "With each log line: norms of gradients and updates (log.norms); with the plan: "
      "copies of values to another order in memory");
  command->add_flag("--page", options->page,
                    "Show the placement and the curves in the browser while it trains; its address "
                    "is printed after the first step that is logged");
  add_placing(*command, options->train.place, options->train.devices);
  command->add_flag("--json", invocation.json, "Errors as a JSON object on standard output");
  command->footer(
      "Writes metrics.jsonl, train.log, checkpoints/ and the resolved configuration into the run "
      "directory.\n"
      "Ctrl-C saves a checkpoint and stops (exit code 130); so do SIGTERM (143) and a closed "
      "terminal (129).\n"
      "Example: tandem train train.toml batch_size=64 optimizer.kind=adamw optimizer.lr=1e-3\n"
      "         tandem train model.onnx epochs=3 --data digits.npz\n"
      "         tandem train train.toml --lr-range");
  on_choice(*command, invocation, [options, lr_range, &invocation] {
    if (lr_range->count() > 0) {
      if (api::is_setting(options->lr_range))  // a key follows the option
        options->train.overrides.push_back(std::exchange(options->lr_range, ""));
      return sweep_lr(*options, invocation);
    }
    if (!options->data.empty()) options->train.overrides.push_back("data=" + options->data);
    read_trace_steps(options->trace_steps, options->train);
    options->train.verbose = options->verbose;
    Display display(options->verbose);
    std::string run_dir;
    bool shows_page = options->page;
    options->train.on_progress = [&](const api::Progress& p) {
      display.progress(p);
      // All files of the run are there with its first line.
      if (std::exchange(shows_page, false)) start_live_page(run_dir, options->train);
    };
    options->train.on_message = [&](const std::string& text) { display.message(text); };
    options->train.on_run_dir = [&run_dir](const std::string& path) {
      run_dir = path;
      note_run_dir(path);
    };
    catch_interrupts(options->train.stop, Waiting::goes_on);  // saves, then stops
    std::signal(SIGPIPE, SIG_IGN);  // a closed terminal or `| head` ends the display, not the run
    std::optional<api::Trainer> trainer;
    try {
      // Import, tokens and plans may take long without checking for a stop. Several ranks are ended
      // together by their launch.
      if (api::launched().ranks == 1) when_unheard(Unheard::ends);
      trainer.emplace(options->config, options->train);
      when_unheard(Unheard::tells);
    } catch (const ErrorElsewhere&) {
      throw;
    } catch (const Error& error) {
      if (interrupted_by() == 0) throw;
      display.message(fmt::format("tandem: {}", error.what()));  // nothing to save yet
      return 128 + interrupted_by();
    }
    if (const std::string summary = trainer->summary(); !summary.empty()) display.message(summary);
    const auto say_how_to_go_on = [&] {
      if (const std::string text = go_on_text(invocation, run_dir); !text.empty())
        display.message(text);
    };
    api::TrainResult result;
    try {
      result = trainer->run();
    } catch (const ErrorElsewhere&) {
      throw;
    } catch (const Error& error) {
      display.end_line();
      const int code = report(error, invocation.json);
      if (error.kind() != ErrorKind::usage) say_how_to_go_on();
      return code;
    }
    display.end_line();
    // If one of several ranks is asked to stop, all stop.
    const int stopped = 128 + (interrupted_by() != 0 ? interrupted_by() : SIGTERM);
    if (result.rank > 0) {
      // Launchers kill all others once one has ended with an error, so rank 0 prints first.
      if (result.interrupted) std::this_thread::sleep_for(std::chrono::seconds(1));
      return result.interrupted ? stopped : 0;
    }
    if (result.interrupted) note_saved();
    if (options->train.dry_run) {
      display.message("dry run: nothing was trained, no run directory was written");
      return 0;
    }
    std::string last;
    if (!std::isnan(result.loss)) last = fmt::format(": loss {:.5g}", result.loss);
    for (const auto& [name, value] : result.evaluation)
      last += fmt::format("{} held-out {} {:.5g}", last.empty() ? ":" : " ", name, value);
    display.message(fmt::format("{} after {} step{}{}\nrun directory {}",
                                result.interrupted ? "interrupted and saved" : "done", result.steps,
                                result.steps == 1 ? "" : "s", last, result.run_dir));
    for (const api::MetricTable& table : result.tables) display.message(api::to_text(table));
    if (result.interrupted)
      say_how_to_go_on();
    else
      display.message(next_commands(invocation, result));
    if (!result.best_metric.empty())
      display.message(fmt::format("best       {} {:.5g}, the checkpoint of step {}",
                                  result.best_metric, result.best_value, result.best_step));
    return result.interrupted ? stopped : 0;
  });
}

}  // namespace tandem::tool
