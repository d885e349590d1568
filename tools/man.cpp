// tandem man [COMMAND] [--to FOLDER]
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tandem/tandem.h"
#include "tools/command.h"
#include "tools/shell/manual.h"

namespace tandem::tool {
namespace {

/// Throws Error{runtime}.
void write_pages(const std::vector<ManualPage>& pages, const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (const ManualPage& page : pages) {
    const std::string file = (std::filesystem::path(folder) / (page.name + ".1")).string();
    std::ofstream stream(file, std::ios::binary);
    if (stream << page.text << std::flush) continue;
    throw Error(ErrorKind::runtime,
                Diagnostic{.message = "the file cannot be written", .file = file});
  }
}

}  // namespace

void add_man(CLI::App& app, Invocation& invocation) {
  struct Options {
    std::string command, folder;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("man", "Print manual pages");
  command->group("");  // not in --help: packages install what it prints
  command->add_option("command", options->command, "Which page (default: the program's)");
  command->add_option("--to", options->folder, "Write all pages into a folder instead")
      ->type_name("FOLDER");
  command->footer("Example: tandem man train | man -l -");
  on_choice(*command, invocation, [options, &app] {
    const std::vector<ManualPage> pages = manual_pages(command_facts(app), api::version());
    if (!options->folder.empty()) {
      write_pages(pages, options->folder);
      return 0;
    }
    const std::string wanted = options->command.empty() ? "tandem" : "tandem-" + options->command;
    for (const ManualPage& page : pages) {
      if (page.name != wanted) continue;
      std::fputs(page.text.c_str(), stdout);
      return 0;
    }
    throw Error(ErrorKind::usage, Diagnostic{.message = "there is no page of that name",
                                             .got = options->command,
                                             .fix = "tandem --help lists all commands"});
  });
}

}  // namespace tandem::tool
