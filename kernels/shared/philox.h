// Philox4x32-10 (Salmon et al., SC 2011): random numbers as a plain function of a counter and a
// key, so that every device draws the same ones, in any order and again in a recomputation.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/graph/host_device.h"

namespace tandem {

/// Four random 32-bit words.
struct PhiloxBlock {
  std::uint32_t word[4];
};

/// The block of a 128-bit counter under a 64-bit key (least significant words first).
TANDEM_HOST_DEVICE constexpr PhiloxBlock philox(PhiloxBlock counter, std::uint32_t key0,
                                                std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter.word[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter.word[2];
    counter = {{static_cast<std::uint32_t>(b >> 32) ^ counter.word[1] ^ key0,
                static_cast<std::uint32_t>(b),
                static_cast<std::uint32_t>(a >> 32) ^ counter.word[3] ^ key1,
                static_cast<std::uint32_t>(a)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// The four words for the elements 4 * block to 4 * block + 3 of a stream.
TANDEM_HOST_DEVICE constexpr PhiloxBlock random_block(std::uint64_t stream, std::uint64_t block) {
  return philox(
      {{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0}},
      static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32));
}

/// The word of one element.
TANDEM_HOST_DEVICE constexpr std::uint32_t random_word(std::uint64_t stream,
                                                       std::uint64_t element) {
  return random_block(stream, element / 4).word[element % 4];
}

/// FNV-1a, of a node's path.
constexpr std::uint64_t hash_of_path(std::string_view path) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (char c : path) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// SplitMix64's finalizer: every bit of x reaches every bit of the result.
TANDEM_HOST_DEVICE constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// The key of a node's random numbers in one step (from 1) and micro-batch (from 0) of a run.
TANDEM_HOST_DEVICE constexpr std::uint64_t random_stream(std::uint64_t seed, std::uint64_t step,
                                                         std::uint64_t micro_batch,
                                                         std::uint64_t path_hash) {
  return mix_bits(mix_bits(mix_bits(mix_bits(seed) ^ step) ^ micro_batch) ^ path_hash);
}

/// An element is dropped where its word is below this: `ratio` (0 <= ratio < 1) of all words.
constexpr std::uint32_t dropout_threshold(double ratio) {
  const double words = ratio * 4294967296.0 + 0.5;
  return words >= 4294967295.0 ? 0xFFFFFFFFu : static_cast<std::uint32_t>(words);
}

}  // namespace tandem
