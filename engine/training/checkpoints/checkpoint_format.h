// What writers and readers of checkpoints share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/formats/json_file.h"
#include "engine/training/checkpoints/checkpoint.h"

namespace tandem {

/// Of state.json and manifest.json.
constexpr std::uint64_t checkpoint_format = 1;
/// In the metadata of STEM.safetensors, before the name of a tensor that has files of its own: the
/// first of them.
constexpr std::string_view table_key = "table:";

/// Throws Error{usage} where the file is of a format that a newer program has written, Error{data}
/// where it says none.
void expect_checkpoint_format(const JsonItem& root);

/// The text of state.json, and what such a file says. Throws as above, and Error{data} with file
/// and key where no run can have written a value, or where values contradict each other.
std::string position_text(const TrainingPosition& position);
TrainingPosition read_position(const std::string& file);

/// Throws Error{data} naming the checkpoint and the tensor where a number is one that no run has
/// written. Reads all
/// tensors once, large ones by several threads; pages of mapped files leave the process as they
/// have been read.
void expect_numbers(const std::string& path, const CheckpointContent& content,
                    const MayBeInfinite& may_be_infinite);

}  // namespace tandem
