// tandem init MODEL.onnx: writes a commented train.toml and policy.toml from a model and its data.
#include <memory>

#include "api/program/init.h"
#include "tools/command.h"

namespace tandem::tool {

void add_init(CLI::App& app, Invocation& invocation) {
  struct Options {
    std::string model;
    api::InitOptions init;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("init", "Write a train.toml and a policy.toml for a model and its data");
  command->add_option("model", options->model, "The ONNX file")->required();
  command->add_option(
      "--data", options->init.data,
      "A file or folder: MNIST's IDX files, CIFAR's .bin, .npz, .npy, .csv, "
      ".tsv or .jsonl, text in .txt, train.bin of token ids, a folder of pictures for each "
      "class");
  command->add_option("--eval", options->init.eval,
                      "Held-out data: a file or folder of the same kind (default: files named like "
                      "\"valid\", \"test\", \"hold_out\", else a tenth of the samples)");
  command->add_option("--to", options->init.to, "The folder to write into (default: the model's)");
  command->add_flag("--json", invocation.json, "One JSON object instead of text");
  command->footer(
      "Loss, fields, optimizer and the rest follow from the model and the data; each value has its "
      "reason as a comment.\n"
      "What could not be guessed is marked # TODO and named here. Files that are there are never "
      "overwritten.\n"
      "Example: tandem init model.onnx --data mnist/\n"
      "         tandem init model.onnx --data rows.csv --eval later_rows.csv");
  on_choice(*command, invocation, [options, &invocation] {
    const api::InitReport report = api::init(options->model, options->init);
    print_warnings(report.warnings);
    return print(report, invocation);
  });
}

}  // namespace tandem::tool
