// Reads data.kind = "npz": archives of named arrays, or one array in each file.
#include "engine/data/arrays/array_file.h"
#include "engine/formats/arrays/npy.h"
#include "engine/formats/arrays/npz_file.h"

namespace tandem {

void read_file(const NpzFiles&, const ArrayFile& file) {
  if (!file.name.empty()) {
    file.to.add(file.name, read_npy(file.path), file.path, file.errors);
    return;
  }
  const NpzFile archive(file.path);
  std::vector<std::string> names;
  for (const std::string& name : archive.names()) {
    if (file.wants(name)) names.push_back(name);
  }
  for (const NamedTensor& array : archive.read(names))
    file.to.add(array.name, array.tensor, file.path, file.errors);
}

}  // namespace tandem
