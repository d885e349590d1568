// The committed digits as feeds of a Session.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/formats/arrays/npy.h"
#include "tandem/tandem.h"
#include "tests/harness/folders.h"

namespace tandem::testing {

inline const std::string digits = source_folder() + "/models/digits/";
inline const std::string digits_model = digits + "model.onnx";
inline const std::string cross_entropy =
    R"(loss.terms=[{ name = "loss", kind = "softmax_cross_entropy", logits = "logits", labels = "labels" }])";

/// A train.toml that reads them in their order and logs each step; it has no optimizer and no loss.
inline const std::string digits_in_order = "model = \"" + digits_model + R"toml("
[data]
kind = "npz"
[data.train]
shuffle = "none"
files = [ ")toml" + digits + R"toml(digits_train.npz" ]
[data.fields]
image  = { from = "images", as = [ "scale(1/16)" ] }
labels = "labels"
[log]
every = "1 steps"
)toml";

/// Images (scaled to 0..1) and labels of the committed digits.
struct Digits {
  HostTensor images, labels;
  explicit Digits(const std::string& file) {
    for (const NamedTensor& t : read_npz(digits + file))
      (t.name == "images" ? images : labels) = t.tensor;
    images = images.converted(DType::float32);
    for (float& x : images.as<float>()) x /= 16;
  }
  api::Tensors batch(std::int64_t first, std::int64_t count) const {
    const float* x = images.as<float>().data() + 64 * first;
    const std::int64_t* y = labels.as<std::int64_t>().data() + first;
    return {
        {"image", api::Tensor::copy_of({count, 1, 8, 8}, std::vector<float>(x, x + 64 * count))},
        {"labels", api::Tensor::copy_of({count}, std::vector<std::int64_t>(y, y + count))}};
  }
  api::Tensors image(std::int64_t first, std::int64_t count) const {
    auto feeds = batch(first, count);
    feeds.erase("labels");
    return feeds;
  }
};

inline const Digits& training_digits() {
  static const Digits all("digits_train.npz");
  return all;
}

}  // namespace tandem::testing
