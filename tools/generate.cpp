// tandem generate RUN --prompt TEXT: what a trained language model writes.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

#include <unistd.h>

#include "api/program/generate.h"
#include "api/program/terminal.h"
#include "tools/arguments.h"
#include "tools/interrupt.h"

namespace tandem::tool {
namespace {

/// The text of a file, or of standard input, without one line end behind it.
std::string read_prompt(const std::string& path) {
  std::ifstream file;
  if (path != "-") file.open(path, std::ios::binary);
  std::istream& from = path == "-" ? std::cin : file;
  std::string text(std::istreambuf_iterator<char>(from), {});
  if ((path != "-" && !file.is_open()) || from.bad()) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "this file cannot be read",
                           .file = path,
                           .path = "--prompt-file",
                           .fix = "name a file of text, or - for standard input"});
  }
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

/// Prints texts as they are written; several ones behind the line of their prompt.
class Display {
 public:
  explicit Display(const std::vector<std::string>& prompts) : prompts_(prompts) {}

  void add(std::size_t prompt, const std::string& piece) {
    while (begun_ <= prompt) begin();
    std::fputs(isatty(STDOUT_FILENO) != 0 ? api::for_terminal(piece).c_str() : piece.c_str(),
               stdout);
    std::fflush(stdout);
  }
  void end() {
    while (begun_ < prompts_.size()) begin();
    std::fputs("\n", stdout);
    std::fflush(stdout);
  }

 private:
  void begin() {
    if (begun_ > 0) std::fputs("\n\n", stdout);
    if (prompts_.size() > 1) std::printf("> %s\n", api::for_terminal(prompts_[begun_]).c_str());
    ++begun_;
  }

  const std::vector<std::string>& prompts_;
  std::size_t begun_ = 0;
};

}  // namespace

void add_generate(CLI::App& app, Invocation& invocation) {
  struct Options {
    std::string run;
    std::vector<std::string> files;
    double temperature = -1;
    api::GenerateOptions generate;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("generate", "What a trained language model writes after a prompt");
  api::GenerateOptions& generate = options->generate;
  command
      ->add_option("run", options->run, "A run directory, one of its checkpoints, or an .onnx file")
      ->required();
  command->add_option("overrides", generate.overrides, "Keys of the configuration to set");
  command
      ->add_option("--prompt", generate.prompts,
                   "The text to go on from, or the message to answer; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command
      ->add_option("--prompt-file", options->files,
                   "A file that is a prompt; may be given several times; - is standard input")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_flag("--raw", generate.raw,
                    "Prompts as they are (default: where the run was trained on conversations, "
                    "messages of the user in its template)");
  command->add_option("--max-tokens", generate.max_tokens, "The longest text, in tokens")
      ->check(number_between(1, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--temperature", options->temperature,
                   "0: always the likeliest token; above: draw from softmax(logits / T) (default: "
                   "1 with --top-k or --top-p, else 0)")
      ->type_name("T")
      ->check(number_between(0, 1e6));
  command->add_option("--top-k", generate.top_k, "Draw from the K likeliest tokens")
      ->type_name("K")
      ->check(number_between(1, 1e9));
  command
      ->add_option("--top-p", generate.top_p,
                   "Draw from the likeliest tokens that have this probability together")
      ->type_name("P")
      ->check(number_between(1e-9, 1));
  command->add_option("--seed", generate.seed, "What is drawn depends on it")
      ->capture_default_str();
  command
      ->add_option("--stop", generate.stop_texts,
                   "A text that ends what is written; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command
      ->add_option("--tokenizer", generate.tokenizer,
                   "A tokenizer.json (default: that of the run, or the one next to the model)")
      ->type_name("FILE");
  command
      ->add_option("--checkpoint", generate.checkpoint,
                   "best, latest or a step (default: best where the run has one, else latest)")
      ->type_name("WHICH");
  add_weights(*command, generate.weights);
  command->add_flag("--accept-changes", generate.accept_changes,
                    "Use a model that has changed since the checkpoint was written");
  command->add_option("--config", generate.config, "The train.toml of an .onnx file")
      ->type_name("TRAIN.toml");
  add_placing(*command, generate.place, generate.devices);
  command->add_flag("--json", invocation.json,
                    "All texts as one JSON object on standard output, when all are written");
  command->footer(
      "Text appears on standard output as it is written. A text ends with the model's own token "
      "for that,\n"
      "before a --stop text, or after --max-tokens. Each token is a pass over the whole text.\n"
      "Runs on the devices that the policy of the training names; Ctrl-C stops it.\n"
      "Examples:\n"
      "  tandem generate runs/chat-0001 --prompt 'What is a placement policy?'\n"
      "  tandem generate runs/chat-0001 --prompt-file question.txt --max-tokens 200\n"
      "  tandem generate runs/text-0001 --raw --prompt 'Once upon a time' --temperature 0.8 "
      "--top-p 0.9 --seed 7\n"
      "  tandem generate runs/chat-0001 --checkpoint 500 --prompt Hello --json\n"
      "  tandem generate model.onnx --tokenizer tokenizer.json --prompt 'The capital of France "
      "is'");
  on_choice(*command, invocation, [options, command, &invocation] {
    api::GenerateOptions& how = options->generate;
    catch_interrupts(how.stop, Waiting::fails);
    return until_interrupted([&] {
      for (const std::string& file : options->files) how.prompts.push_back(read_prompt(file));
      if (command->count("--temperature") > 0) how.temperature = options->temperature;
      Display display(how.prompts);
      how.on_message = [](const std::string& text) { say(text); };
      if (!invocation.json) {
        how.on_text = [&display](std::size_t prompt, const std::string& piece) {
          display.add(prompt, piece);
        };
      }
      const api::GenerateReport report = api::generate_text(options->run, how);
      if (!invocation.json) display.end();
      print_warnings(report.warnings);
      if (invocation.json) return print(report.text, report.json, true);
      say(report.text);
      return 0;
    });
  });
}

}  // namespace tandem::tool
