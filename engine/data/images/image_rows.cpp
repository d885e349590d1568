#include "engine/data/images/image_rows.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>

#include "engine/data/shown_problems.h"
#include "engine/formats/images/image_file.h"
#include "engine/formats/images/resample.h"
#include "engine/formats/parallel_jobs.h"
#include "engine/formats/stage_clock.h"

namespace tandem {
namespace {

// A picture that is decoded at a part of its size is at least this much larger than what is made of
// it, as PIL's `reducing_gap` has it: the filter of the resize still decides how it looks.
constexpr std::int64_t decoding_gap = 2;

std::string size_text(const ImageSize& size) {
  return std::to_string(size.height) + " x " + std::to_string(size.width);
}

/// What looking at all files has found.
struct Looked {
  std::vector<ImageSize> sizes;
  std::vector<std::optional<Diagnostic>> problems;
  std::int64_t bad = 0, with_alpha = 0;
};

Looked look_at_files(const ImageFiles& kind, const std::vector<std::string>& paths,
                     const OpenOptions& options) {
  Looked looked;
  looked.sizes.resize(paths.size());
  looked.problems.resize(paths.size());
  std::atomic<std::int64_t> bad{0}, with_alpha{0};
  const int threads = options.threads > 0 ? options.threads : file_threads();
  const ImageReading whole{.channels = kind.channels};
  parallel_jobs(threads, static_cast<std::int64_t>(paths.size()), [&](std::int64_t job) {
    if (options.stop_requested && options.stop_requested()) {
      throw Error(ErrorKind::runtime, Diagnostic{.message = "stopped while pictures were checked"});
    }
    const auto i = static_cast<std::size_t>(job);
    try {
      thread_local Image image;
      const ImageHeader header = kind.on_bad == OnBad::skip ? read_image(paths[i], whole, image)
                                                            : read_image_header(paths[i]);
      release_large(image.pixels);
      looked.sizes[i] = {header.height, header.width};
      if (header.has_alpha) ++with_alpha;
    } catch (const Error& error) {
      const bool is_of_file = error.kind() == ErrorKind::data || error.kind() == ErrorKind::runtime;
      if (!is_of_file) throw;
      looked.problems[i] = error.diagnostics().at(0);
      ++bad;
    }
  });
  looked.bad = bad;
  looked.with_alpha = with_alpha;
  return looked;
}

void say(const OpenOptions& options, const std::string& text) {
  if (options.on_message) options.on_message("data       " + text);
}

/// Takes files with problems out of the list, and says so.
void leave_bad_out(Looked& looked, ImageList& list, const OpenOptions& options) {
  const std::size_t all = list.paths.size();
  std::size_t kept = 0;
  std::string first;
  for (std::size_t i = 0; i < all; ++i) {
    if (looked.problems[i]) {
      if (first.empty()) first = to_string(*looked.problems[i]);
      if (options.on_bad_pictures) list.left_out.push_back(*std::move(looked.problems[i]));
      continue;
    }
    if (kept != i) list.paths[kept] = std::move(list.paths[i]);
    if (!list.labels.empty()) list.labels[kept] = list.labels[i];
    if (!list.places.empty()) list.places[kept] = list.places[i];
    looked.sizes[kept++] = looked.sizes[i];
  }
  list.paths.resize(kept);
  if (!list.labels.empty()) list.labels.resize(kept);
  if (!list.places.empty()) list.places.resize(kept);
  looked.sizes.resize(kept);
  if (options.on_bad_pictures) return;
  const std::string text =
      left_out_text(looked.bad, std::ssize(looked.problems), first, "pictures");
  if (!are_many_left_out(looked.bad, std::ssize(looked.problems))) return say(options, text);
  list.warnings.push_back(text);
  if (options.on_message) options.on_message("warning    " + text);
}

/// What to do about a picture that cannot be read.
void add_ways_out(Diagnostic& problem) {
  problem.fix += problem.fix.empty() ? "correct the file" : "";
  problem.fix += "; data.on_bad = \"skip\" leaves such pictures out";
}

void report_bad(const Looked& looked, std::vector<Diagnostic>& errors) {
  const std::size_t before = errors.size();
  std::size_t shown = 0;
  for (const std::optional<Diagnostic>& problem : looked.problems) {
    if (!problem || shown == shown_problems) continue;
    errors.push_back(*problem);
    if (shown++ == 0) add_ways_out(errors.back());
  }
  tell_others(errors, before, looked.bad, "pictures");
}

/// The picture, or why it cannot be read and what to do about it.
ImageHeader read_or_explain(const std::string& path, const ImageReading& how, Image& to) {
  try {
    return read_image(path, how, to);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    std::vector<Diagnostic> problems = error.diagnostics();
    add_ways_out(problems.at(0));
    throw Error(ErrorKind::data, std::move(problems));
  }
}

/// Pictures that do not become the size that the first one becomes.
void report_sizes(const ImageFiles& kind, const std::vector<std::string>& paths,
                  const std::vector<ImageSize>& sizes, std::vector<Diagnostic>& errors) {
  const ImageSize wanted = cropped(kind, resized(kind, sizes.at(0)));
  const std::size_t before = errors.size();
  std::int64_t others = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const ImageSize made = resized(kind, sizes[i]), kept = cropped(kind, made);
    const bool is_small = made.height < kept.height || made.width < kept.width;
    if (kept == wanted && !is_small) continue;
    if (++others > static_cast<std::int64_t>(shown_problems)) continue;
    Diagnostic& d = errors.emplace_back();
    d.file = paths[i];
    d.message = is_small ? "the picture is smaller than data.center_crop"
                         : "the picture has another size than " + paths[0];
    d.expected = is_small ? "at least " + size_text(kept) : size_text(wanted);
    d.got = size_text(is_small ? made : kept);
  }
  if (others == 0) return;
  tell_others(errors, before, others, "pictures");
  errors[before].fix =
      "data.resize = [ height, width ] makes them alike, or data.resize_short with "
      "data.center_crop";
}

}  // namespace

ImageSize resized(const ImageFiles& kind, const ImageSize& own) {
  if (!kind.resize.empty()) return {kind.resize[0], kind.resize[1]};
  const std::int64_t side = kind.resize_short;
  if (side == 0) return own;
  if (own.width <= own.height) return {side * own.height / own.width, side};
  return {side, side * own.width / own.height};
}

ImageSize cropped(const ImageFiles& kind, const ImageSize& size) {
  if (kind.center_crop == 0) return size;
  return {kind.center_crop, kind.center_crop};
}

std::int64_t crop_start(std::int64_t extent, std::int64_t kept) {
  return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(extent - kept) / 2));
}

ImageRows::ImageRows(const ImageFiles& kind, std::vector<std::string> paths,
                     std::vector<ImageSize> sizes)
    : kind_(kind),
      paths_(std::move(paths)),
      sizes_(std::move(sizes)),
      size_(cropped(kind_, resized(kind_, sizes_.at(0)))) {}

std::shared_ptr<const ImageRows> ImageRows::open(const ImageFiles& kind, ImageList& list,
                                                 const OpenOptions& options,
                                                 std::vector<Diagnostic>& errors) {
  const std::size_t before = errors.size();
  Looked looked = look_at_files(kind, list.paths, options);
  const bool leaves_out = kind.on_bad == OnBad::skip || options.on_bad_pictures;
  if (looked.bad > 0 && (!leaves_out || looked.bad == std::ssize(list.paths))) {
    report_bad(looked, errors);
    return nullptr;
  }
  if (looked.bad > 0) leave_bad_out(looked, list, options);
  if (looked.with_alpha > 0) {
    say(options, std::to_string(looked.with_alpha) + " of " + std::to_string(list.paths.size()) +
                     " pictures have an alpha channel, which is left out");
  }
  report_sizes(kind, list.paths, looked.sizes, errors);
  if (errors.size() > before) return nullptr;
  return std::shared_ptr<const ImageRows>(new ImageRows(kind, list.paths, std::move(looked.sizes)));
}

TensorType ImageRows::sample() const {
  return {DType::uint8, {kind_.channels, size_.height, size_.width}};
}

void ImageRows::read(std::int64_t index, const ImageSize* resized_to, Image& to) const {
  const InStage decode(LoadStage::decode);
  const auto i = static_cast<std::size_t>(index);
  ImageReading how{.channels = kind_.channels};
  if (resized_to != nullptr && kind_.scaled_decode && *resized_to != sizes_[i]) {
    how.least_height = decoding_gap * resized_to->height;
    how.least_width = decoding_gap * resized_to->width;
  }
  const ImageHeader header = read_or_explain(paths_[i], how, to);
  const ImageSize now{header.height, header.width};
  if (now == sizes_[i]) return;
  refuse_image(paths_[i], "the picture has changed since the data was opened", size_text(sizes_[i]),
               size_text(now));
}

void ImageRows::make(std::int64_t index, void* to) const {
  thread_local Image image;
  thread_local std::vector<std::uint8_t> small;
  const InStage decode(LoadStage::decode);
  const ImageSize made = resized(kind_, sizes_[static_cast<std::size_t>(index)]);
  read(index, &made, image);
  auto* out = static_cast<std::uint8_t*>(to);
  const bool cuts = made != size_;
  const std::uint8_t* from = image.pixels.data();
  if (made.height != image.height || made.width != image.width) {
    const PlanePart whole{image.channels, image.plane(), image.width, 0, 0,
                          image.height,   image.width};
    std::uint8_t* target = out;
    if (cuts) {
      small.resize(static_cast<std::size_t>(image.channels * made.height * made.width));
      target = small.data();
    }
    resample_planes(from, whole, made.height, made.width, target);
    from = target;
  }
  if (!cuts) {
    if (from != out) std::memcpy(out, from, sample().bytes());
    release_large(image.pixels);
    return;
  }
  const std::int64_t top = crop_start(made.height, size_.height);
  const std::int64_t left = crop_start(made.width, size_.width);
  const auto row = static_cast<std::size_t>(size_.width);
  for (std::int64_t c = 0; c < image.channels; ++c) {
    for (std::int64_t y = 0; y < size_.height; ++y, out += row)
      std::memcpy(out, from + (c * made.height + top + y) * made.width + left, row);
  }
  release_large(image.pixels);
  release_large(small);
}

const void* ImageRows::make_whole(std::int64_t index, TensorType& type) const {
  thread_local Image image;
  release_large(image.pixels);
  read(index, nullptr, image);
  type.dtype = DType::uint8;
  type.shape.assign({image.channels, image.height, image.width});
  return image.pixels.data();
}

}  // namespace tandem
