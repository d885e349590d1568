// tandem export RUN|CHECKPOINT --to FILE
#include <memory>

#include "tandem/trained.h"
#include "tools/arguments.h"
#include "tools/command.h"

namespace tandem::tool {
namespace {

constexpr int exit_differs = 6;  // as for policy diff

struct ExportArguments {
  std::string run, to;
  api::ExportSettings settings;
  api::VerifyOptions verify;
  bool verifies = false;
};

void add_form(CLI::App& command, api::ExportForm& form) {
  command
      .add_option("--outputs", form.outputs,
                  "Outputs of the .onnx, also values inside its graph: logits,features. What they "
                  "do not need is removed")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME,NAME");
  command.add_flag("--fold-batch-norm", form.fold_batch_norm,
                   "Fold BatchNormalization into the weights of the Conv or Gemm before it");
  command.add_flag("--fp16", form.fp16,
                   "Weights and computation of the .onnx in float16; its inputs and outputs, "
                   "normalizations, softmax and reductions stay float32");
  command.add_option("--opset", form.opset, "Another version of ai.onnx, by ONNX's converter")
      ->check(number_between(1, 1000));
}

void add_verify(CLI::App& command, ExportArguments& arguments) {
  command.add_flag("--verify", arguments.verifies,
                   "Run the written .onnx and the run on the same samples and compare the outputs; "
                   "onnxruntime does so too if a Python has it (--python)");
  command
      .add_option("--python", arguments.verify.python,
                  "The Python that --verify asks for onnxruntime (default: python3)")
      ->envname("TANDEM_PYTHON")
      ->type_name("PROGRAM");
  command
      .add_option("--data", arguments.verify.data,
                  "Files for --verify instead of the run's own data")
      ->type_name("FILE");
  command.add_option("--verify-samples", arguments.verify.samples, "How many samples (default: 8)")
      ->check(number_between(1, 1 << 20));
  command
      .add_option(
          "--verify-bound", arguments.verify.absolute,
          "--verify allows |difference| <= BOUND + BOUND |value| (default: 1e-5 and 1e-4, and "
          "1e-5 of the largest value; with --fp16 1e-2 and 1e-2)")
      ->type_name("BOUND")
      ->check(number_between(0, 1e30));
}

int verified(const ExportArguments& arguments, const Invocation& invocation) {
  api::VerifyOptions options = arguments.verify;
  options.relative = options.absolute;
  options.checkpoint = arguments.settings.checkpoint;
  options.weights = arguments.settings.weights;
  options.accept_changes = arguments.settings.accept_changes;
  options.overrides = arguments.settings.overrides;
  const api::VerifyReport report = api::verify_export(arguments.run, arguments.to, options);
  print_warnings(report.warnings);
  print(report, invocation);
  return report.agrees ? 0 : exit_differs;
}

}  // namespace

void add_export(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<ExportArguments>();
  api::ExportSettings& settings = arguments->settings;
  CLI::App* command = app.add_subcommand(
      "export", "Write trained weights: the user's own ONNX graph, safetensors or npz");
  command->add_option("run", arguments->run, "A run directory or one of its checkpoints")
      ->required();
  command->add_option("overrides", settings.overrides,
                      "Keys of the configuration to set: model.file=moved/model.onnx");
  command
      ->add_option("--to", arguments->to,
                   "model.onnx, weights.safetensors, weights.npz or adapters.onnx_adapter")
      ->required();
  command->add_option("--checkpoint", settings.checkpoint,
                      "best, latest or a step (default: best where the run has one, else latest)");
  add_weights(*command, settings.weights);
  command->add_option("--strip", settings.names.strip,
                      "A prefix that names lose in .safetensors and .npz: m.");
  command->add_option("--add", settings.names.add, "A prefix that they get");
  command->add_option("--lora", settings.adapters.lora,
                      "Adapters: merged into the weights (default), separate, or as inputs of the "
                      ".onnx, for an .onnx_adapter");
  command->add_option(
      "--format", settings.adapters.format,
      "peft: only the adapters, with adapter_config.json, into a folder or a .safetensors file; "
      "onnx-adapter: only the adapters, into an .onnx_adapter file for onnxruntime");
  command->add_flag("--accept-changes", settings.accept_changes,
                    "Write an .onnx of a model that has changed since the checkpoint was written");
  add_form(*command, settings.form);
  add_verify(*command, *arguments);
  command->add_flag("--json", invocation.json,
                    "Errors, and what --verify finds, as a JSON object on standard output");
  command->footer(
      "With --verify the exit code is 6 where the file computes something else than the run.\n"
      "Examples:\n"
      "  tandem export runs/train-0001 --to trained.onnx --checkpoint latest --verify\n"
      "  tandem export runs/train-0001 --to small.onnx --outputs logits --fold-batch-norm --fp16");
  on_choice(*command, invocation, [arguments, &invocation] {
    take_settings(arguments->verify.data, arguments->settings.overrides);
    if (arguments->verifies && !arguments->to.ends_with(".onnx")) {  // before anything is written
      throw Error(ErrorKind::usage, Diagnostic{.message = "--verify runs a model",
                                               .file = "--to",
                                               .expected = "a name that ends in .onnx",
                                               .got = arguments->to,
                                               .fix = "leave --verify out"});
    }
    if (arguments->verifies && arguments->settings.adapters.lora == "inputs") {
      throw Error(ErrorKind::usage,
                  Diagnostic{.message = "--verify compares a file with its run, and this file "
                                        "computes without adapters until it is fed some",
                             .file = "--lora",
                             .expected = "merged or separate",
                             .got = "inputs",
                             .fix = "leave --verify out"});
    }
    const std::string written = api::export_run(arguments->run, arguments->to, arguments->settings);
    if (!arguments->verifies) return print(written, "", false);
    if (!invocation.json) print(written, "", false);
    return verified(*arguments, invocation);
  });
}

}  // namespace tandem::tool
