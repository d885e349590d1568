#include "tools/shell/manual.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include <fmt/format.h>

namespace tandem::tool {
namespace {

/// Text in which man(7) finds no requests, and whose hyphens can be copied.
std::string for_man(const std::string& text) {
  std::string result;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) result += "\\&";
    begins_line = c == '\n';
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else if (c == '\'')
      result += "\\(aq";
    else if (c == '`')
      result += "\\(ga";
    else if (c == '~')
      result += "\\(ti";
    else if (c == '^')
      result += "\\(ha";
    else
      result += c;
  }
  return result;
}

/// The text with its own line ends and columns, as examples and lists have them.
std::string as_it_is(const std::string& text) { return ".nf\n" + for_man(text) + "\n.fi\n"; }

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

/// "tandem policy plan [OPTIONS] arguments ..."
std::string synopsis(const CommandFacts& command) {
  std::string line =
      fmt::format(".B tandem{}\n", command.name.empty() ? "" : " " + for_man(command.name));
  line += "[\\fIOPTIONS\\fR]";
  for (const OptionFacts& option : command.options) {
    if (!option.positional) continue;
    std::string name = "\\fI" + for_man(option.names.front()) + "\\fR";
    if (option.repeatable) name += " ...";
    line += option.required ? " " + name : " [" + name + "]";
  }
  if (!command.subcommands.empty()) line += " \\fICOMMAND\\fR";
  return line + "\n";
}

std::string options_of(const CommandFacts& command) {
  std::string text;
  for (const OptionFacts& option : command.options) {
    std::string names;
    for (const std::string& name : option.names) {
      names += names.empty() ? "" : ", ";
      names += (option.positional ? "\\fI" : "\\fB") + for_man(name) + "\\fR";
    }
    const std::string value = option.positional ? "" : value_text(option);
    if (!value.empty())
      names += option.value_may_be_absent ? fmt::format(" [\\fI{}\\fR]", for_man(value))
                                          : fmt::format(" \\fI{}\\fR", for_man(value));
    text += ".TP\n" + names + "\n" + for_man(option.help) + "\n";
  }
  return text;
}

std::string page_name(const std::string& command) {
  return command.empty() ? "tandem" : "tandem-" + command;
}

/// Name, synopsis, options and notes of one command.
std::string body(const CommandFacts& command, const std::string& version) {
  const std::string name = page_name(command.name);
  std::string text =
      fmt::format(".TH {} 1 \"\" \"Tandem {}\" \"Tandem\"\n", for_man(upper(name)), version);
  text += fmt::format(".SH NAME\n{} \\- {}\n", for_man(name), for_man(first_line(command.help)));
  text += ".SH SYNOPSIS\n" + synopsis(command);
  text += ".SH DESCRIPTION\n" + for_man(command.help) + "\n";
  if (const std::string options = options_of(command); !options.empty())
    text += ".SH OPTIONS\n" + options;
  return text;
}

std::string notes(const CommandFacts& command) {
  return command.footer.empty() ? "" : as_it_is(command.footer);
}

std::string see_also(const std::vector<CommandFacts>& commands, const std::string& but) {
  std::string text;
  for (const CommandFacts& command : commands) {
    if (command.name == but || command.name.find(' ') != std::string::npos) continue;
    text += text.empty() ? "" : ",\n";
    text += ".BR " + for_man(page_name(command.name)) + " (1)";
  }
  return text;
}

}  // namespace

std::vector<ManualPage> manual_pages(const std::vector<CommandFacts>& commands,
                                     const std::string& version) {
  std::vector<ManualPage> pages;
  for (const CommandFacts& command : commands) {
    if (command.name.find(' ') != std::string::npos) continue;  // part of its parent's page
    std::string text = body(command, version);
    if (!command.subcommands.empty()) {
      text += ".SH COMMANDS\n";
      for (const std::string& word : command.subcommands) {
        const auto sub = std::find_if(commands.begin(), commands.end(), [&](const auto& other) {
          return other.name == (command.name.empty() ? word : command.name + " " + word);
        });
        if (command.name.empty()) {
          text += fmt::format(".TP\n.BR {} (1)\n{}\n", for_man(page_name(word)),
                              for_man(first_line(sub->help)));
          continue;
        }
        text += fmt::format(".SS {}\n{}\n.PP\n{}\n", for_man(sub->name), synopsis(*sub),
                            for_man(sub->help));
        text += options_of(*sub) + (sub->footer.empty() ? "" : ".PP\n") + notes(*sub);
      }
    }
    if (!command.footer.empty()) text += ".SH NOTES\n" + notes(command);
    if (command.name.empty()) {
      text +=
          ".SH FILES\n.TP\n.I train.toml\nWhat to train: \\fBtandem config keys\\fR lists the "
          "keys.\n"
          ".TP\n.I policy.toml\nWhat runs and lives where: \\fBtandem config keys \\-\\-policy\\fR "
          "lists the keys.\n";
    } else {
      text += ".SH SEE ALSO\n" + see_also(commands, command.name) + "\n";
    }
    pages.push_back({page_name(command.name), text});
  }
  return pages;
}

}  // namespace tandem::tool
