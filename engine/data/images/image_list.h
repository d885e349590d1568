// Finds the pictures in folders, their order, and the class of each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/config/data_config.h"
#include "engine/graph/error.h"

namespace tandem {

/// Where a label is written: which of `ImageList::lists`, and its line there, from 1.
struct LabelPlace {
  std::size_t list = 0;
  std::int64_t line = 0;
};

struct ImageList {
  std::vector<std::string> paths;
  std::vector<std::int64_t> labels;  // one a path; empty where they are not asked for
  std::vector<std::string> lists;    // files that labels were read from
  std::vector<LabelPlace> places;    // one a label; empty where folders are classes
  std::vector<Diagnostic> left_out;  // about pictures that are not in the list any more
  std::vector<std::string> warnings;
};

/// The pictures of a split. With labels: folder after folder, and in each class after class as
/// torchvision's ImageFolder has them (sorted by bytes, below sub-folders too), or in the order of
/// the list. Without: all pictures below the folders, sorted; a path may be a picture, too.
///
/// A class is its index in `classes`. Where that is empty it becomes the sorted names of all
/// sub-folders, or of all labels in the lists; labels that are all whole numbers are indices
/// themselves, and none of them may be negative. Names that begin with "." are skipped. Reports
/// what is wrong.
ImageList list_images(const ImageFiles& kind, const SplitConfig& split, bool with_labels,
                      std::vector<std::string>& classes, std::vector<Diagnostic>& errors);

/// Pictures below a folder in the order above, relative to it. Throws Error{data} where there are
/// also pictures of formats that are not read, or where folders never end.
std::vector<std::string> images_below(const std::string& folder);
/// Names of the folders in a folder, sorted.
std::vector<std::string> folders_in(const std::string& folder);

}  // namespace tandem
