// Reading checkpoints: what is damaged, what must not be read, what is of another format.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/formats/files.h"
#include "engine/formats/parallel_jobs.h"
#include "engine/formats/row_shards.h"
#include "engine/formats/run_format.h"
#include "engine/formats/safetensors.h"
#include "engine/graph/text.h"
#include "engine/ranks/rendezvous.h"
#include "engine/train/checkpoints/checkpoint_format.h"
#include "engine/train/group/gathered.h"

namespace tandem {
namespace {

[[noreturn]] void broken(const std::string& file, const std::string& message,
                         const std::string& expected = "", const std::string& got = "",
                         const std::string& name = "") {
  Diagnostic d;
  d.file = file;
  d.path = name;
  d.message = message;
  d.expected = expected;
  d.got = got;
  throw Error(ErrorKind::data, std::move(d));
}

/// A file that the manifest lists; `tensor` where it holds rows of one.
struct ListedFile {
  std::string name;
  WrittenFile content;
  std::string part, tensor;
  RowShard rows;
};

ListedFile read_listed(const std::string& name, const JsonItem& entry) {
  ListedFile file;
  file.name = name;
  if (name.empty() || name == "." || name == ".." || name == "manifest.json" ||
      name.find('/') != std::string::npos || name.find('\0') != std::string::npos) {
    entry.refuse("lists a file elsewhere", "the name of a file in the folder of the manifest");
  }
  file.content.bytes = entry.at("bytes").natural();
  file.content.sha256 = entry.at("sha256").sha256();
  if (!entry.find("tensor")) return file;
  file.part = entry.at("part").text();
  if (file.part != "model" && file.part != "optimizer")
    entry.at("part").refuse("not a value that can be here", "model or optimizer");
  file.tensor = entry.at("tensor").any_text();
  file.rows.file = name;
  file.rows.first = static_cast<std::int64_t>(entry.at("first_row").natural());
  const auto most = std::numeric_limits<std::int64_t>::max() - file.rows.first;
  file.rows.rows =
      static_cast<std::int64_t>(entry.at("rows").natural(1, static_cast<std::uint64_t>(most)));
  return file;
}

[[noreturn]] void unreadable(const std::string& path, int error) {
  Diagnostic d;
  d.file = path;
  d.message = std::string("the checkpoint cannot be read: ") + std::strerror(error);
  d.fix =
      "it may be complete, so it is not changed; move its folder elsewhere to continue without it";
  throw Error(ErrorKind::runtime, std::move(d));
}

/// Whether there is something: a link that leads nowhere is nothing.
bool is_there(const std::string& path, struct stat& status) {
  if (::stat(path.c_str(), &status) == 0) return true;
  if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP) unreadable(path, errno);
  return false;
}

void expect_file(const std::string& path) {
  struct stat status;
  if (!is_there(path, status)) broken(path, "the checkpoint lacks this file");
  if (!S_ISREG(status.st_mode)) broken(path, "not a file");
}

// Throws where a file is not there, or one of the share is not what the manifest says.
std::vector<ListedFile> checked_manifest(const std::string& path, const ReadShare& share) {
  const std::string manifest_path = path + "/manifest.json";
  expect_file(manifest_path);
  const JsonFile manifest(manifest_path);
  expect_run_format(manifest.root());
  const JsonItem list = manifest.root().at("files");
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    if (list.at(name).find("tensor"))
      list.at(name).refuse("not a file of rows", "only bytes and sha256");
  }
  std::vector<ListedFile> files;
  for (const auto& [name, entry] : list.object()) files.push_back(read_listed(name, entry));
  std::vector<WrittenFile> found(files.size());
  parallel_jobs(file_threads(), static_cast<std::int64_t>(files.size()), [&](std::int64_t i) {
    const std::string file = path + "/" + files[i].name;
    expect_file(file);
    if (i % share.of == share.number) found[i] = hash_file(file);
  });
  for (auto i = static_cast<std::size_t>(share.number); i < files.size();
       i += static_cast<std::size_t>(share.of)) {
    const std::string file = path + "/" + files[i].name;
    if (found[i].bytes != files[i].content.bytes) {
      broken(file, "wrong size", std::to_string(files[i].content.bytes) + " bytes",
             std::to_string(found[i].bytes) + " bytes");
    }
    if (found[i].sha256 != files[i].content.sha256)
      broken(file, "contents do not match the manifest's hash");
  }
  return files;
}

// Tensors of one part that have files of their own, in the order of those files: all that
// STEM.safetensors names, which has a hash. The manifest has none.
void read_tables(const std::string& path, const std::string& stem,
                 const std::vector<ListedFile>& files, const SafetensorsFile& rest,
                 std::vector<NamedTensor>& to) {
  const std::string manifest = path + "/manifest.json";
  std::map<std::string, std::vector<RowShard>> tables;
  for (const ListedFile& file : files) {
    if (file.part == stem) tables[file.tensor].push_back(file.rows);
  }
  for (const auto& [key, file] : rest.metadata()) {
    if (!key.starts_with(table_key)) continue;
    const std::string name = key.substr(table_key.size());
    if (!tables.contains(name))
      broken(manifest, "does not list the rows of \"" + name + "\"", file);
  }
  std::map<std::pair<std::size_t, std::string>, std::string> order;  // table2 before table10
  for (auto& [name, shards] : tables) {
    std::sort(shards.begin(), shards.end(),
              [](const RowShard& a, const RowShard& b) { return a.first < b.first; });
    const std::string& first = shards[0].file;
    const auto named = rest.metadata().find(std::string(table_key) + name);
    if (named == rest.metadata().end() || named->second != first) {
      broken(manifest,
             "does not list the rows of \"" + name + "\" as " + stem + ".safetensors does",
             named == rest.metadata().end() ? "none" : named->second, first);
    }
    order[{first.size(), first}] = name;
  }
  for (const auto& [file, name] : order) to.push_back(read_row_shards(path, name, tables[name]));
}

void expect_other_names(const std::string& path, const CheckpointContent& content) {
  std::unordered_set<std::string_view> names;
  for (const std::vector<NamedTensor>* tensors : {&content.model, &content.optimizer}) {
    for (const NamedTensor& tensor : *tensors) {
      if (!names.insert(tensor.name).second)
        broken(path, "two tensors have this name", "", "", tensor.name);
    }
  }
}

/// Throws where the system does not let this process read the folder or a file in it: what they
/// hold is whole for all that is known.
void expect_permission(const std::string& path) {
  const auto expect = [&](const std::string& file, int mode) {
    if (::faccessat(AT_FDCWD, file.c_str(), mode, AT_EACCESS) == 0 || errno != EACCES) return;
    Diagnostic d;
    d.file = file;
    d.message = "the checkpoint cannot be read: permission denied";
    d.fix = "read it as the user that has trained, or let others read it: chmod -R a+rX " + path;
    throw Error(ErrorKind::runtime, std::move(d));
  };
  expect(path, R_OK | X_OK);
  if (!is_directory(path)) return;
  for (const std::string& name : list_directory(path)) expect(path + "/" + name, R_OK);
}

}  // namespace

CheckpointContent read_checkpoint(const std::string& path, const MayBeInfinite& may_be_infinite,
                                  const ReadShare& share) {
  expect_permission(path);
  struct stat status;
  if (!is_there(path, status) || !S_ISDIR(status.st_mode))
    broken(path, "there is no checkpoint here");
  const std::vector<ListedFile> files = checked_manifest(path, share);
  CheckpointContent content;
  content.position = read_position(path + "/state.json");
  const auto is_fingerprint = [](const ListedFile& file) { return file.name == fingerprint_file; };
  if (std::any_of(files.begin(), files.end(), is_fingerprint))
    content.position.fingerprint = read_fingerprint(path);
  const std::string folder = path.substr(path.find_last_of('/') + 1);
  if (const auto step = checkpoint_step(folder); step && *step != content.position.step) {
    broken(path + "/state.json", "not the step that the folder's name says", std::to_string(*step),
           std::to_string(content.position.step), "step");
  }
  const SafetensorsFile model(path + "/model.safetensors");
  content.model = model.tensors();
  for (const auto& [key, value] : model.metadata()) {
    if (key.starts_with("alias:")) content.aliases[key.substr(6)] = value;
  }
  const SafetensorsFile optimizer(path + "/optimizer.safetensors");
  content.optimizer = optimizer.tensors();
  read_tables(path, "model", files, model, content.model);
  read_tables(path, "optimizer", files, optimizer, content.optimizer);
  expect_other_names(path, content);
  expect_numbers(path, content, may_be_infinite, share);
  return content;
}

std::string broken_text(const std::string& name, const Error& error) {
  return "checkpoint " + name + " is broken and is not used: " + error.what();
}

std::optional<CheckpointContent> newest_checkpoint(const std::string& folder,
                                                   std::vector<std::string>& messages,
                                                   std::string* path,
                                                   const MayBeInfinite& may_be_infinite,
                                                   Rendezvous& ranks) {
  std::istringstream names(from_rank_0(ranks, "the checkpoints that there are", [&] {
    std::vector<std::string> all = list_checkpoints(folder);
    std::reverse(all.begin(), all.end());
    return joined(all, "\n");
  }));
  const ReadShare share{ranks.rank(), ranks.ranks()};
  for (std::string name; std::getline(names, name);) {
    try {
      std::optional<CheckpointContent> content;
      on_all_ranks(ranks, "a checkpoint",
                   [&] { content = read_checkpoint(folder + "/" + name, may_be_infinite, share); });
      if (path != nullptr) *path = folder + "/" + name;
      return content;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::data) throw;  // whole for all that is known
      messages.push_back(broken_text(name, e));
    }
  }
  return std::nullopt;
}

}  // namespace tandem
