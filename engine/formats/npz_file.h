// Arrays of an .npz archive, read one by one.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/formats/byte_stream.h"
#include "engine/formats/named_tensor.h"
#include "engine/formats/npy_array.h"

namespace tandem {

/// The archive's directory; an array is looked at when it is asked for, and only then refused for
/// what is wrong with it. What directory, array header and unpacked bytes say of its size has to
/// agree. Zip64 is read; encryption and split archives are not. Error{data} with file, array and
/// offset; Error{does_not_fit} where arrays take more memory than there is.
class NpzFile {
 public:
  /// Throws where the directory is broken or names an array twice.
  explicit NpzFile(const std::string& path);

  /// In the archive's order, without ".npy".
  const std::vector<std::string>& names() const { return names_; }
  bool has(const std::string& name) const { return entries_.contains(name); }
  /// Of an array that is there, from its header alone.
  TensorType type(const std::string& name) const;
  /// The array, converted to `as` while it is read.
  HostTensor read(const std::string& name, DType as) const;
  /// Those of these names, as they are. Their headers are read first, and memory for all of them is
  /// looked for before anything is unpacked.
  std::vector<NamedTensor> read(const std::vector<std::string>& names) const;

 private:
  struct Entry {
    std::uint16_t flags = 0, method = 0;
    std::uint32_t crc = 0;
    std::uint64_t packed = 0, bytes = 0, local = 0;  // local: where its own header is
  };
  class Member;

  [[noreturn]] void fail(std::string message, std::uint64_t offset, std::string name = "") const;
  template <class T>
  T get(std::uint64_t offset) const;
  void find_directory(std::uint64_t& entries, std::uint64_t& at) const;
  std::uint64_t add_entry(std::uint64_t at);
  HostTensor read_elements(const std::string& name, Member& member, const NpyHeader& header,
                           DType as) const;

  InputFile file_;
  std::vector<std::string> names_;
  std::map<std::string, Entry> entries_;
};

}  // namespace tandem
