#include "engine/training/data/data_fingerprint.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/formats/byte_stream.h"
#include "engine/formats/count_text.h"
#include "engine/formats/files.h"
#include "engine/formats/sha256.h"
#include "engine/training/data/images/image_list.h"

namespace tandem {
namespace {

constexpr std::uint64_t end_bytes = 64 << 10;

/// Adds `bytes` bytes from `from` on; fewer where the file has become shorter.
void add_range(Sha256& hash, const InputFile& file, std::uint64_t from, std::uint64_t bytes) {
  std::vector<char> buffer(bytes);
  hash.update(buffer.data(), file.read_at(from, buffer.data(), bytes));
}

/// Fingerprint of a folder of pictures: their names and sizes, and the lists of labels next to
/// them.
void add_folder(const std::string& path, FileFingerprint& to) {
  Sha256 hash;
  for (const std::string& name : images_below(path)) {
    const std::uint64_t bytes = file_size(path + "/" + name);
    to.bytes += bytes;
    const std::string line = std::to_string(bytes) + " " + name + "\n";
    hash.update(line.data(), line.size());
  }
  for (const std::string& name : list_directory(path)) {  // lists of labels
    if (!name.ends_with(".csv") && !name.ends_with(".tsv")) continue;
    const std::string text = name + " " + hash_file(path + "/" + name).sha256 + "\n";
    hash.update(text.data(), text.size());
  }
  to.ends = hash.finish();
}

FileFingerprint fingerprint_of(const std::string& array, const std::string& path) {
  FileFingerprint file;
  file.array = array;
  using Json = nlohmann::json;  // as the checkpoint's file will have it: UTF-8
  file.name = Json::parse(Json(std::filesystem::path(path).filename().string())
                              .dump(-1, ' ', true, Json::error_handler_t::replace));
  struct stat facts {};
  const bool is_there = ::stat(path.c_str(), &facts) == 0;
  if (is_there && S_ISDIR(facts.st_mode)) {
    add_folder(path, file);
    return file;
  }
  if (is_there && !S_ISREG(facts.st_mode)) return file;
  const InputFile open(path);
  file.bytes = open.size();
  Sha256 hash;
  add_range(hash, open, 0, std::min(file.bytes, end_bytes));
  // The last part begins after the first one at the earliest: no byte counts twice.
  const std::uint64_t rest = file.bytes - std::min(file.bytes, end_bytes);
  const std::uint64_t last = std::min(rest, end_bytes);
  add_range(hash, open, file.bytes - last, last);
  file.ends = hash.finish();
  return file;
}

std::string label(const FileFingerprint& file) {
  return file.array.empty() ? file.name : file.array + " = " + file.name;
}

}  // namespace

SplitFingerprint fingerprint_of(const SplitConfig& split) {
  SplitFingerprint result;
  for (const ArrayFiles& array : split.files) {
    for (const std::string& path : array.paths)
      result.files.push_back(fingerprint_of(array.name, path));
  }
  return result;
}

DataFingerprint fingerprint_of(const DataConfig& config, const DataSets& data) {
  DataFingerprint result;
  result.train = fingerprint_of(config.train);
  result.eval = fingerprint_of(config.eval);
  result.train.samples = data.train->samples();
  if (data.eval) result.eval.samples = data.eval->samples();
  for (const DataField& field : data.train->fields())
    result.fields[field.name] = to_string(field.sample);
  return result;
}

std::string to_string(const Difference& d) {
  return fmt::format("{}: {}: {}, now {}", d.where, d.what, d.before.empty() ? "none" : d.before,
                     d.now.empty() ? "none" : d.now);
}

std::optional<Difference> first_difference(const std::string& where, const SplitFingerprint& before,
                                           const SplitFingerprint& now) {
  const std::size_t both = std::min(before.files.size(), now.files.size());
  for (std::size_t i = 0; i < both; ++i) {
    const FileFingerprint &a = before.files[i], &b = now.files[i];
    if (a.name != b.name || a.array != b.array)
      return Difference{where, fmt::format("file {}", i + 1), label(a), label(b)};
    if (a.ends.empty() || b.ends.empty()) continue;
    const std::string file = where + ": " + label(b);
    if (a.bytes != b.bytes)
      return Difference{file, "bytes", std::to_string(a.bytes), std::to_string(b.bytes)};
    if (a.ends != b.ends)
      return Difference{file, "sha256 of its first and last 64 KiB, or of the names in the folder",
                        a.ends.substr(0, 16) + "…", b.ends.substr(0, 16) + "…"};
  }
  if (before.files.size() != now.files.size()) {
    return Difference{where, "number of files", count_text(before.files.size(), "file"),
                      count_text(now.files.size(), "file")};
  }
  if (before.samples > 0 && now.samples > 0 && before.samples != now.samples) {
    return Difference{where, "samples", std::to_string(before.samples),
                      std::to_string(now.samples)};
  }
  return std::nullopt;
}

std::optional<Difference> first_difference(const DataFingerprint& before,
                                           const DataFingerprint& now) {
  if (auto difference = first_difference("data.train", before.train, now.train)) return difference;
  if (auto difference = first_difference("data.eval", before.eval, now.eval)) return difference;
  for (const auto& [name, type] : before.fields) {
    const auto found = now.fields.find(name);  // without it nothing is fed of that name
    if (found != now.fields.end() && found->second != type)
      return Difference{"data.fields." + name, "a sample", type, found->second};
  }
  return std::nullopt;
}

}  // namespace tandem
