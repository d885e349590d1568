// SHA-256 (FIPS 180-4), for the manifests of checkpoints.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tandem {

class Sha256 {
 public:
  void update(const void* data, std::size_t bytes);
  /// 64 lower-case hexadecimal digits; the object is finished afterwards.
  std::string finish();

 private:
  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> block_{};
  std::size_t filled_ = 0;
  std::uint64_t bytes_ = 0;
};

std::string sha256(const void* data, std::size_t bytes);

}  // namespace tandem
