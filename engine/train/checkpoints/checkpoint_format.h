// What writers and readers of checkpoints share.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/formats/json_file.h"
#include "engine/formats/row_shards.h"
#include "engine/graph/error.h"
#include "engine/train/checkpoints/checkpoint.h"

namespace tandem {

/// In the metadata of STEM.safetensors, before the name of a tensor that has files of its own: the
/// first of them.
constexpr std::string_view table_key = "table:";

/// A tensor that has files of its own.
struct TensorFiles {
  const TensorSource* source;
  std::vector<RowShard> shards;
};

/// How STEM, "model" or "optimizer", lies in files: small tensors and `metadata` in
/// STEM.safetensors, rows of large ones in files next to it. Views the tensors.
struct PartLayout {
  std::string stem;
  std::vector<TensorSource> small;
  std::vector<TensorFiles> large;
  std::map<std::string, std::string> metadata;

  std::string file() const { return stem + ".safetensors"; }
};
PartLayout layout_of(const std::string& stem, const std::vector<TensorSource>& tensors,
                     std::map<std::string, std::string> metadata, const CheckpointOptions& options);

/// The manifest's entry for a file; `tensor` is set where the file holds rows of one.
struct ManifestFile {
  std::string name;
  WrittenFile written;
  std::string part = {}, tensor = {};
  RowShard rows = {};
};

/// Adds state.json, the files that the position refers to and the manifest, which lists them after
/// `files`, and makes the folder durable.
void finish_files(const std::string& path, const TrainingPosition& position,
                  std::vector<ManifestFile> files);

/// The name under which a checkpoint is written.
std::string unfinished_name(const std::string& path);

/// Renames the whole checkpoint at unfinished_name(`path`) to `path`. A checkpoint that has this
/// name already is removed, where the two can be exchanged at once; else it stays, and the new one
/// is removed.
void finish_checkpoint(const std::string& path);

/// The message about a broken checkpoint that is skipped.
std::string broken_text(const std::string& name, const Error& error);

/// The text of state.json, and what such a file says. Throws as above, and Error{data} with file
/// and key where no run can have written a value, or where values contradict each other.
std::string position_text(const TrainingPosition& position);
TrainingPosition read_position(const std::string& file);

/// Throws Error{data} naming the checkpoint and the tensor where a number is one that no run has
/// written. Reads a share of all tensors once, large ones by several threads; pages of mapped files
/// leave the process as they have been read.
void expect_numbers(const std::string& path, const CheckpointContent& content,
                    const MayBeInfinite& may_be_infinite, const ReadShare& share);

}  // namespace tandem
