// IDX files with one array each, such as MNIST's four.
#include "engine/formats/arrays/idx.h"
#include "api/init/data/data_look.h"

namespace tandem::api::looks {
namespace {

bool takes_idx(const std::string& path) {
  return has_ending(path, {".idx", "-ubyte", ".ubyte", "idx1-ubyte", "idx3-ubyte"}) ||
         stem_of(path).find("-idx") != std::string::npos;
}

void group(const std::vector<std::string>& paths, std::vector<ArrayFiles>& to) {
  for (const std::string& path : paths) {
    // In "t10k-images.idx3-ubyte" the telling words are on both sides of the point.
    const std::string name = without_split(path.substr(path.rfind('/') + 1));
    const auto found = std::find_if(to.begin(), to.end(),
                                    [&](const ArrayFiles& array) { return array.name == name; });
    if (found == to.end())
      to.push_back({name, {path}, {}});
    else
      found->paths.push_back(path);
  }
}

void look_at_idx(const SplitPaths& paths, DataFacts& facts) {
  group(paths.train, facts.train);
  group(paths.eval, facts.eval);
  for (const ArrayFiles& array : facts.train) {
    for (const std::string& path : array.paths) add_array(facts, array.name, read_idx(path), path);
  }
}

}  // namespace

DataLook idx() { return {.kind = "idx", .takes = takes_idx, .look = look_at_idx}; }

}  // namespace tandem::api::looks
