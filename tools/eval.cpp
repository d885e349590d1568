// tandem eval RUN: loss and metrics of a trained model.
#include <csignal>
#include <memory>

#include "tandem/tandem.h"
#include "tools/arguments.h"
#include "tools/interrupt.h"
#include "tools/progress_line.h"

namespace tandem::tool {

void add_weights(CLI::App& command, std::string& weights) {
  command
      .add_option("--weights", weights,
                  "trained, ema or swa (default: those that the run evaluates, eval.weights)")
      ->type_name("WHICH");
}

void add_trained(CLI::App& command, api::TrainedOptions& options, std::string& run) {
  command.add_option("run", run, "A run directory, one of its checkpoints, or an .onnx file")
      ->required();
  command.add_option("overrides", options.overrides,
                     "Keys of the configuration to set: data.on_bad=skip");
  command
      .add_option("--checkpoint", options.checkpoint,
                  "best, latest or a step (default: best where the run has one, else latest)")
      ->type_name("WHICH");
  add_weights(command, options.weights);
  command.add_flag("--accept-changes", options.accept_changes,
                   "Use a model that has changed since the checkpoint was written");
  command.add_flag("--strict-words", options.strict_words,
                   "Refuse rows with words that the vocabularies of the training data lack (exit "
                   "code 4)");
  command
      .add_option("--config", options.config,
                  "The train.toml of an .onnx file (default: guessed from it and --data)")
      ->type_name("TRAIN.toml");
  add_placing(command, options.place, options.devices);
}

void add_eval(CLI::App& app, Invocation& invocation) {
  struct Options {
    std::string run;
    api::TrainedOptions eval;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("eval", "Loss and metrics of a trained model over held-out data");
  add_trained(*command, options->eval, options->run);
  command
      ->add_option("--data", options->eval.data,
                   "Files with labels instead of the configuration's held-out data")
      ->type_name("FILE");
  command->add_flag("--json", invocation.json, "One JSON object on standard output");
  command->footer(
      "Runs on the devices that the policy of the training names. Text tables are encoded into a "
      "folder\n"
      "in TMPDIR, which is removed, also by Ctrl-C (exit code 130), SIGTERM (143) and a closed "
      "terminal (129).\n"
      "Examples:\n"
      "  tandem eval runs/train-0001\n"
      "  tandem launch -n 4 -- eval runs/train-0001\n"
      "  tandem eval runs/train-0001 --checkpoint latest --json\n"
      "  tandem eval runs/train-0001 'eval.metrics=[\"auc\",\"log_loss\"]' --data day_23.gz\n"
      "  tandem eval runs/digits-0001 --data images=t10k-images.gz labels=t10k-labels.gz\n"
      "  tandem eval model.onnx --data test.npz");
  on_choice(*command, invocation, [options, &invocation] {
    catch_interrupts(options->eval.stop, Waiting::fails);
    std::signal(SIGPIPE, SIG_IGN);  // a closed display must not end the command
    api::TrainedOptions& how = options->eval;
    take_settings(how.data, how.overrides);
    return until_interrupted([&] {
      const api::EvaluationReport report =
          show_progress(how, ProgressLine(), [&] { return api::evaluate_run(options->run, how); });
      if (report.rank > 0) {
        if (report.problems.empty()) return 0;
        throw ErrorElsewhere(ErrorKind::diverged, report.problems);
      }
      print_warnings(report.warnings);
      const int printed = print(report, invocation);
      if (report.problems.empty()) return printed;
      return tool::report(Error(ErrorKind::diverged, report.problems), false);
    });
  });
}

}  // namespace tandem::tool
