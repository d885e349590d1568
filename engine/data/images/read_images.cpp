#include "engine/data/images/read_images.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/data/images/image_list.h"
#include "engine/data/images/image_rows.h"
#include "engine/formats/files.h"
#include "engine/formats/sha256.h"

namespace tandem {
namespace {

bool wants(const ArrayNames& names, const char* array) { return !names || names->contains(array); }

/// Numbers of classes, which know where they are from: the line of a list, or the picture in the
/// folder of its class.
class LabelRows final : public RowMaker {
 public:
  /// `images`: those of the same list; null where they are not read.
  LabelRows(ImageList list, std::shared_ptr<const ImageRows> images)
      : list_(std::move(list)), images_(std::move(images)) {
    if (images_ == nullptr && list_.places.empty()) return;
    list_.paths.clear();  // others know the places
    list_.paths.shrink_to_fit();
  }

  std::int64_t rows() const override { return static_cast<std::int64_t>(list_.labels.size()); }
  void make(std::int64_t index, void* to) const override {
    std::memcpy(to, &list_.labels[static_cast<std::size_t>(index)], sizeof(std::int64_t));
  }
  const void* make_whole(std::int64_t, TensorType&) const override { return nullptr; }
  std::string file(std::int64_t index) const override {
    const auto i = static_cast<std::size_t>(index);
    if (!list_.places.empty()) return list_.lists[list_.places[i].list];
    return images_ != nullptr ? images_->file(index) : list_.paths[i];
  }
  std::int64_t row_in_file(std::int64_t index) const override {
    return list_.places.empty() ? 0 : list_.places[static_cast<std::size_t>(index)].line;
  }

 private:
  ImageList list_;
  std::shared_ptr<const ImageRows> images_;
};

std::shared_ptr<const ArraySet> read_split(const ImageFiles& kind, const SplitConfig& split,
                                           const ArrayNames& names, const OpenOptions& options,
                                           ImageSplits& splits, bool held_out,
                                           std::vector<Diagnostic>& errors) {
  const std::size_t before = errors.size();
  const bool with_labels = wants(names, "labels");
  ImageList list = list_images(kind, split, with_labels, splits.classes, errors);
  if (errors.size() > before) return nullptr;
  auto set = std::make_shared<ArraySet>();
  std::shared_ptr<const ImageRows> images;
  if (wants(names, "images")) {
    images = ImageRows::open(kind, list, options, errors);
    if (options.on_bad_pictures && !list.left_out.empty())
      options.on_bad_pictures(held_out, std::move(list.left_out));
    for (const std::string& warning : list.warnings)
      splits.warnings.push_back((held_out ? "held-out data: " : "training data: ") + warning);
    if (!images) return nullptr;
    set->add(ArrayRows("images", images->sample(), images));
  } else {
    set->leave_out("images");
  }
  if (with_labels) {
    set->add(ArrayRows("labels", {DType::int64, {}},
                       std::make_shared<LabelRows>(std::move(list), images)));
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
  splits.train = read_split(kind, config.train, names, options, splits, false, errors);
  // Without the classes of the training data the held-out ones cannot be checked.
  if (!splits.train || config.eval.files.empty()) return splits;
  splits.eval = read_split(kind, config.eval, names, options, splits, true, errors);
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
