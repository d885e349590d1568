#include "engine/train/group/shared_hashes.h"

#include <algorithm>
#include <vector>

#include "engine/formats/sha256.h"
#include "engine/train/group/gathered.h"

namespace tandem {
namespace {

// Hash over all rows, which only rank 0 reads; "" on the others.
std::string hash_over_ranks(const std::string& name, const StateShard& shard, Rendezvous& ranks,
                            RowExchange& exchange) {
  const TensorType& whole = shard.whole;
  const std::int64_t rows = whole.shape.empty() ? 1 : whole.shape[0];
  Sha256 hash;
  if (rows == 0 || whole.bytes() == 0) return hash.finish();
  std::vector<RowRange> ranges(static_cast<std::size_t>(ranks.ranks()));
  ranges[0] = {0, rows};
  exchange.begin(name, std::move(ranges));
  if (ranks.rank() == 0) {
    const std::size_t row = whole.bytes() / static_cast<std::size_t>(rows);
    const auto some =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(RowExchange::default_window / row));
    std::vector<unsigned char> bytes;
    for (std::int64_t first = 0; first < rows; first += some) {
      const std::int64_t count = std::min(some, rows - first);
      bytes.resize(static_cast<std::size_t>(count) * row);
      exchange.read(count, bytes.data());
      hash.update(bytes.data(), bytes.size());
    }
  }
  exchange.end();
  return ranks.rank() == 0 ? hash.finish() : std::string();
}

}  // namespace

std::map<std::string, std::string> shared_frozen_hashes(const StateStore& states, Rendezvous& ranks,
                                                        RowExchange& exchange) {
  std::map<std::string, std::string> hashes;
  for (const std::string& name : states.names()) {
    const StateShard* const shard = states.shard(name);
    if (shard == nullptr || states.held_by(name) == HeldBy::checkpoint) continue;
    const std::string own = hash_over_ranks(name, *shard, ranks, exchange);
    hashes[name] = from_rank_0(ranks, "the hash of a frozen state", [&] { return own; });
  }
  return hashes;
}

}  // namespace tandem
