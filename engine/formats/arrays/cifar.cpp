#include "engine/formats/arrays/cifar.h"

#include <algorithm>
#include <cstring>

#include "engine/formats/claim.h"
#include "engine/formats/gzip.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

/// The number of a file's bytes, unpacked. The bytes of a packed file are counted, up to what
/// memory has room for.
std::uint64_t size_of_content(const InputFile& file) {
  UnpackedFile stream(file);
  if (!stream.packed()) return file.size();
  std::vector<std::uint8_t> piece(std::size_t{1} << 18);
  constexpr std::uint64_t between_looks = std::uint64_t{1} << 28;
  std::uint64_t bytes = 0, looked = 0;
  while (const std::size_t got = stream.read(piece.data(), piece.size())) {
    bytes += got;
    if (bytes < looked + between_looks) continue;
    looked = bytes;
    claim_memory(bytes, file.path(), "", "more than " + std::to_string(bytes) + " bytes");
  }
  return bytes;
}

}  // namespace

std::vector<NamedTensor> read_cifar(const std::string& path,
                                    const std::function<bool(std::string_view)>& wanted) {
  const InputFile file(path);
  constexpr std::size_t pixels = 3 * 32 * 32;
  const auto fail = [&](std::string message, std::size_t row, std::string expected,
                        std::string got) {
    throw Error(ErrorKind::data, {.message = std::move(message),
                                  .file = path,
                                  .line = static_cast<int>(row),
                                  .expected = std::move(expected),
                                  .got = std::move(got)});
  };
  const std::uint64_t size = size_of_content(file);
  const bool ten = size % (pixels + 1) == 0;
  if (size == 0 || (!ten && size % (pixels + 2) != 0)) {
    fail("not a CIFAR file, or cut off", 0,
         "a multiple of 3073 (CIFAR-10) or 3074 (CIFAR-100) bytes",
         std::to_string(size) + " bytes");
  }
  const std::size_t record = pixels + (ten ? 1 : 2), rows = size / record;
  const auto count = static_cast<std::int64_t>(rows);
  struct Array {
    const char* name;
    Shape sample;
    std::size_t offset;  // in a record
    HostTensor tensor{};
  };
  std::vector<Array> all = {{"images", {3, 32, 32}, record - pixels},
                            {"labels", {}, record - pixels - 1},
                            {"coarse_labels", {}, 0}};
  if (ten) all.pop_back();
  std::erase_if(all, [&](const Array& array) { return wanted && !wanted(array.name); });
  std::uint64_t bytes = 0;
  std::vector<TensorType> types;
  for (const Array& array : all) {
    TensorType& type = types.emplace_back(TensorType{DType::uint8, array.sample});
    type.shape.insert(type.shape.begin(), count);
    bytes += type.bytes();
  }
  claim_memory(bytes, path, "",
               std::to_string(bytes) + " bytes of " + std::to_string(rows) + " records");
  for (std::size_t i = 0; i < all.size(); ++i) all[i].tensor = HostTensor(types[i]);

  UnpackedFile stream(file);
  constexpr std::size_t at_a_time = 64;
  std::vector<std::uint8_t> records(at_a_time * record);
  const int classes = ten ? 10 : 100;
  for (std::size_t first = 0; first < rows; first += at_a_time) {
    const std::size_t here = std::min(at_a_time, rows - first);
    if (read_fully(stream, records.data(), here * record) < here * record) {
      fail("the file became shorter while it was read", first + 1, "", "");
    }
    for (std::size_t i = 0; i < here; ++i) {
      const std::uint8_t* from = records.data() + i * record;
      const std::uint8_t label = from[record - pixels - 1];
      if (label >= classes || (!ten && from[0] >= 20)) {
        fail("a label is out of range", first + i + 1, "below " + std::to_string(classes),
             std::to_string(label));
      }
      for (Array& array : all) {
        const std::size_t each = array.tensor.bytes() / rows;
        std::memcpy(static_cast<std::uint8_t*>(array.tensor.data()) + (first + i) * each,
                    from + array.offset, each);
      }
    }
  }
  std::vector<NamedTensor> arrays;
  for (Array& array : all) arrays.push_back({array.name, std::move(array.tensor)});
  return arrays;
}

}  // namespace tandem
