// Whether a disk has room for the checkpoints of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tandem {

/// What is free for this process on the disk of a folder, or of the nearest one above it that is
/// there; nothing where the system does not say.
std::optional<std::uint64_t> free_bytes(const std::string& folder);

/// A sentence where this many free bytes are too few for the checkpoints that are kept and the one
/// that is written before an old one is removed; "" where they suffice or are not known.
std::string room_warning(std::optional<std::uint64_t> free, std::uint64_t checkpoint_bytes,
                         std::int64_t kept);

}  // namespace tandem
