// The binary files of CIFAR-10 and CIFAR-100.
#include "engine/formats/arrays/cifar.h"

#include "api/init/data/data_look.h"
#include "engine/formats/files.h"

namespace tandem::api::looks {
namespace {

constexpr std::uint64_t cifar_10 = 3073, cifar_100 = 3074;  // bytes per record

bool takes_cifar(const std::string& path) {
  if (!has_ending(path, {".bin"})) return false;
  if (path.ends_with(".gz")) return true;
  const std::uint64_t bytes = file_size(path);
  return bytes > 0 && (bytes % cifar_10 == 0 || bytes % cifar_100 == 0);
}

void look_at_cifar(const SplitPaths& paths, DataFacts& facts) {
  facts.train = {{"", paths.train, {}}};
  if (!paths.eval.empty()) facts.eval = {{"", paths.eval, {}}};
  for (const std::string& path : paths.train) {
    for (const NamedTensor& array : read_cifar(path))
      add_array(facts, array.name, array.tensor, path);
  }
}

}  // namespace

DataLook cifar() { return {.kind = "cifar", .takes = takes_cifar, .look = look_at_cifar}; }

}  // namespace tandem::api::looks
