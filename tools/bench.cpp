// tandem bench TRAIN.toml, or a single kernel.
#include <memory>

#include "api/program/machine.h"
#include "tandem/tandem.h"
#include "tools/arguments.h"

namespace tandem::tool {

void add_bench(CLI::App& app, Invocation& invocation) {
  struct Options {
    std::string config, kernel;
    std::int64_t elements = std::int64_t{64} << 20;
    api::BenchOptions bench;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("bench", "Measure the training step: median time, per operator, memory");
  command->add_option("config", options->config, "The train.toml");
  command->add_option("overrides", options->bench.overrides, "Keys to set: batch_size=256");
  command->add_option("--kernel", options->kernel,
                      "Measure only the update of this kind of optimizer: adamw");
  command->add_option("--elements", options->elements, "Elements for --kernel")
      ->check(number_between(1, 1e12));
  command->add_option("--seconds", options->bench.seconds, "Time to measure for")
      ->check(number_between(1e-3, 86400));
  command->add_option("--trace", options->bench.trace_path, "Write a Chrome trace of some steps");
  command->add_flag("--check-order", options->bench.check_order,
                    "Check that events order what GPUs access (emulated devices always are): "
                    "slower; ends with an error if they do not");
  add_placing(*command, options->bench.place, options->bench.devices);
  command->add_flag("--json", invocation.json, "One JSON object on standard output");
  command->footer(
      "Examples: tandem bench train.toml --json\n          tandem bench --kernel adamw --elements "
      "67108864");
  on_choice(*command, invocation, [options, &invocation] {
    if (options->config.empty() == options->kernel.empty()) {
      throw Error(ErrorKind::usage, Diagnostic{.message = "bench",
                                               .expected = "a train.toml, or --kernel NAME",
                                               .got = options->config.empty() ? "neither" : "both",
                                               .fix = "tandem bench --help has examples"});
    }
    return print(options->kernel.empty() ? api::bench(options->config, options->bench)
                                         : api::bench_kernel(options->kernel, options->elements,
                                                             options->bench.seconds),
                 invocation);
  });
}

}  // namespace tandem::tool
