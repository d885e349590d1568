// tandem policy names | check | plan | explain | diff | edit | auto | page
#include <cstdio>
#include <memory>
#include <string>

#include "api/program/policy_files.h"
#include "tandem/tandem.h"
#include "tools/arguments.h"
#include "tools/interrupt.h"
#include "tools/policy_words.h"
#include "tools/progress_line.h"

namespace tandem::tool {
namespace {

constexpr int differs_code = 6;

struct Options : PolicyWords {
  std::vector<std::string> set, filters;
  std::string at, sort = "graph", phase, model_explorer;
  api::PolicyChange change;
  api::PolicyAutoOptions automatic;
  bool exit_code = false, schema = false;
};
using Shared = std::shared_ptr<Options>;

Shared add_common(CLI::App& command, Invocation& invocation, const std::string& words) {
  auto options = std::make_shared<Options>();
  add_policy_words(command, *options, words);
  command.add_flag("--json", invocation.json, "One JSON object on standard output");
  return options;
}

std::pair<std::string, std::string> parse_pair(const std::string& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) misuse(option, "KEY=VALUE", text);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

void add_names(CLI::App& parent, Invocation& invocation) {
  CLI::App* command = add_policy_command(
      parent, "names", "What rules may name: operators and parameters, with shapes and bytes",
      "  tandem policy names --config train.toml --sort bytes\n"
      "  tandem policy names model.onnx --bind batch=32 --at 'blocks.{0..3}.**' --json\n"
      "  tandem policy names --config train.toml --schema > .tandem/policy.schema.json");
  const Shared options =
      add_common(*command, invocation, "An ONNX file, and keys of train.toml: batch_size=64");
  command->add_option("--at", options->at, "Only what this selector covers");
  command->add_option("--sort", options->sort, "graph, path, op or bytes")
      ->check(CLI::IsMember({"graph", "path", "op", "bytes"}));
  command->add_flag("--schema", options->schema,
                    "A JSON Schema of policy.toml, in which editors complete these names");
  on_choice(*command, invocation, [options, &invocation] {
    const std::vector<std::string> names = take_words(*options, 1, "one ONNX file");
    if (!names.empty()) options->policy.model = names[0];
    if (options->schema) return print(api::policy_schema(options->policy, options->at), "", false);
    return print(api::policy_names(options->policy, options->at, options->sort), invocation);
  });
}

void add_check(CLI::App& parent, Invocation& invocation) {
  CLI::App* command = add_policy_command(
      parent, "check", "Read a policy and say what each rule matches; all errors at once",
      "  tandem policy check policy.toml --config train.toml --device gpu=emulated:0\n"
      "  tandem policy check policy.toml --model model.onnx --bind batch=32 --json\n"
      "Exit code 2 where something is wrong.");
  const Shared options = add_common(*command, invocation, policy_words);
  on_choice(*command, invocation, [options, &invocation] {
    take_policy(*options);
    return print(api::policy_check(options->policy), invocation);
  });
}

void add_plan(CLI::App& parent, Invocation& invocation) {
  CLI::App* command = add_policy_command(
      parent, "plan", "Memory, copies and time of a training step under a policy; nothing runs",
      "  tandem policy plan policy.toml --config train.toml\n"
      "  tandem policy plan policy.toml --config train.toml --device gpu=emulated:0,memory=2GiB\n"
      "  tandem policy plan --config train.toml --place '{ at = \"fc1\", on = \"cpu\" }' --json\n"
      "  tandem policy plan --config train.toml --ranks 8\n"
      "  tandem policy plan --config train.toml device=gpu --profile h100\n"
      "  tandem policy plan policy.toml --config train.toml --model-explorer placed.json\n"
      "Exit code 3 where it does not fit.");
  const Shared options = add_common(*command, invocation, policy_words);
  add_ranks(*command, options->policy);
  command
      ->add_option("--model-explorer", options->model_explorer,
                   "Write the placed model as this file, too, for the viewer Model Explorer")
      ->type_name("FILE");
  on_choice(*command, invocation, [options, &invocation] {
    take_policy(*options);
    const api::Plan plan = api::policy_plan(options->policy, options->model_explorer);
    print(plan, invocation);
    return plan.fits ? 0 : static_cast<int>(ErrorKind::does_not_fit);
  });
}

void add_explain(CLI::App& parent, Invocation& invocation) {
  CLI::App* command = add_policy_command(
      parent, "explain", "Why operators and parameters are where they are: which line decided it",
      "  tandem policy explain fc1.MatMul --config train.toml\n"
      "  tandem policy explain policy.toml fc1:weight --config train.toml --phase update --json\n"
      "  tandem policy explain blocks.3 --config train.toml               a module, by lines\n"
      "  tandem policy explain '**:weight' --config train.toml");
  const Shared options = add_common(
      *command, invocation,
      "[POLICY] NAME, a path or a name of the file, a module or a selector; keys of train.toml");
  command->add_option("--phase", options->phase, "Only nodes of forward, backward or update")
      ->check(CLI::IsMember({"forward", "backward", "update"}));
  on_choice(*command, invocation, [options, &invocation] {
    const char* expected = "a policy file (or none) and a name or selector";
    const std::vector<std::string> names = take_words(*options, 2, expected);
    if (names.empty()) misuse("policy explain: what?", expected, "nothing");
    if (names.size() == 2) options->policy.policy = names[0];
    return print(api::policy_explain(options->policy, names.back(), api::phase_of(options->phase)),
                 invocation);
  });
}

void add_policy_diff(CLI::App& parent, Invocation& invocation) {
  CLI::App* command = add_policy_command(
      parent, "diff", "What moves from one policy to another; change of memory, traffic and time",
      "  tandem policy diff old.toml new.toml --config train.toml\n"
      "  tandem policy diff new.toml --config train.toml --exit-code    against its own policy");
  const Shared options =
      add_common(*command, invocation, "[A] B, two policy files; keys of train.toml");
  command->add_flag("--exit-code", options->exit_code, "Exit with 6 where something moves");
  on_choice(*command, invocation, [options, &invocation] {
    const std::vector<std::string> names = take_words(*options, 2, "two policy files");
    if (names.empty()) misuse("policy diff: between what?", "two policy files", "nothing");
    const api::PolicyDiff diff =
        api::policy_diff(options->policy, names.size() == 2 ? names[0] : "", names.back());
    print(diff, invocation);
    return options->exit_code && diff.differs ? differs_code : 0;
  });
}

void add_edit(CLI::App& parent, Invocation& invocation) {
  CLI::App* command = add_policy_command(
      parent, "edit", "Set or clear one rule of a policy file; comments and order stay",
      "  tandem policy edit policy.toml --at 'blocks.{0..3}.**' --set run=cpu --set acts=offload\n"
      "  tandem policy edit policy.toml --at 'head.**' --clear state\n"
      "  tandem policy edit policy.toml --at 'head.**' --remove\n"
      "  tandem policy edit policy.toml --at 'fc1.**' --set on=cpu --config train.toml\n"
      "  tandem policy edit policy.toml --at 'fc1.**' --set on=acc --device acc=emulated:0\n"
      "With --config or --model a rule that would match nothing in the model is not written, nor "
      "an\n"
      "attribute that nothing of it can have: exit code 2.\n"
      "--clear keeps the rule, so it refuses to take a rule's last attribute; --remove removes\n"
      "the whole rule with its `why`, and keeps a comment after it.");
  auto options = std::make_shared<Options>();
  auto file = std::make_shared<std::string>();
  command->add_option("file", *file, "The policy.toml")->required();
  command->add_option("--at", options->change.at, "The rule's selector, as in the file")
      ->required();
  command->add_option("--filter", options->filters, "A filter of the rule: op=Gather, min=64MiB")
      ->allow_extra_args(false);
  command->add_option("--set", options->set, "An attribute: run=cpu, lookahead=2")
      ->allow_extra_args(false);
  command->add_option("--clear", options->change.clear, "An attribute to remove")
      ->allow_extra_args(false);
  command->add_flag("--remove", options->change.remove, "Remove the whole rule");
  add_model(*command, *options);
  add_device(*command, options->policy.devices);
  command->add_flag("--json", invocation.json, "One JSON object on standard output");
  on_choice(*command, invocation, [options, file, &invocation] {
    for (const std::string& text : options->filters) {
      options->change.filters.push_back(parse_pair("--filter", text));
    }
    for (const std::string& text : options->set) {
      options->change.set.push_back(parse_pair("--set", text));
    }
    for (const std::string& text : options->bind)
      options->policy.bind.push_back(parse_binding(text));
    return print(api::policy_edit(*file, options->change, options->policy), invocation);
  });
}

void add_auto(CLI::App& parent, Invocation& invocation) {
  CLI::App* command = add_policy_command(
      parent, "auto", "Search a placement under memory budgets; write it as the policy's auto list",
      "  tandem policy auto policy.toml --config train.toml --budget gpu=20GiB\n"
      "  tandem policy auto new.toml --config train.toml --device gpu=emulated:0,memory=2GiB\n"
      "  tandem policy auto --config train.toml --profile h100 --to for_h100.toml\n"
      "  tandem policy auto --config train.toml --ranks 8 --network 100Gb/s,5us --to ranks.toml\n"
      "The file's own rules, comments and order stay; the list auto itself is replaced whole, and\n"
      "comments of yours inside it are named on standard error. Exit code 3 where nothing fits.\n"
      "Ctrl-C ends the search and writes the best so far (exit code 130).");
  const Shared options =
      add_common(*command, invocation,
                 "The policy.toml to write (default: the configuration's) and keys of train.toml");
  api::PolicyAutoOptions& automatic = options->automatic;
  command
      ->add_option("--budget", automatic.budgets, "Memory that may be used on a device: gpu=20GiB")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false);
  add_ranks(*command, options->policy);
  command->add_option("--to", automatic.to, "Write this file instead; the policy stays as it is");
  command->add_flag("--measure", automatic.measure,
                    "Time kernels on the devices here instead of assuming");
  command->add_option("--save-profile", automatic.save_profile,
                      "Store the devices' times as FILE, for --profile");
  command
      ->add_option("--tries", automatic.most_plans,
                   "Placements to compare at most (default: 600, fewer above 100 operators)")
      ->check(CLI::Range(1, 1000000));
  on_choice(*command, invocation, [options, &invocation] {
    take_policy(*options);
    api::PolicyAutoOptions& how = options->automatic;
    catch_interrupts(how.stop, Waiting::goes_on);
    ProgressLine line;
    how.on_progress = [&line](int tried, int most, double best_ms) {
      line.show_search(tried, most, best_ms);
    };
    return until_interrupted([&] {
      const api::Report report = api::policy_auto(options->policy, how);
      line.end();
      print_warnings(report.warnings);
      const int printed = print(report, invocation);
      return interrupted_by() == 0 ? printed : 128 + interrupted_by();
    });
  });
}

}  // namespace

void add_policy(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      "policy",
      "Look at a policy.toml: names, check, plan, explain, diff, page; edit it, search one");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  tandem policy names --config train.toml\n"
      "  tandem policy plan policy.toml --config train.toml --device gpu=emulated:0,memory=2GiB\n"
      "  tandem policy page policy.toml --config train.toml\n"
      "`tandem config keys --policy` lists the keys of the file.");
  add_names(*command, invocation);
  add_check(*command, invocation);
  add_plan(*command, invocation);
  add_explain(*command, invocation);
  add_policy_diff(*command, invocation);
  add_edit(*command, invocation);
  add_auto(*command, invocation);
  add_policy_page(*command, invocation);
}

}  // namespace tandem::tool
