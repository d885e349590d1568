// Reads data.kind = "cifar": images and labels in each file.
#include "engine/formats/arrays/cifar.h"
#include "engine/data/arrays/array_file.h"

namespace tandem {

void read_file(const CifarFiles&, const ArrayFile& file) {
  const auto wants = [&](std::string_view name) { return file.wants(name); };
  for (const NamedTensor& array : read_cifar(file.path, wants))
    file.to.add(array.name, array.tensor, file.path, file.errors);
}

}  // namespace tandem
