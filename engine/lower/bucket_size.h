// How many bytes of gradients ranks exchange as one bucket.
#pragma once

#include <algorithm>
#include <cstddef>

namespace tandem {

/// The first bucket is small, so that the exchange begins early. The others are a sixteenth of all
/// bytes, between that and PyTorch's 25 MiB: the last one is ready when backward has ended, so that
/// nothing hides its exchange. At 10 Gb/s a message's latency costs as much as 50 KiB.
constexpr std::size_t first_bucket_bytes = std::size_t{1} << 20;

/// `all`: bytes of all gradients that are exchanged.
inline std::size_t bucket_bytes(std::size_t all) {
  constexpr std::size_t most = std::size_t{25} << 20, parts = 16;
  return std::clamp(all / parts, first_bucket_bytes, most);
}

}  // namespace tandem
