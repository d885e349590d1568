// A table too large for one file: safetensors files that hold ranges of its rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/formats/safetensors.h"

namespace tandem {

/// One file: rows [first, first + rows) of one tensor under the tensor's own name. Its metadata
/// says `first_row` and the table's `rows`.
struct RowShard {
  std::string file;  // name in its folder
  std::int64_t first = 0;
  std::int64_t rows = 0;
};

/// Ranges of about `bytes`, the last one shorter; files STEM-00001-of-00004.safetensors. All but
/// the last are whole pages, so that the files can be mapped one after the other.
std::vector<RowShard> row_shards(const TensorSource& tensor, std::uint64_t bytes,
                                 const std::string& stem);

/// Writes and syncs one of them.
WrittenFile write_row_shard(const std::string& folder, const TensorSource& tensor,
                            const RowShard& shard);

/// The whole tensor: the files mapped one after the other (private: writes never reach them);
/// copied where they do not lie on pages. Throws Error{data} where they do not fit together.
NamedTensor read_row_shards(const std::string& folder, const std::string& name,
                            const std::vector<RowShard>& shards);

}  // namespace tandem
