#include "engine/train/checkpoints/data_fingerprint.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/data/images/image_list.h"
#include "engine/formats/byte_stream.h"
#include "engine/formats/files.h"
#include "engine/formats/sha256.h"

namespace tandem {
namespace {

constexpr std::uint64_t end_bytes = 64 << 10;

/// Adds `bytes` bytes from `from` on; fewer where the file has become shorter.
void add_range(Sha256& hash, const InputFile& file, std::uint64_t from, std::uint64_t bytes) {
  std::vector<char> buffer(bytes);
  hash.update(buffer.data(), file.read_at(from, buffer.data(), bytes));
}

std::vector<std::string> facts_of(std::uint64_t bytes, const char* hashed, Sha256& hash) {
  return {fmt::format("{} bytes", bytes),
          fmt::format("sha256 of {} {}", hashed, hash.finish().substr(0, 32))};
}

/// What is known of a folder of pictures: their names and sizes, and the lists of labels next to
/// them.
std::vector<std::string> folder_facts(const std::string& path) {
  Sha256 hash;
  std::uint64_t all = 0;
  for (const std::string& name : images_below(path)) {
    const std::uint64_t bytes = file_size(path + "/" + name);
    all += bytes;
    const std::string line = std::to_string(bytes) + " " + name + "\n";
    hash.update(line.data(), line.size());
  }
  for (const std::string& name : list_directory(path)) {  // lists of labels
    if (!name.ends_with(".csv") && !name.ends_with(".tsv")) continue;
    const std::string text = name + " " + hash_file(path + "/" + name).sha256 + "\n";
    hash.update(text.data(), text.size());
  }
  return facts_of(all, "the names in the folder", hash);
}

std::vector<std::string> file_facts(const std::string& path) {
  const InputFile file(path);
  const std::uint64_t bytes = file.size();
  Sha256 hash;
  add_range(hash, file, 0, std::min(bytes, end_bytes));
  // The last part begins after the first one at the earliest: no byte counts twice.
  const std::uint64_t rest = bytes - std::min(bytes, end_bytes);
  const std::uint64_t last = std::min(rest, end_bytes);
  add_range(hash, file, bytes - last, last);
  return facts_of(bytes, "the first and last 64 KiB", hash);
}

RecordedPart part_of(const std::string& array, const std::string& path) {
  using Json = nlohmann::json;  // as the checkpoint's file will have it: UTF-8
  const std::string name = Json::parse(Json(std::filesystem::path(path).filename().string())
                                           .dump(-1, ' ', true, Json::error_handler_t::replace));
  RecordedPart part{array.empty() ? name : array + " = " + name, "", {}};
  struct stat facts {};
  const bool is_there = ::stat(path.c_str(), &facts) == 0;
  if (is_there && S_ISDIR(facts.st_mode))
    part.facts = folder_facts(path);
  else if (!is_there || S_ISREG(facts.st_mode))  // pipes are read only once
    part.facts = file_facts(path);
  return part;
}

}  // namespace

std::vector<RecordedPart> fingerprint_of(const SplitConfig& split, std::int64_t samples) {
  std::vector<RecordedPart> parts;
  for (const ArrayFiles& array : split.files) {
    for (const std::string& path : array.paths) parts.push_back(part_of(array.name, path));
  }
  RecordedPart& all = parts.emplace_back(RecordedPart{"samples", "", {}});
  if (samples > 0) all.facts.push_back(std::to_string(samples));
  return parts;
}

DataFingerprint fingerprint_of(const DataConfig& config, const DataSets& data) {
  DataFingerprint result;
  result.train = fingerprint_of(config.train, data.train->samples());
  result.eval = fingerprint_of(config.eval, data.eval ? data.eval->samples() : 0);
  if (config.is_of_program()) {
    result.train.insert(result.train.begin(), {"identity", "", {data.train_identity}});
    if (data.eval) result.eval.insert(result.eval.begin(), {"identity", "", {data.eval_identity}});
  }
  for (const DataField& field : data.train->fields())
    result.fields[field.name] = to_string(field.sample);
  return result;
}

std::optional<Difference> first_difference(const DataFingerprint& before,
                                           const DataFingerprint& now) {
  if (auto difference = first_difference("data.train", before.train, now.train)) return difference;
  if (auto difference = first_difference("data.eval", before.eval, now.eval)) return difference;
  for (const auto& [name, type] : before.fields) {
    const auto found = now.fields.find(name);  // without it nothing is fed of that name
    if (found != now.fields.end() && found->second != type)
      return Difference{"data.fields." + name, "a sample of " + type,
                        "a sample of " + found->second};
  }
  return std::nullopt;
}

}  // namespace tandem
