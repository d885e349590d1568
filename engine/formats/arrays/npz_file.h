// Arrays of an .npz archive, read one by one.
#pragma once

#include <string>
#include <vector>

#include "engine/formats/arrays/npy_array.h"
#include "engine/formats/named_tensor.h"
#include "engine/formats/zip_file.h"

namespace tandem {

/// The archive's directory; an array is looked at when it is asked for, and only then refused for
/// what is wrong with it. What directory, array header and unpacked bytes say about its size has to
/// agree. Error{data} with file, array and offset; Error{does_not_fit} where arrays take more
/// memory than there is.
class NpzFile {
 public:
  /// Throws where the directory is broken or names an array twice.
  explicit NpzFile(const std::string& path);

  /// In the archive's order, without ".npy".
  const std::vector<std::string>& names() const { return archive_.names(); }
  bool has(const std::string& name) const { return archive_.has(name); }
  /// The type of an existing array, read from only its header.
  TensorType type(const std::string& name) const;
  /// The array, converted to `as` while it is read.
  HostTensor read(const std::string& name, DType as) const;
  /// The arrays of these names, unconverted. Their headers are read first, and memory for all of
  /// them is checked before anything is unpacked.
  std::vector<NamedTensor> read(const std::vector<std::string>& names) const;

 private:
  NpyHeader read_header(const std::string& name, ZipStream& member) const;
  HostTensor read_elements(const std::string& name, ZipStream& member, const NpyHeader& header,
                           DType as) const;

  ZipFile archive_;
};

}  // namespace tandem
