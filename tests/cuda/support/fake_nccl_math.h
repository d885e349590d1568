// What the fake NCCL computes: simple reductions over the bytes of ranks.
#pragma once

#include <nccl.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "engine/graph/half.h"

namespace tandem::testing {

/// What a rank has given to an operation, by the peer that gets it; negative keys: all peers get
/// it.
struct FakeNcclPart {
  std::map<int, std::string> given;
};

inline std::size_t fake_nccl_bytes(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    default:
      return 8;
  }
}

/// Reduces elements of type T in type Wide: floats in double, integers in 64 bits.
template <class T, class Wide>
std::string fake_nccl_reduced_as(const std::vector<std::string>& ranks, ncclRedOp_t operation) {
  std::string result = ranks[0];
  for (std::size_t at = 0; at < result.size(); at += sizeof(T)) {
    Wide total = 0;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      T element;
      std::memcpy(&element, ranks[rank].data() + at, sizeof element);
      const Wide value = static_cast<Wide>(element);
      if (rank == 0) {
        total = value;
      } else if (operation == ncclMax) {
        total = std::max(total, value);
      } else if (operation == ncclMin) {
        total = std::min(total, value);
      } else {
        total += value;
      }
    }
    if (operation == ncclAvg) total /= static_cast<Wide>(ranks.size());
    const T element = static_cast<T>(total);
    std::memcpy(result.data() + at, &element, sizeof element);
  }
  return result;
}

/// A 16-bit float that converts to and from float.
template <float (*Widen)(std::uint16_t), std::uint16_t (*Narrow)(float)>
struct FakeHalf {
  std::uint16_t bits;
  FakeHalf() = default;
  explicit FakeHalf(double value) : bits(Narrow(static_cast<float>(value))) {}
  explicit operator double() const { return Widen(bits); }
};

inline std::string fake_nccl_reduced(const std::vector<std::string>& ranks, ncclDataType_t type,
                                     ncclRedOp_t operation) {
  switch (type) {
    case ncclInt8:
      return fake_nccl_reduced_as<std::int8_t, std::int64_t>(ranks, operation);
    case ncclUint8:
      return fake_nccl_reduced_as<std::uint8_t, std::uint64_t>(ranks, operation);
    case ncclInt32:
      return fake_nccl_reduced_as<std::int32_t, std::int64_t>(ranks, operation);
    case ncclUint32:
      return fake_nccl_reduced_as<std::uint32_t, std::uint64_t>(ranks, operation);
    case ncclInt64:
      return fake_nccl_reduced_as<std::int64_t, std::int64_t>(ranks, operation);
    case ncclUint64:
      return fake_nccl_reduced_as<std::uint64_t, std::uint64_t>(ranks, operation);
    case ncclFloat32:
      return fake_nccl_reduced_as<float, double>(ranks, operation);
    case ncclFloat64:
      return fake_nccl_reduced_as<double, double>(ranks, operation);
    case ncclFloat16:
      return fake_nccl_reduced_as<FakeHalf<half_to_float, float_to_half>, double>(ranks, operation);
    case ncclBfloat16:
      return fake_nccl_reduced_as<FakeHalf<bfloat16_to_float, float_to_bfloat16>, double>(
          ranks, operation);
    default:
      assert(false);
      return {};
  }
}

}  // namespace tandem::testing
