// tandem data prepare|check|bench TRAIN.toml.
#include <cstdio>
#include <memory>

#include "api/program/data.h"
#include "tandem/tandem.h"
#include "tools/arguments.h"
#include "tools/interrupt.h"

namespace tandem::tool {

void add_data(CLI::App& app, Invocation& invocation) {
  struct Options {
    std::string config;
    api::DataOptions data;
  };
  CLI::App* data = app.add_subcommand("data", "Look at the data of a train.toml, or prepare it");
  data->require_subcommand(1);
  data->footer(
      "Example: tandem data check train.toml && tandem data prepare train.toml && tandem train "
      "train.toml");
  const auto add = [&](const char* name, const char* help) {
    auto options = std::make_shared<Options>();
    CLI::App* command = data->add_subcommand(name, help);
    command->add_option("config", options->config, "The train.toml")->required();
    command->add_option("overrides", options->data.overrides, "Keys to set: data.on_bad=skip");
    command->add_flag("--json", invocation.json, "One JSON object on standard output");
    options->data.on_message = say;
    return std::pair(command, options);
  };
  {
    const auto [command, options] =
        add("prepare", "Turn text tables into arrays, which training then maps into memory");
    command->footer(
        "Training does this by itself. A second call prints \"up to date\".\n"
        "Ctrl-C (exit code 130), SIGTERM (143) and a closed terminal (129) stop it: what was "
        "written of a table is removed.");
    on_choice(*command, invocation, [options = options, &invocation] {
      catch_interrupts(options->data.stop, Waiting::goes_on);
      return until_interrupted(
          [&] { return print(api::data_prepare(options->config, options->data), invocation); });
    });
  }
  {
    const auto [command, options] =
        add("bench", "Measure the rate of the loader by its number of threads, and what limits it");
    auto bench = std::make_shared<api::DataBenchOptions>();
    command->add_option("--seconds", bench->seconds, "How long each number of threads is measured")
        ->capture_default_str()
        ->check(CLI::Range(0.1, 3600.0));
    command->add_option("--threads", bench->threads, "The most loader threads; 0: all cores")
        ->capture_default_str()
        ->check(CLI::Range(0, 256));
    command->footer(
        "Reads the training data as training does, all fields, without a model. Where training is "
        "slower than this, it does not wait for data.\n"
        "Example: tandem data bench train.toml --seconds 5");
    on_choice(*command, invocation, [options = options, bench, &invocation] {
      catch_interrupts(options->data.stop, Waiting::goes_on);
      return until_interrupted([&] {
        bench->data = options->data;
        return print(api::data_bench(options->config, *bench), invocation);
      });
    });
  }
  const auto [command, options] =
      add("check", "Read all of it, write nothing: counts, ranges, missing values, bad rows");
  command->footer(
      "Exit code 4 where a row or picture cannot be read as the configuration says, where there is "
      "none, or where the model does not take a label or id; a note says where the model cannot be "
      "read.");
  on_choice(*command, invocation, [options = options, &invocation] {
    const api::DataReport found = api::data_check(options->config, options->data);
    print(found.report, invocation);
    return found.bad ? static_cast<int>(ErrorKind::data) : 0;
  });
}

}  // namespace tandem::tool
