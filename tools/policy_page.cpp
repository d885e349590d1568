// tandem policy page: serves a page in the browser on which a placement is seen and edited.
#include <cstdio>
#include <memory>

#include "api/program/page.h"
#include "tools/interrupt.h"
#include "tools/policy_words.h"

namespace tandem::tool {
namespace {

/// "90", "90s", "30m", "2h" in seconds.
double seconds_of(const std::string& text) {
  double value = 0;
  std::size_t read = 0;
  try {
    value = std::stod(text, &read);
  } catch (const std::exception&) {
    read = 0;
  }
  const std::string unit = text.substr(read);
  const double factor = unit == "h" ? 3600 : unit == "m" ? 60 : unit == "s" || unit.empty() ? 1 : 0;
  if (read == 0 || factor == 0 || !(value > 0 && value < 1e9))
    misuse("--idle", "a time such as 90s, 30m or 2h", text);
  return value * factor;
}

}  // namespace

void add_policy_page(CLI::App& parent, Invocation& invocation) {
  CLI::App* command = add_policy_command(
      parent, "page", "See and edit a placement in the browser, with its consequences at once",
      "  tandem policy page policy.toml --config train.toml\n"
      "  tandem policy page --config train.toml --device gpu=emulated:0,memory=200MiB\n"
      "  tandem policy page --config train.toml --run runs/train-0001   with measured times\n"
      "  tandem policy page --config train.toml --ranks 8 --idle 30m\n"
      "Open the address that it prints; it is for this machine alone (from another one: ssh -L).\n"
      "Nothing is written but the policy, when you save. Ctrl-C ends it.");
  auto options = std::make_shared<PolicyWords>();
  add_policy_words(*command, *options, policy_words);
  add_ranks(*command, options->policy);
  auto page = std::make_shared<api::PageOptions>();
  auto idle = std::make_shared<std::string>();
  command->add_option("--run", page->run, "A run directory, whose measured times are shown")
      ->type_name("RUN");
  command
      ->add_option("--trace", page->trace,
                   "What train --trace has written for that run (default: RUN/trace.json)")
      ->type_name("FILE");
  command->add_flag("--read-only", page->read_only, "Only show: the policy cannot be changed");
  command->add_option("--idle", *idle, "End after so long without a request: 30m (default: never)")
      ->type_name("TIME");
  command->add_option("--port", page->port, "The port to serve it at (default: a free one)")
      ->check(CLI::Range(0, 65535));
  on_choice(*command, invocation, [options, page, idle] {
    take_policy(*options);
    page->policy = options->policy;
    if (!idle->empty()) page->idle_seconds = seconds_of(*idle);
    page->on_listening = [](const std::string& address) {
      std::printf("page: %s\n", address.c_str());
      std::fflush(stdout);
    };
    catch_interrupts(page->stop, Waiting::goes_on);
    api::serve_page(*page);
    return interrupted_by() == 0 ? 0 : 128 + interrupted_by();
  });
}

}  // namespace tandem::tool
