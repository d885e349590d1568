// Codes of packed weights (engine/operators/packed/packing.h) in their bytes, for all devices.
#pragma once

#include "engine/graph/host_device.h"

namespace tandem {

/// How the codes of a packed matrix lie in a byte.
struct CodeForm {
  int bits = 8;
  bool is_signed = false;   // two's complement
  bool high_first = false;  // the first of several codes is in the upper bits of a byte

  TANDEM_HOST_DEVICE int in_byte() const { return 8 / bits; }
  /// The code at this place of a byte, with its sign.
  TANDEM_HOST_DEVICE int code(int byte, int place) const {
    const int shift = (high_first ? in_byte() - 1 - place : place) * bits;
    const int code = (byte >> shift) & ((1 << bits) - 1);
    return is_signed && code >> (bits - 1) != 0 ? code - (1 << bits) : code;
  }
};

}  // namespace tandem
