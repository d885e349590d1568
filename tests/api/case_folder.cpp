#include "tests/api/case_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/formats/files.h"
#include "tests/api/case_commands.h"
#include "tests/api/case_files.h"
#include "tests/harness/folders.h"

namespace tandem::testing {

CaseFolder::CaseFolder(const ExpectedCase& of) {
  write_files(of, folder_.path());
  std::istringstream before(of.text("_before"));
  for (std::string command; std::getline(before, command);) {
    const std::string said = output_of(with_all(command, " | ", "\n"));
    EXPECT_EQ(said.find("error"), std::string::npos) << command << "\n" << said;
  }
}

std::string CaseFolder::output_of(const std::string& input) const {
  std::istringstream stream(
      with_all(with_all(input, "FOLDER/", folder_.path() + "/"), "SOURCE/", source_folder() + "/"));
  std::string command, first;
  std::getline(stream, first);
  Words lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::istringstream words(first);
  words >> command >> std::ws;
  std::string rest;
  std::getline(words, rest);
  const std::string said = with_all(done(command, rest, lines), folder_.path() + "/", "");
  return with_all(said, source_folder() + "/", "SOURCE/");
}

std::string CaseFolder::done(const std::string& command, const std::string& rest,
                             const Words& lines) const {
  std::istringstream stream(rest);
  Words words{std::istream_iterator<std::string>(stream), {}};
  if (command == "show") return shown(words.at(0), rest.substr(words[0].size()));
  if (command == "write") return written(words.at(0), lines);
  if (command == "remove")
    return std::filesystem::remove_all(folder_ / rest) > 0 ? "" : "no such file";
  if (command == "move") {
    std::filesystem::rename(folder_ / words.at(0), folder_ / words.at(2));
    return "";
  }
  if (command == "set") {
    nlohmann::json all = nlohmann::json::parse(read_file(folder_ / words.at(0)));
    all[nlohmann::json::json_pointer(words.at(1))] = nlohmann::json::parse(words.at(2));
    write_file(folder_ / words[0], all.dump());
    return "";
  }
  if (command == "same")
    return read_file(folder_ / words.at(0)) == read_file(folder_ / words.at(1)) ? "yes" : "no";
  if (command == "replace") return replaced(rest);
  if (command == "copy") {
    constexpr auto all = std::filesystem::copy_options::recursive |
                         std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy(folder_ / words.at(0), folder_ / words.at(2), all);
    return "";
  }
  if (command == "link") {
    std::filesystem::create_symlink(folder_ / words.at(2), folder_ / words.at(0));
    return "";
  }
  words.insert(words.begin(), command);
  return said_by({folder_.path(), words, lines});
}

std::string CaseFolder::shown(const std::string& name, const std::string& rest) const {
  if (!path_exists(folder_ / name)) return "no such file";
  const std::string part = rest.empty() ? "" : rest.substr(1);
  std::string chosen;
  std::istringstream lines(read_file(folder_ / name));
  for (std::string line; std::getline(lines, line);) {
    if (line.find(part) != std::string::npos) chosen += line + "\n";
  }
  return chosen;
}

std::string CaseFolder::written(const std::string& name, const Words& lines) const {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  write_case_file(folder_ / name, text);
  return "";
}

std::string CaseFolder::replaced(const std::string& argument) const {
  const std::size_t arrow = argument.find(" => ");
  const std::string before = argument.substr(0, arrow),
                    after = unescaped(argument.substr(arrow + 4));
  std::string text = read_file(folder_ / "train.toml");
  const std::size_t at = text.find("\n" + before);
  if (at == std::string::npos) return "there is no such line";
  write_file(folder_ / "train.toml", text.replace(at + 1, before.size(), after));
  return "";
}

}  // namespace tandem::testing
