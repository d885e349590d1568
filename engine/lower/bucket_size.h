// How many bytes of gradients travel as one.
#pragma once

#include <algorithm>
#include <cstddef>

namespace tandem {

/// The first bucket is small, so that the exchange begins early; the others are a part of all bytes
/// between that and PyTorch's 25 MiB, since the last one is ready when backward is done and hides
/// behind nothing. At 10 Gb/s a message's latency is that of 50 KiB.
constexpr std::size_t first_bucket_bytes = std::size_t{1} << 20;

/// `all`: of all gradients that are exchanged.
inline std::size_t bucket_bytes(std::size_t all) {
  constexpr std::size_t most = std::size_t{25} << 20, parts = 16;
  return std::clamp(all / parts, first_bucket_bytes, most);
}

}  // namespace tandem
