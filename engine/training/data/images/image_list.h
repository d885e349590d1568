// Which pictures folders hold, in which order, and of which class each one is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "engine/training/config/data_config.h"

namespace tandem {

struct ImageList {
  std::vector<std::string> paths;
  std::vector<std::int64_t> labels;  // one a path; empty where they are not asked for
};

/// The pictures of a split. With labels: folder after folder, and in each class after class as
/// torchvision's ImageFolder has them (sorted by bytes, below sub-folders too), or in the order of
/// the list. Without: all pictures below the folders, sorted; a path may be a picture, too.
///
/// A class is its place in `classes`. Where that is empty it becomes the sorted names of all
/// sub-folders, or of all labels in the lists; labels that are all whole numbers are places
/// themselves. Names that begin with "." are passed over. Reports what is wrong.
ImageList list_images(const ImageFiles& kind, const SplitConfig& split, bool with_labels,
                      std::vector<std::string>& classes, std::vector<Diagnostic>& errors);

/// Pictures below a folder in the order above, relative to it. Throws Error{data} where pictures
/// of formats that are not read lie among them, or folders never end.
std::vector<std::string> images_below(const std::string& folder);
/// Names of the folders in a folder, sorted.
std::vector<std::string> folders_in(const std::string& folder);

}  // namespace tandem
