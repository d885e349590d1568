// JPEG by libjpeg-turbo. The library leaves by longjmp where something is wrong, so that no object
// with a destructor lives in the function that calls it.
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include "engine/formats/images/decoders.h"

namespace tandem {
namespace {

// A progressive file may have a scan for a few bytes each, all of which pass over the whole
// picture.
constexpr int most_scans = 500;

/// The library's struct is the first member, so that its callbacks find the rest.
struct JpegErrors {
  jpeg_error_mgr library;
  std::jmp_buf leave;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave_jpeg(j_common_ptr info, const char* message) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  std::snprintf(errors->message, sizeof errors->message, "%s", message);
  std::longjmp(errors->leave, 1);
}

[[noreturn]] void on_jpeg_error(j_common_ptr info) {
  char message[JMSG_LENGTH_MAX];
  info->err->format_message(info, message);
  leave_jpeg(info, message);
}

void on_jpeg_message(j_common_ptr, int) {}  // warnings are about damage that the library corrects

void on_jpeg_progress(j_common_ptr info) {
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  if (decompress->input_scan_number > most_scans) leave_jpeg(info, "it has too many scans");
}

void start_source(j_decompress_ptr) {}

boolean fill_source(j_decompress_ptr info) {
  leave_jpeg(reinterpret_cast<j_common_ptr>(info), "the file is cut off");
}

void skip_source(j_decompress_ptr info, long bytes) {
  if (bytes <= 0) return;
  if (static_cast<std::size_t>(bytes) > info->src->bytes_in_buffer) fill_source(info);
  info->src->next_input_byte += bytes;
  info->src->bytes_in_buffer -= static_cast<std::size_t>(bytes);
}

/// What the caller holds for the function that the library may leave.
struct JpegRun {
  jpeg_decompress_struct info;
  JpegErrors errors;
  jpeg_progress_mgr progress;
  jpeg_source_mgr source;
  const std::uint8_t* bytes;
  std::size_t count;
  Image* to;
  std::uint8_t* row;  // interleaved, of three channels
};

// Functions that call setjmp have no variables of their own, which longjmp might lose.

[[gnu::noinline]] void start_decompression(JpegRun& run, int part) {
  jpeg_create_decompress(&run.info);
  run.progress = {};
  run.progress.progress_monitor = on_jpeg_progress;
  run.info.progress = &run.progress;
  run.source = {};
  run.source.next_input_byte = run.bytes;
  run.source.bytes_in_buffer = run.count;
  run.source.init_source = start_source;
  run.source.fill_input_buffer = fill_source;
  run.source.skip_input_data = skip_source;
  run.source.resync_to_restart = jpeg_resync_to_restart;
  run.source.term_source = start_source;
  run.info.src = &run.source;
  jpeg_read_header(&run.info, TRUE);
  run.info.out_color_space = run.info.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  run.info.scale_num = 1;
  run.info.scale_denom = static_cast<unsigned>(part);
  jpeg_start_decompress(&run.info);
}

/// Reads the header and starts; false where the library left.
bool start_jpeg(JpegRun& run, int part) {
  if (setjmp(run.errors.leave) != 0) return false;
  start_decompression(run, part);
  return true;
}

[[gnu::noinline]] void read_rows_into_planes(JpegRun& run) {
  const std::size_t width = run.info.output_width;
  const std::size_t plane = width * run.info.output_height;
  std::uint8_t* to = run.to->pixels.data();
  const bool is_grey = run.info.output_components == 1;
  while (run.info.output_scanline < run.info.output_height) {
    std::uint8_t* out = to + width * run.info.output_scanline;
    JSAMPROW row = is_grey ? out : run.row;
    jpeg_read_scanlines(&run.info, &row, 1);
    for (std::size_t x = 0; x < width && !is_grey; ++x) {
      out[x] = row[3 * x];
      out[plane + x] = row[3 * x + 1];
      out[2 * plane + x] = row[3 * x + 2];
    }
  }
}

/// Reads all rows into the planes; false where the library left. What follows the last row is not
/// looked at: some files lack the mark of their end.
bool read_jpeg_rows(JpegRun& run) {
  if (setjmp(run.errors.leave) != 0) return false;
  read_rows_into_planes(run);
  return true;
}

/// Gives the library's memory back, whatever happens in between.
class JpegEnd {
 public:
  explicit JpegEnd(JpegRun& run) : run_(run) {}
  ~JpegEnd() { jpeg_destroy_decompress(&run_.info); }
  JpegEnd(const JpegEnd&) = delete;
  JpegEnd& operator=(const JpegEnd&) = delete;

 private:
  JpegRun& run_;
};

}  // namespace

DecoderProblem jpeg_problem() { return {}; }

void decode_jpeg(const ImageBytes& file, int part, Image& to) {
  thread_local std::vector<std::uint8_t> row;
  JpegRun run{};  // all zero, so that its end may come before its start
  run.info.err = jpeg_std_error(&run.errors.library);
  run.errors.library.error_exit = on_jpeg_error;
  run.errors.library.emit_message = on_jpeg_message;
  run.bytes = file.bytes.data();
  run.count = file.bytes.size();
  run.to = &to;
  const JpegEnd end(run);
  const auto refuse = [&] {
    refuse_image(file.path, std::string("a damaged JPEG: ") + run.errors.message);
  };
  if (!start_jpeg(run, part)) refuse();
  const int channels = run.info.output_components;
  if (channels != 1 && channels != 3)
    refuse_image(file.path, "a JPEG of other channels", "1 or 3", std::to_string(channels));
  check_extents(file.path, run.info.output_height, run.info.output_width);
  to.resize(channels, run.info.output_height, run.info.output_width);
  row.resize(std::size_t{3} * run.info.output_width);
  run.row = row.data();
  if (!read_jpeg_rows(run)) refuse();
}

}  // namespace tandem
