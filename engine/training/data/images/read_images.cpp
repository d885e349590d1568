#include "engine/training/data/images/read_images.h"

#include <algorithm>
#include <utility>

#include "engine/formats/files.h"
#include "engine/formats/sha256.h"
#include "engine/training/data/images/image_list.h"
#include "engine/training/data/images/image_rows.h"

namespace tandem {
namespace {

bool wants(const ArrayNames& names, const char* array) { return !names || names->contains(array); }

std::shared_ptr<const ArraySet> read_split(const ImageFiles& kind, const SplitConfig& split,
                                           const ArrayNames& names, const OpenOptions& options,
                                           std::vector<std::string>& classes,
                                           std::vector<Diagnostic>& errors) {
  const std::size_t before = errors.size();
  const bool with_labels = wants(names, "labels");
  ImageList list = list_images(kind, split, with_labels, classes, errors);
  if (errors.size() > before) return nullptr;
  auto set = std::make_shared<ArraySet>();
  if (wants(names, "images")) {
    auto images = ImageRows::open(kind, list, options, errors);
    if (!images) return nullptr;
    const TensorType sample = images->sample();
    set->add(ArrayRows("images", sample, std::move(images)));
  } else {
    set->leave_out("images");
  }
  if (with_labels) {
    const auto count = static_cast<std::int64_t>(list.labels.size());
    set->add("labels", HostTensor::from<std::int64_t>({count}, list.labels),
             split.files.at(0).paths.at(0), errors);
  } else {
    set->leave_out("labels");
  }
  set->finish(errors);
  return errors.size() == before ? set : nullptr;
}

}  // namespace

ImageSplits read_images(const DataConfig& config, const ArrayNames& names,
                        const OpenOptions& options, std::vector<Diagnostic>& errors) {
  const ImageFiles& kind = *config.images();
  ImageSplits splits;
  splits.classes = options.classes;
  splits.train = read_split(kind, config.train, names, options, splits.classes, errors);
  // Without the classes of the training data nothing can be said of the held-out ones.
  if (!splits.train || config.eval.files.empty()) return splits;
  splits.eval = read_split(kind, config.eval, names, options, splits.classes, errors);
  return splits;
}

SavedVocabulary saved_classes(const std::vector<std::string>& classes) {
  SavedVocabulary saved;
  saved.name = "classes";
  saved.rows = static_cast<std::int64_t>(classes.size());
  saved.file_name = classes_file;
  for (const std::string& name : classes) saved.text += name + "\n";
  saved.sha256 = sha256(saved.text.data(), saved.text.size());
  return saved;
}

std::vector<std::string> classes_in(const std::string& text) {
  std::vector<std::string> classes;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    classes.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return classes;
}

std::vector<std::string> read_classes(const std::string& path) {
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 28;
  std::vector<std::string> classes = classes_in(read_file(path, most_bytes));
  if (classes.empty()) {
    throw Error(ErrorKind::data, Diagnostic{.message = "the file names no class",
                                            .file = path,
                                            .expected = "a line for each class"});
  }
  return classes;
}

}  // namespace tandem
