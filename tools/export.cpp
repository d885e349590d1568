// tandem export RUN|CHECKPOINT --to FILE
#include <memory>

#include "tandem/tandem.h"
#include "tools/arguments.h"
#include "tools/command.h"

namespace tandem::tool {

void add_export(CLI::App& app, Invocation& invocation) {
  struct Options {
    std::string run, to, checkpoint, weights;
    api::ExportNames names;
    api::ExportAdapters adapters;
    bool accept_changes = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "export", "Write trained weights: the user's own ONNX graph, safetensors or npz");
  command->add_option("run", options->run, "A run directory or one of its checkpoints")->required();
  command->add_option("--to", options->to, "model.onnx, weights.safetensors or weights.npz")
      ->required();
  command->add_option("--checkpoint", options->checkpoint,
                      "best, latest or a step (default: best where the run has one, else latest)");
  add_weights(*command, options->weights);
  command->add_option("--strip", options->names.strip,
                      "A prefix that names lose in .safetensors and .npz: m.");
  command->add_option("--add", options->names.add, "A prefix that they get");
  command->add_option("--lora", options->adapters.lora,
                      "Adapters: merged into the weights (default), or separate");
  command->add_option("--format", options->adapters.format,
                      "peft: the adapters alone, with adapter_config.json, into a folder or a "
                      ".safetensors file");
  command->add_flag("--accept-changes", options->accept_changes,
                    "Write an .onnx of a model that has changed since the checkpoint was written");
  command->add_flag("--json", invocation.json, "Errors as a JSON object on standard output");
  command->footer("Example: tandem export runs/train-0001 --to trained.onnx --checkpoint latest");
  on_choice(*command, invocation, [options] {
    return print(
        api::export_run(options->run, options->to, options->checkpoint, options->accept_changes,
                        options->weights, options->names, options->adapters),
        "", false);
  });
}

}  // namespace tandem::tool
