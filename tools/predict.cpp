// tandem predict RUN --data FILE: predictions for raw rows, line by line.
#include <csignal>
#include <cstdio>
#include <memory>

#include <unistd.h>

#include "tandem/tandem.h"
#include "tools/arguments.h"
#include "tools/interrupt.h"
#include "tools/progress_line.h"

namespace tandem::tool {
void add_predict(CLI::App& app, Invocation& invocation) {
  struct Options {
    std::string run;
    api::PredictOptions predict;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("predict", "Predictions of a trained model for raw rows, in their order");
  api::PredictOptions& predict = options->predict;
  add_trained(*command, predict, options->run);
  command
      ->add_option("--data", predict.data,
                   "Files in the format of [data] in the configuration; labels are not needed; - "
                   "reads rows from standard input")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--to", predict.to,
                   "predictions.tsv, .csv, .jsonl, .npy or .npz, which appears when all is "
                   "written; - is standard output (default)")
      ->type_name("FILE");
  command
      ->add_option("--output", predict.outputs,
                   "Values of the model (default: what the loss compares with labels)")
      ->type_name("NAME");
  command
      ->add_option("--as", predict.as,
                   "values, class or probability (default, by the loss: probability of binary "
                   "logits, class and its probability of logits of classes, else values)")
      ->type_name("FORM");
  command
      ->add_option("--class-axis", predict.class_axis,
                   "Axis of the classes in logits of more than two axes; samples are axis 0")
      ->check(number_between(1, 16));
  command
      ->add_option("--batch", predict.batch, "Samples of a micro-batch (default: as in training)")
      ->check(number_between(1, 1e9));
  command->add_flag("--header", predict.header, "A first line with the columns' names");
  CLI::Option* const names = command->add_flag_callback(
      "--class-names", [&predict] { predict.class_names = true; },
      "Classes by their words, an error where none are known (default: words where the model was "
      "trained with such)");
  command
      ->add_flag_callback(
          "--class-numbers", [&predict] { predict.class_names = false; },
          "Classes by their numbers from 0")
      ->excludes(names);
  command
      ->add_option("--id", predict.ids,
                   "What identifies a row, before its numbers: a column of the table, path for "
                   "pictures, an array of the data")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("COLUMN");
  command->add_flag("--json", invocation.json,
                    "A summary as one JSON object on standard output; needs --to FILE");
  command->footer(
      "One line for each row of the input; a row that is left out as bad (data.on_bad=skip) gives "
      "nan, or -1 as class.\n"
      "Runs on the devices that the policy of the training names.\n"
      "Ctrl-C (exit code 130), SIGTERM (143) and a closed terminal (129) stop it: a file that is "
      "there stays as it was.\n"
      "Examples:\n"
      "  tandem predict runs/train-0001 --data day_23.gz --to predictions.tsv\n"
      "  zcat day_23.gz | tandem predict runs/train-0001 --data - | head\n"
      "  tandem predict runs/digits-0001 --data new.npz --as probability --to p.npy\n"
      "  tandem predict runs/mnist-0001 --data images=t10k-images.gz --to classes.csv --header\n"
      "  tandem predict runs/shop-0001 --data new.csv --id order,customer --to scores.jsonl\n"
      "  tandem predict trained.onnx --config train.toml --data rows.tsv\n"
      "  tandem predict model.onnx --data pictures --id path --to classes.csv");
  on_choice(*command, invocation, [options, &invocation] {
    api::PredictOptions& how = options->predict;
    take_settings(how.data, how.overrides);
    take_settings(how.outputs, how.overrides);
    if (invocation.json && how.to == "-") {
      throw Error(ErrorKind::usage,
                  Diagnostic{"predictions and the summary would both go to standard output",
                             "--json", 0, 0, "", "", "", "add --to predictions.tsv"});
    }
    catch_interrupts(how.stop, Waiting::fails);
    if (how.to != "-") std::signal(SIGPIPE, SIG_IGN);  // a closed display must not end the command
    return until_interrupted([&] {
      const api::Report report =
          show_progress(how, ProgressLine(how.to != "-" || isatty(STDOUT_FILENO) == 0),
                        [&] { return api::predict_run(options->run, how); });
      if (report.rank > 0) return 0;
      print_warnings(report.warnings);
      if (invocation.json) return print(report.text, report.json, true);
      say(report.text);
      return 0;
    });
  });
}

}  // namespace tandem::tool
