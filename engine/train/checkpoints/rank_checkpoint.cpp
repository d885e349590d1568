#include "engine/train/checkpoints/rank_checkpoint.h"

#include <chrono>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/train/checkpoints/checkpoint_format.h"
#include "engine/train/group/gathered.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

// The files that one rank writes for a checkpoint. A rank that cannot write still sends the others
// their rows, and throws in the end.
class RankFiles {
 public:
  RankFiles(const std::string& path, const CheckpointSources& sources, Rendezvous& ranks,
            RowExchange& exchange)
      : path_(path), sources_(sources), ranks_(ranks), exchange_(exchange) {}

  void write(const PartLayout& part) {
    for (const TensorFiles& tensor : part.large) write_large(tensor);
    write_small(part);
  }

  /// What it has written, as text: bytes and hash by name.
  std::string finish() {
    attempt([&] { sync_directory(path_); });
    if (failure_) std::rethrow_exception(failure_);
    return entries_.dump();
  }

 private:
  template <class F>
  void attempt(F&& f) {
    if (failure_) return;
    try {
      f();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  void note(const std::string& file, const WrittenFile& written) {
    entries_[file] = {written.bytes, written.sha256};
  }

  bool is_shared_out(const std::string& name) const { return sources_.shards.contains(name); }

  // A file for each rank at a time.
  void write_large(const TensorFiles& tensor) {
    TensorSource source = *tensor.source;
    const bool exchanges = is_shared_out(source.name);
    if (exchanges)
      source.read = [&](std::int64_t, std::int64_t rows, void* to) { exchange_.read(rows, to); };
    const auto ranks = static_cast<std::size_t>(ranks_.ranks());
    const auto own = static_cast<std::size_t>(ranks_.rank());
    for (std::size_t first = 0; first < tensor.shards.size(); first += ranks) {
      std::vector<RowRange> ranges(ranks);
      for (std::size_t r = 0; r < ranks && first + r < tensor.shards.size(); ++r)
        ranges[r] = {tensor.shards[first + r].first, tensor.shards[first + r].rows};
      if (exchanges) exchange_.begin(source.name, std::move(ranges));
      if (first + own < tensor.shards.size()) {
        const RowShard& shard = tensor.shards[first + own];
        attempt([&] { note(shard.file, write_row_shard(path_, source, shard)); });
      }
      if (exchanges) exchange_.end();
    }
  }

  // Rank 0 writes the file and reads the sharded tensors one after the other.
  void write_small(const PartLayout& part) {
    std::vector<const TensorSource*> gathered;
    for (const TensorSource* tensor : in_file_order(part.small)) {
      if (is_shared_out(tensor->name) && tensor->type.bytes() > 0) gathered.push_back(tensor);
    }
    std::size_t at = 0;  // index into `gathered`
    bool is_open = false;
    const auto begin = [&] {
      std::vector<RowRange> ranges(static_cast<std::size_t>(ranks_.ranks()));
      ranges[0] = {0, gathered[at]->rows()};
      exchange_.begin(gathered[at]->name, std::move(ranges));
      is_open = true;
    };
    const auto end = [&] {
      is_open = false;
      ++at;
      exchange_.end();
    };
    if (ranks_.rank() == 0) {
      std::vector<TensorSource> tensors = part.small;
      for (TensorSource& tensor : tensors) {
        if (!is_shared_out(tensor.name)) continue;
        tensor.read = [&, all = tensor.rows()](std::int64_t first, std::int64_t rows, void* to) {
          if (!is_open) begin();
          exchange_.read(rows, to);
          if (first + rows == all) end();
        };
      }
      attempt([&] {
        note(part.file(), write_safetensors(path_ + "/" + part.file(), tensors, part.metadata));
      });
    }
    if (is_open) end();
    while (at < gathered.size()) {
      begin();
      end();
    }
  }

  const std::string& path_;
  const CheckpointSources& sources_;
  Rendezvous& ranks_;
  RowExchange& exchange_;
  Json entries_ = Json::object();
  std::exception_ptr failure_;
};

// In the order in which a single process lists them.
std::vector<ManifestFile> listed(const std::vector<PartLayout>& parts,
                                 const std::vector<std::string>& of_ranks) {
  Json all = Json::object();
  for (const std::string& text : of_ranks) all.update(Json::parse(text));
  const auto written = [&](const std::string& file) {
    const Json& entry = all.at(file);
    return WrittenFile{entry[0].get<std::uint64_t>(), entry[1].get<std::string>()};
  };
  std::vector<ManifestFile> files;
  for (const PartLayout& part : parts) {
    files.push_back({part.file(), written(part.file())});
    for (const TensorFiles& tensor : part.large) {
      for (const RowShard& rows : tensor.shards)
        files.push_back({rows.file, written(rows.file), part.stem, tensor.source->name, rows});
    }
  }
  return files;
}

// Another machine's folder may take a while to show.
void wait_for_folder(const std::string& path) {
  constexpr std::chrono::seconds longest_wait{10};
  const auto end = std::chrono::steady_clock::now() + longest_wait;
  while (!is_directory(path)) {
    if (std::chrono::steady_clock::now() > end)
      throw Error(
          ErrorKind::runtime,
          Diagnostic{
              .message =
                  "the folder that rank 0 has made for a checkpoint is not visible on this rank",
              .file = path,
              .expected = "a file system that all ranks share"});
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

void write_rank_checkpoint(const std::string& folder, const CheckpointSources& sources,
                           const CheckpointOptions& options, Rendezvous& ranks,
                           RowExchange& exchange) {
  const std::string final_path = folder + "/" + checkpoint_name(sources.position.step);
  const std::string path = unfinished_name(final_path);
  on_rank_0_first(ranks, "the folder of a checkpoint", [&] {
    if (ranks.rank() > 0) return;
    make_directories(folder);
    remove_all(path);
    make_directory(path);
  });
  const std::vector<PartLayout> parts{
      layout_of("model", sources.model, weights_metadata(sources.aliases), options),
      layout_of("optimizer", sources.optimizer, {{"format", "pt"}}, options)};
  try {
    on_all_ranks(ranks, "the folder of a checkpoint", [&] { wait_for_folder(path); });
    std::string own;
    on_all_ranks(ranks, "the files of a checkpoint", [&] {
      RankFiles files(path, sources, ranks, exchange);
      for (const PartLayout& part : parts) files.write(part);
      own = files.finish();
    });
    const std::vector<std::string> all = gathered(ranks, "hashes of a checkpoint", own);
    on_all_ranks(ranks, "the manifest of a checkpoint", [&] {
      if (ranks.rank() > 0) return;
      finish_files(path, sources.position, listed(parts, all));
      finish_checkpoint(final_path);
    });
  } catch (...) {  // its room may be what the next one lacks
    if (ranks.rank() == 0) {
      try {
        remove_all(path);
      } catch (...) {  // the first failure is the one to tell
      }
    }
    throw;
  }
}

}  // namespace tandem
