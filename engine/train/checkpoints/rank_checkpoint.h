// Checkpoints of ranks that shard states: all of them write it together.
#pragma once

#include <string>

#include "engine/ranks/rendezvous.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/group/row_exchange.h"

namespace tandem {

/// `write_checkpoint` on all ranks, with the same sources: it writes the same files, byte for byte,
/// as one process with the same values. Files of rows are distributed over the ranks, rank 0 writes
/// the rest. Where it fails on one rank, there is no checkpoint and all throw, as with
/// `on_all_ranks`.
void write_rank_checkpoint(const std::string& folder, const CheckpointSources& sources,
                           const CheckpointOptions& options, Rendezvous& ranks,
                           RowExchange& exchange);

}  // namespace tandem
