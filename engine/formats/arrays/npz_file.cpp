#include "engine/formats/arrays/npz_file.h"

#include "engine/formats/arrays/npy.h"
#include "engine/formats/claim.h"

namespace tandem {

NpzFile::NpzFile(const std::string& path)
    : archive_(path, {.archive = ".npz", .member = "array", .ending = ".npy"}) {}

NpyHeader NpzFile::read_header(const std::string& name, ZipStream& member) const {
  return read_npy_header(member, member.size(), archive_.path(), name);
}

TensorType NpzFile::type(const std::string& name) const {
  ZipStream member(archive_, name);
  return read_header(name, member).type;
}

HostTensor NpzFile::read_elements(const std::string& name, ZipStream& member,
                                  const NpyHeader& header, DType as) const {
  HostTensor tensor = read_npy_elements(member, header, as, archive_.path(), name);
  member.expect_end();
  return tensor;
}

HostTensor NpzFile::read(const std::string& name, DType as) const {
  ZipStream member(archive_, name);
  const NpyHeader header = read_header(name, member);
  const TensorType type{as, header.type.shape};
  claim_memory(type.bytes(), archive_.path(), name,
               to_string(type) + ", " + std::to_string(type.bytes()) + " bytes");
  return read_elements(name, member, header, as);
}

std::vector<NamedTensor> NpzFile::read(const std::vector<std::string>& names) const {
  std::uint64_t bytes = 0, most = 0;
  std::string largest;
  for (const std::string& name : names) {
    const std::uint64_t here = type(name).bytes();
    if (__builtin_add_overflow(bytes, here, &bytes)) {
      archive_.fail("its arrays are too large", 0, name);
    }
    if (here < most) continue;
    most = here;
    largest = name;
  }
  std::string got = std::to_string(bytes) + " bytes";
  if (names.size() > 1) got += " in " + std::to_string(names.size()) + " arrays";
  if (!largest.empty()) got += ", " + std::to_string(most) + " of them " + to_string(type(largest));
  claim_memory(bytes, archive_.path(), largest, got);
  std::vector<NamedTensor> tensors;
  for (const std::string& name : names) {
    ZipStream member(archive_, name);
    const NpyHeader header = read_header(name, member);
    tensors.push_back({name, read_elements(name, member, header, header.type.dtype)});
  }
  return tensors;
}

std::vector<NamedTensor> read_npz(const std::string& path) {
  const NpzFile file(path);
  return file.read(file.names());
}

}  // namespace tandem
