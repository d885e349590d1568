#include "engine/train/checkpoints/state_hashes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <fmt/format.h>

namespace tandem {
namespace {

// Four lanes, so that the multiplications of one do not wait for those of another.
class Hash {
 public:
  void add(const unsigned char* bytes, std::size_t count) {
    std::size_t at = 0;
    for (; at + 32 <= count; at += 32) {
      for (std::size_t lane = 0; lane < 4; ++lane) mix(lane, bytes + at + 8 * lane, 8);
    }
    for (; at < count; at += 8) mix(0, bytes + at, std::min<std::size_t>(8, count - at));
  }
  std::uint64_t value() const {
    std::uint64_t all = 0;
    for (const std::uint64_t lane : lanes_) all = (all ^ lane ^ lane >> 29) * prime;
    return all ^ all >> 32;
  }

 private:
  static constexpr std::uint64_t prime = 0x9E3779B97F4A7C15u;

  void mix(std::size_t lane, const unsigned char* bytes, std::size_t count) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, count);
    lanes_[lane] = (lanes_[lane] ^ word) * prime;
    lanes_[lane] ^= lanes_[lane] >> 29;
  }

  std::array<std::uint64_t, 4> lanes_{1, 2, 3, 4};
};

}  // namespace

std::string state_hashes(const StateStore& states) {
  constexpr std::size_t most = std::size_t{4} << 20;  // bytes at a time
  std::string lines;
  std::vector<unsigned char> bytes;
  for (const std::string& name : states.names()) {
    if (const StateShard* shard = states.shard(name)) {
      lines += fmt::format("{} a part of {}", name, to_string(shard->whole));
      if (shard->kind == ShardKind::table) lines += fmt::format(", with rank {}", shard->owner);
      lines += '\n';
      continue;
    }
    const TensorType& type = states.type(name);
    const std::int64_t rows = type.shape.empty() ? 1 : type.shape[0];
    Hash hash;
    if (rows > 0 && type.bytes() > 0) {
      const std::size_t row = type.bytes() / static_cast<std::size_t>(rows);
      const auto some = states.has_direct_rows(name)
                            ? std::max<std::int64_t>(1, static_cast<std::int64_t>(most / row))
                            : rows;
      for (std::int64_t first = 0; first < rows; first += some) {
        const std::int64_t count = std::min(some, rows - first);
        bytes.resize(static_cast<std::size_t>(count) * row);
        states.read_rows(name, first, count, bytes.data());
        hash.add(bytes.data(), bytes.size());
      }
    }
    lines += fmt::format("{} {:016x}\n", name, hash.value());
  }
  return lines;
}

}  // namespace tandem
