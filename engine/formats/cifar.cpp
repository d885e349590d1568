#include "engine/formats/cifar.h"

#include <cstring>

#include "engine/formats/gzip.h"
#include "engine/graph/error.h"

namespace tandem {

std::vector<NamedTensor> read_cifar(const std::string& path) {
  const std::vector<std::uint8_t> file = read_maybe_gzip(path);
  constexpr std::size_t pixels = 3 * 32 * 32;
  const auto fail = [&](std::string message, std::size_t row, std::string expected,
                        std::string got) {
    throw Error(ErrorKind::data, {.message = std::move(message),
                                  .file = path,
                                  .line = static_cast<int>(row),
                                  .expected = std::move(expected),
                                  .got = std::move(got)});
  };
  const bool ten = file.size() % (pixels + 1) == 0;
  if (file.empty() || (!ten && file.size() % (pixels + 2) != 0)) {
    fail("not a CIFAR file, or cut off", 0,
         "a multiple of 3073 (CIFAR-10) or 3074 (CIFAR-100) bytes",
         std::to_string(file.size()) + " bytes");
  }
  const std::size_t record = pixels + (ten ? 1 : 2), rows = file.size() / record;
  const auto count = static_cast<std::int64_t>(rows);
  HostTensor images(TensorType{DType::uint8, {count, 3, 32, 32}});
  HostTensor labels(TensorType{DType::uint8, {count}}), coarse(TensorType{DType::uint8, {count}});
  const int classes = ten ? 10 : 100;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::uint8_t* from = file.data() + row * record;
    const std::uint8_t label = from[ten ? 0 : 1];
    if (label >= classes || (!ten && from[0] >= 20)) {
      fail("a label is out of range", row + 1, "below " + std::to_string(classes),
           std::to_string(label));
    }
    labels.as<std::uint8_t>()[row] = label;
    coarse.as<std::uint8_t>()[row] = from[0];
    std::memcpy(images.as<std::uint8_t>().data() + row * pixels, from + record - pixels, pixels);
  }
  std::vector<NamedTensor> arrays = {{"images", images}, {"labels", labels}};
  if (!ten) arrays.push_back({"coarse_labels", coarse});
  return arrays;
}

}  // namespace tandem
