// Pickles and archives of torch.save by hand, with any numbers in them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/training/formats/packed_files.h"

namespace tandem::testing {

inline std::string pickled(const std::string& text) {  // fewer than 256 bytes
  return "\x8c" + std::string(1, static_cast<char>(text.size())) + text;
}
inline std::string pickled(std::int64_t integer) {
  std::string bytes("\x8a\x08");
  put(bytes, integer);
  return bytes;
}
inline std::string pickled(const std::vector<std::int64_t>& tuple) {
  std::string bytes("(");
  for (const std::int64_t integer : tuple) bytes += pickled(integer);
  return bytes + "t";
}
inline std::string pickled_name(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}

/// The pickled call of torch._utils._rebuild_tensor_v2 with these arguments.
struct PickledTensor {
  std::vector<std::int64_t> shape{3}, strides{1};
  std::int64_t offset = 0, elements = 3;  // in the storage
  std::string type = "FloatStorage", key = "0";

  std::string bytes() const {
    return pickled_name("torch._utils", "_rebuild_tensor_v2") + "((" + pickled("storage") +
           pickled_name("torch", type) + pickled(key) + pickled("cpu") + pickled(elements) + "tQ" +
           pickled(offset) + pickled(shape) + pickled(strides) + "\x89" +
           pickled_name("collections", "OrderedDict") + ")RtR";
  }
};

/// A whole pickle of a dict with one entry.
inline std::string pickled_dict(const std::string& key, const std::string& value) {
  return "\x80\x02}" + pickled(key) + value + "s.";
}

inline std::string floats_as_bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

/// An archive as torch.save writes it, with the storage "0".
inline std::string torch_archive(const std::string& pickle, const std::string& storage) {
  return zip_archive({stored("w/data.pkl", pickle), stored("w/byteorder", "little"),
                      stored("w/data/0", storage), stored("w/version", "3\n")});
}

}  // namespace tandem::testing
