#include "engine/config/resume/start_record.h"

#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/formats/json_file.h"
#include "engine/formats/run_format.h"

namespace tandem {
namespace {

std::vector<std::string> texts_in(const JsonItem& list) {
  std::vector<std::string> texts;
  for (const JsonItem& item : list.list()) texts.push_back(item.any_text());
  return texts;
}

}  // namespace

const char* const start_record_file = "started.json";

std::string to_json(const StartRecord& record) {
  nlohmann::ordered_json commands = nlohmann::ordered_json::array();
  for (const GivenKeys& given : record.commands)
    commands.push_back({{"keys", given.overrides}, {"folder", given.folder}});
  const nlohmann::ordered_json json{{"format", run_format},
                                    {"config", record.config},
                                    {"run_dir", record.run_dir},
                                    {"ranks", record.ranks},
                                    {"commands", std::move(commands)},
                                    {"place", record.place},
                                    {"device", record.devices},
                                    {"text", record.text}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::optional<StartRecord> read_start_record(const std::string& run_dir) {
  const std::string path = run_dir + "/" + start_record_file;
  if (!path_exists(path)) return std::nullopt;
  constexpr std::uint64_t most_bytes = 64 << 20;
  const JsonFile file(
      {.file = path, .fix = "take a whole copy of the run directory, or train in a new run"},
      read_file(path, most_bytes), {.bytes = most_bytes});
  const JsonItem root = file.root();
  expect_run_format(root);
  StartRecord record;
  record.config = root.at("config").any_text();
  record.run_dir = root.at("run_dir").any_text();
  record.ranks = static_cast<int>(root.at("ranks").natural(1, 1 << 20));
  for (const JsonItem& given : root.at("commands").list())
    record.commands.push_back({texts_in(given.at("keys")), given.at("folder").any_text()});
  record.place = texts_in(root.at("place"));
  record.devices = texts_in(root.at("device"));
  record.text = root.at("text").any_text();
  return record;
}

}  // namespace tandem
