// NumPy archives, whose arrays have names, and .npy files with one array each.
#include <algorithm>

#include "api/init/data/data_look.h"
#include "engine/formats/arrays/npy.h"
#include "engine/formats/arrays/npz_file.h"

namespace tandem::api::looks {
namespace {

bool takes_archive(const std::string& path) { return path.ends_with(".npz"); }
bool takes_array(const std::string& path) { return path.ends_with(".npy"); }

/// Whether labels equal the ids wherever they are not negative; negative ones mean "no label".
bool repeats(const HostTensor& labels, const HostTensor& ids) {
  bool any = false;
  for (std::int64_t i = 0; i < labels.type().elements(); ++i) {
    const double label = labels.number(i);
    if (label < 0) continue;
    if (label != ids.number(i)) return false;
    any = true;
  }
  return any;
}

/// Records for rows of labels which rows of ids they repeat.
void compare_labels(const NpzFile& file, DataFacts& facts) {
  const std::vector<std::string> names = file.names();
  const auto is_row_of_ids = [&](const ArrayFacts& array) {
    return array.sample.shape.size() == 1 && array.sample.shape[0] > 1 &&
           is_integer(array.sample.dtype) &&
           std::find(names.begin(), names.end(), array.name) != names.end();
  };
  for (ArrayFacts& labels : facts.arrays) {
    if (!names_label(labels.name) || !is_row_of_ids(labels)) continue;
    const HostTensor values = file.read(labels.name, labels.sample.dtype);
    for (const ArrayFacts& ids : facts.arrays) {
      if (&ids == &labels || !is_row_of_ids(ids) || ids.sample.shape != labels.sample.shape)
        continue;
      const HostTensor others = file.read(ids.name, ids.sample.dtype);
      if (others.shape() == values.shape() && repeats(values, others)) labels.same_as = ids.name;
    }
  }
}

/// Reads one array after the other, so that at most one is in memory.
void look_into_archive(const std::string& path, DataFacts& facts) {
  const NpzFile file(path);
  for (const std::string& name : file.names()) {
    if (!is_text(name)) {
      facts.notes.emplace_back("an array is left out: its name is no UTF-8");
      continue;
    }
    TensorType type;
    try {
      type = file.type(name);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      Diagnostic why = error.diagnostics()[0];
      why.file.clear();
      why.path.clear();
      facts.unread[name] = to_string(why);
      facts.notes.push_back("the array \"" + name + "\" is left out: " + facts.unread[name]);
      continue;
    }
    if (type.shape.empty()) {
      facts.notes.push_back("the array \"" + name + "\" is left out: a single number");
      continue;
    }
    add_array(facts, name, file.read(name, type.dtype), path);
  }
  compare_labels(file, facts);
}

void look_archives(const SplitPaths& paths, DataFacts& facts) {
  facts.train = {{"", paths.train, {}}};
  if (!paths.eval.empty()) facts.eval = {{"", paths.eval, {}}};
  for (const std::string& path : paths.train) look_into_archive(path, facts);
}

void look_arrays(const SplitPaths& paths, DataFacts& facts) {
  for (const std::string& path : paths.train) {
    const std::string name = without_split(stem_of(path));
    if (facts.find(name) != nullptr) {
      facts.problem = "two files hold the array \"" + name + "\"";
      return;
    }
    facts.train.push_back({name, {path}, {}});
    add_array(facts, name, read_npy(path), path);
  }
  for (const std::string& path : paths.eval)
    facts.eval.push_back({without_split(stem_of(path)), {path}, {}});
}

}  // namespace

DataLook npz() { return {.kind = "npz", .takes = takes_archive, .look = look_archives}; }
DataLook npy() { return {.kind = "npz", .takes = takes_array, .look = look_arrays}; }

}  // namespace tandem::api::looks
