// Folders of pictures whose subfolders are classes, as in torchvision's ImageFolder: such a folder
// itself, or one that contains train/ and val/ (or test/).
#include <algorithm>

#include <fmt/format.h>

#include "api/init/data/data_look.h"
#include "api/init/fields.h"
#include "engine/data/images/image_list.h"
#include "engine/formats/files.h"
#include "engine/formats/images/image_file.h"
#include "engine/graph/error.h"

namespace tandem::api::looks {
namespace {

constexpr std::size_t most_headers = 1000, most_decoded = 32;

bool takes_image(const std::string&) { return false; }  // a single file has no class

bool has_picture(const std::string& folder, int depth) {
  const std::vector<std::string> names = list_directory(folder);
  if (std::any_of(names.begin(), names.end(), names_image)) return true;
  if (depth == 0) return false;
  const std::vector<std::string> folders = folders_in(folder);
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& name) {
    return has_picture(folder + "/" + name, depth - 1);
  });
}

/// Whether subfolders contain pictures.
bool has_classes(const std::string& folder) {
  const std::vector<std::string> folders = folders_in(folder);
  return std::any_of(folders.begin(), folders.end(),
                     [&](const std::string& name) { return has_picture(folder + "/" + name, 2); });
}

/// The folders that contain the classes of a split.
struct ImageFolders {
  std::vector<std::string> train, eval;
};

ImageFolders split_folder(const std::string& path) {
  ImageFolders found;
  for (const std::string& name : folders_in(path)) {
    const bool held_out = names_held_out(name), training = names_training(name);
    if (held_out == training || !has_classes(path + "/" + name)) continue;
    (training ? found.train : found.eval).push_back(path + "/" + name);
  }
  // val/ comes before test/, because choices are made by validation data.
  std::stable_partition(found.eval.begin(), found.eval.end(), [](const std::string& folder) {
    return folder.substr(folder.rfind('/')).find("val") != std::string::npos;
  });
  if (found.train.empty()) return {{path}, {}};
  return found;
}

bool takes_folder(const std::string& path) {
  return has_classes(path) || !split_folder(path).eval.empty();
}

/// At most `most` indices, spread over all.
std::vector<std::size_t> spread(std::size_t all, std::size_t most) {
  std::vector<std::size_t> indices;
  const std::size_t count = std::min(all, most);
  for (std::size_t i = 0; i < count; ++i) indices.push_back(i * all / count);
  return indices;
}

void add_images(const ImageList& list, DataFacts& facts) {
  ArrayFacts& images = facts.arrays.emplace_back();
  images.name = "images";
  images.rows = static_cast<std::int64_t>(list.paths.size());
  ImageHeader first;
  bool has_colour = false;
  for (const std::size_t i : spread(list.paths.size(), most_headers)) {
    const ImageHeader header = read_image_header(list.paths[i]);
    if (first.height == 0) first = header;
    has_colour |= header.has_colour;
    facts.sizes_vary |= header.height != first.height || header.width != first.width;
  }
  const int channels = has_colour ? 3 : 1;
  images.sample = {DType::uint8, {channels, first.height, first.width}};
  Image image;
  for (const std::size_t i : spread(list.paths.size(), most_decoded)) {
    read_image(list.paths[i], {.channels = channels}, image);
    for (const std::uint8_t pixel : image.pixels) images.numbers.add(pixel);
  }
}

void look_at_images(const SplitPaths& paths, DataFacts& facts) {
  ImageFolders folders = split_folder(paths.train.at(0));
  if (!paths.eval.empty()) folders.eval.insert(folders.eval.begin(), paths.eval[0]);
  facts.train = {{"", folders.train, {}}};
  if (!folders.eval.empty()) facts.eval = {{"", {folders.eval[0]}, {}}};
  for (std::size_t i = 1; i < folders.eval.size(); ++i)
    facts.notes.push_back(folders.eval[i] + " is not used");
  std::vector<std::string> classes;
  std::vector<Diagnostic> errors;
  const ImageList list = list_images({}, {facts.train}, true, classes, errors);
  if (!errors.empty()) throw Error(ErrorKind::data, std::move(errors));
  add_images(list, facts);
  ArrayFacts& labels = facts.arrays.emplace_back();
  labels.name = "labels";
  labels.sample = {DType::int64, {}};
  labels.rows = static_cast<std::int64_t>(list.labels.size());
  for (const std::int64_t label : list.labels) labels.numbers.add(static_cast<double>(label));
  facts.notes.push_back(fmt::format("{} classes, by the names of sub-folders", classes.size()));
}

/// Pictures get the size of the model's only input of that form.
void fit_images(const std::vector<InputFacts>& inputs, DataFacts& facts) {
  ArrayFacts& images = facts.arrays.at(0);
  const auto takes_pictures = [](const InputFacts& input) {
    const Shape& shape = input.sample.shape;
    return shape.size() == 3 && (shape[0] == 1 || shape[0] == 3 || shape[0] < 0);
  };
  const auto found = std::find_if(inputs.begin(), inputs.end(), takes_pictures);
  const bool is_one = std::count_if(inputs.begin(), inputs.end(), takes_pictures) == 1;
  Shape& own = images.sample.shape;
  if (is_one && found->sample.shape[0] > 0) own[0] = found->sample.shape[0];
  if (own[0] == 1) facts.keys.push_back({"channels", "1", "grey pictures", ""});
  if (is_one && found->sample.shape[1] > 0 && found->sample.shape[2] > 0) {
    const std::int64_t height = found->sample.shape[1], width = found->sample.shape[2];
    if (!facts.sizes_vary && own[1] == height && own[2] == width) return;
    if (height == width) {
      // 256 for 224, as in torchvision's usual evaluation.
      facts.keys.push_back({"resize_short", std::to_string((height * 8 + 3) / 7),
                            "the model's size, plus a border of an eighth that is cut off", ""});
      facts.keys.push_back({"center_crop", std::to_string(height), "", ""});
    } else {
      facts.keys.push_back({"resize", fmt::format("[ {}, {} ]", height, width),
                            "the size that the model takes", ""});
    }
    own[1] = height, own[2] = width;
  } else if (facts.sizes_vary) {
    facts.keys.push_back({"resize", "[ 224, 224 ]", "", "the pictures differ in size"});
  }
}

}  // namespace

DataLook images() {
  return {.kind = "images",
          .takes = takes_image,
          .look = look_at_images,
          .takes_folder = takes_folder,
          .fit = fit_images};
}

}  // namespace tandem::api::looks
