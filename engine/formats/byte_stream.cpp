#include "engine/formats/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/formats/stage_clock.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

[[noreturn]] void fail(const char* doing, const std::string& path, int error) {
  throw Error(ErrorKind::runtime,
              Diagnostic{.message = std::string("cannot ") + doing + ": " + std::strerror(error),
                         .file = path});
}

}  // namespace

std::size_t read_fully(ByteStream& from, void* to, std::size_t bytes) {
  std::size_t made = 0;
  while (made < bytes) {
    const std::size_t got = from.read(static_cast<char*>(to) + made, bytes - made);
    if (got == 0) break;
    made += got;
  }
  return made;
}

InputFile::InputFile(std::string path)
    : path_(std::move(path)),
      descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) fail("open", path_, errno);
  struct stat status {};
  int error = ::fstat(descriptor_, &status) != 0 ? errno : 0;
  if (error == 0 && !S_ISREG(status.st_mode)) error = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
  if (error != 0) {
    ::close(descriptor_);
    fail("read", path_, error);
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

std::size_t InputFile::read_at(std::uint64_t offset, void* to, std::size_t bytes) const {
  const InStage reading(LoadStage::read);
  std::size_t made = 0;
  while (made < bytes) {
    const ssize_t got = ::pread(descriptor_, static_cast<char*>(to) + made, bytes - made,
                                static_cast<off_t>(offset + made));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path_, errno);
    if (got == 0) break;
    made += static_cast<std::size_t>(got);
  }
  return made;
}

std::size_t FileRange::read(void* to, std::size_t bytes) {
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, left_));
  const std::size_t got = file_.read_at(at_, to, wanted);
  at_ += got;
  left_ -= got;
  return got;
}

}  // namespace tandem
