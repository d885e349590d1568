// Reads data.kind = "idx": one array in each file.
#include "engine/formats/arrays/idx.h"
#include "engine/data/arrays/array_file.h"

namespace tandem {

void read_file(const IdxFiles&, const ArrayFile& file) {
  file.to.add(file.name, read_idx(file.path), file.path, file.errors);
}

}  // namespace tandem
