// PNG by libpng. The library leaves by longjmp where something is wrong, so that no object with a
// destructor lives in the functions that call it.
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <png.h>

#include "engine/formats/images/decoders.h"

namespace tandem {
namespace {

/// One decompression: what the library's callbacks get, and what the caller holds for functions
/// that the library may leave.
struct PngRun {
  png_structp png;
  png_infop info;
  const std::uint8_t* bytes;
  std::size_t left;
  char message[128];
  int passes;
  std::uint8_t* rows;  // interleaved: height rows of row_bytes
  std::size_t row_bytes, height;
};

[[noreturn]] void on_png_error(png_structp png, png_const_charp message) {
  auto* run = static_cast<PngRun*>(png_get_error_ptr(png));
  std::snprintf(run->message, sizeof run->message, "%s", message);
  png_longjmp(png, 1);
}
void on_png_warning(png_structp, png_const_charp) {}

void give_png_bytes(png_structp png, png_bytep to, std::size_t bytes) {
  auto* run = static_cast<PngRun*>(png_get_io_ptr(png));
  if (bytes > run->left) png_error(png, "the file is cut off");
  std::memcpy(to, run->bytes, bytes);
  run->bytes += bytes;
  run->left -= bytes;
}

/// Chunks that say nothing about the pixels. Texts and profiles are packed, and may unpack to any
/// size.
constexpr std::uint8_t passed_over[] =
    "iCCP\0iTXt\0zTXt\0tEXt\0eXIf\0sPLT\0hIST\0tIME\0pHYs\0oFFs\0pCAL\0sCAL\0gAMA\0cHRM\0sRGB\0bKG"
    "D";

// Functions that call setjmp have no variables of their own, which longjmp might lose.

[[gnu::noinline]] void read_png_head(PngRun& run) {
  png_set_read_fn(run.png, &run, give_png_bytes);
  png_set_user_limits(run.png, 0x7fffffff, 0x7fffffff);  // pixels were counted before
  png_set_keep_unknown_chunks(run.png, PNG_HANDLE_CHUNK_NEVER, passed_over, 16);
  png_set_crc_action(run.png, PNG_CRC_ERROR_QUIT, PNG_CRC_WARN_DISCARD);
  png_read_info(run.png, run.info);
  const int type = png_get_color_type(run.png, run.info);
  const int depth = png_get_bit_depth(run.png, run.info);
  if (depth == 16) png_set_strip_16(run.png);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(run.png);
  if (type == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(run.png);
  png_set_strip_alpha(run.png);
  run.passes = png_set_interlace_handling(run.png);
  png_read_update_info(run.png, run.info);
  run.row_bytes = png_get_rowbytes(run.png, run.info);
  run.height = png_get_image_height(run.png, run.info);
}

/// Reads what comes before the pixels; false where the library left.
bool start_png(PngRun& run) {
  if (setjmp(png_jmpbuf(run.png)) != 0) return false;
  read_png_head(run);
  return true;
}

[[gnu::noinline]] void read_all_passes(PngRun& run) {
  for (int pass = 0; pass < run.passes; ++pass) {
    for (std::size_t y = 0; y < run.height; ++y)
      png_read_row(run.png, run.rows + y * run.row_bytes, nullptr);
  }
}

/// Reads all rows; false where the library left.
bool read_png_rows(PngRun& run) {
  if (setjmp(png_jmpbuf(run.png)) != 0) return false;
  read_all_passes(run);
  return true;
}

/// Gives the library's memory back, whatever happens in between.
class PngEnd {
 public:
  explicit PngEnd(PngRun& run) : run_(run) {}
  ~PngEnd() { png_destroy_read_struct(&run_.png, &run_.info, nullptr); }
  PngEnd(const PngEnd&) = delete;
  PngEnd& operator=(const PngEnd&) = delete;

 private:
  PngRun& run_;
};

}  // namespace

DecoderProblem png_problem() { return {}; }

void decode_png(const ImageBytes& file, Image& to) {
  thread_local std::vector<std::uint8_t> rows;
  PngRun run{};
  run.bytes = file.bytes.data();
  run.left = file.bytes.size();
  run.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &run, on_png_error, on_png_warning);
  const PngEnd end(run);
  if (run.png != nullptr) run.info = png_create_info_struct(run.png);
  if (run.info == nullptr) {
    throw Error(ErrorKind::runtime,
                Diagnostic{.message = "libpng cannot be used", .file = file.path});
  }
  const auto refuse = [&] {
    refuse_image(file.path, std::string("a damaged PNG: ") + run.message);
  };
  if (!start_png(run)) refuse();
  const std::size_t width = png_get_image_width(run.png, run.info);
  const std::size_t channels = png_get_channels(run.png, run.info);
  check_extents(file.path, run.height, width);
  if ((channels != 1 && channels != 3) || run.row_bytes != channels * width)
    refuse_image(file.path, "a PNG of other channels", "1 or 3", std::to_string(channels));
  rows.resize(run.row_bytes * run.height);
  to.resize(static_cast<std::int64_t>(channels), static_cast<std::int64_t>(run.height),
            static_cast<std::int64_t>(width));
  // A grey picture has one plane, which is what the library writes.
  run.rows = channels == 1 ? to.pixels.data() : rows.data();
  if (!read_png_rows(run)) refuse();
  if (channels == 1) return;
  const std::size_t plane = width * run.height;
  for (std::size_t i = 0; i < plane; ++i) {
    to.pixels[i] = rows[3 * i];
    to.pixels[plane + i] = rows[3 * i + 1];
    to.pixels[2 * plane + i] = rows[3 * i + 2];
  }
  release_large(rows);
}

}  // namespace tandem
