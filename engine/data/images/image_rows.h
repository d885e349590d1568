// Pictures as rows of one shape: decoded when they are read, resized and cut.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/array_set.h"
#include "engine/data/data_source.h"
#include "engine/data/images/image_list.h"
#include "engine/formats/images/image.h"

namespace tandem {

struct ImageSize {
  std::int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};

/// What `resize` or `resize_short` make of a size: that of torchvision's Resize for PIL's images,
/// whose longer side is short · longer / shorter without its fraction.
ImageSize resized(const ImageFiles& kind, const ImageSize& own);
/// The size after `center_crop`.
ImageSize cropped(const ImageFiles& kind, const ImageSize& size);
/// Index of the first row or column that a crop in the middle keeps: half of the rest, rounded to
/// the even number where it is between two.
std::int64_t crop_start(std::int64_t extent, std::int64_t kept);

/// uint8 [channels, height, width], as `images` of `data.kind = "images"`.
class ImageRows final : public RowMaker {
 public:
  /// Reads the headers of all files, in several threads. Reports pictures that cannot be read or
  /// have other sizes; with `on_bad = "skip"` each is decoded, and those that cannot be read are
  /// taken out of the list, which `options.on_message` reports. With `options.on_bad_pictures`
  /// those with bad headers are taken out, too, and `list.left_out` says why. Null where something
  /// was reported.
  static std::shared_ptr<const ImageRows> open(const ImageFiles& kind, ImageList& list,
                                               const OpenOptions& options,
                                               std::vector<Diagnostic>& errors);

  TensorType sample() const;
  std::int64_t rows() const override { return static_cast<std::int64_t>(paths_.size()); }
  void make(std::int64_t index, void* to) const override;
  const void* make_whole(std::int64_t index, TensorType& type) const override;
  bool may_refuse() const override { return true; }
  std::string file(std::int64_t index) const override {
    return paths_[static_cast<std::size_t>(index)];
  }

 private:
  ImageRows(const ImageFiles& kind, std::vector<std::string> paths, std::vector<ImageSize> sizes);
  /// `resized_to`: what it becomes; JPEGs may be decoded at a part of their size then.
  void read(std::int64_t index, const ImageSize* resized_to, Image& to) const;

  ImageFiles kind_;
  std::vector<std::string> paths_;
  std::vector<ImageSize> sizes_;  // when their headers were read
  ImageSize size_;                // size of every row
};

}  // namespace tandem
