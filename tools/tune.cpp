// tandem tune TRAIN.toml --over KEY=RANGE
#include <csignal>
#include <cstdio>
#include <memory>

#include "api/program/tune.h"
#include "tools/arguments.h"
#include "tools/interrupt.h"

namespace tandem::tool {

void add_tune(CLI::App& app, Invocation& invocation) {
  struct Options {
    std::string config;
    api::TuneOptions tune;
  };
  auto options = std::make_shared<Options>();
  api::TuneOptions& tune = options->tune;
  CLI::App* command = app.add_subcommand("tune", "Search settings: one training after the other");
  command->add_option("config", options->config, "The train.toml")->required();
  command->add_option("overrides", tune.overrides, "Keys to set in all trials: epochs=3");
  command
      ->add_option("--over", tune.over,
                   "A key that varies: 'optimizer.lr=log(1e-5,1e-1)', 'x=uniform(a,b)', "
                   "'batch_size=[32,64]'; repeatable")
      ->type_name("KEY=RANGE")
      ->allow_extra_args(false)
      ->required();
  command->add_option("--trials", tune.trials, "How many (default: 20)")
      ->check(number_between(1, 10000));
  command
      ->add_option("--halving", tune.halving,
                   "Run all trials for a part of the length; the best one in N continues for N "
                   "times as long")
      ->check(number_between(2, 16));
  command->add_option("--seed", tune.seed, "Seed of the random values (default: 0)");
  command->add_option("--metric", tune.metric,
                      "What trials are compared by (default: eval.best, else loss)");
  command->add_option(
      "--to", tune.to,
      "The folder of the trials (default: runs/NAME in the folder of the configuration)");
  add_placing(*command, tune.place, tune.devices);
  command->add_flag("--json", invocation.json, "tune.json on standard output");
  command->footer(
      "Trials that the folder has already are not run again, and an interrupted one continues. "
      "Ctrl-C (exit code\n"
      "130), SIGTERM (143) and a closed terminal (129) save the current trial; finished ones "
      "stay.\n"
      "Example: tandem tune train.toml epochs=3 --over 'optimizer.lr=log(1e-4,1e-1)' --over "
      "'batch_size=[32,64]' --trials 16");
  on_choice(*command, invocation, [options, &invocation] {
    api::TuneOptions& how = options->tune;
    how.on_message = say;
    catch_interrupts(how.stop, Waiting::goes_on);
    std::signal(SIGPIPE, SIG_IGN);  // a closed display must not end the command
    return until_interrupted([&] {
      const api::TuneReport report = api::tune(options->config, how);
      print_warnings(report.warnings);
      print(report, invocation);
      if (report.interrupted) return 128 + (interrupted_by() != 0 ? interrupted_by() : SIGTERM);
      return report.command.empty() ? static_cast<int>(ErrorKind::runtime) : 0;
    });
  });
}

}  // namespace tandem::tool
