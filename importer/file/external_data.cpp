#include "importer/file/external_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "importer/file/onnx_content.h"

namespace tandem::importer {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// A location without what leads nowhere, such as "." and "in/.."; nothing where it leads out of
/// its folder.
std::optional<std::filesystem::path> inside_a_folder(const std::string& location) {
  if (location.empty() || location[0] == '/' || location.find('\0') != std::string::npos)
    return std::nullopt;
  std::filesystem::path result;
  for (const auto& part : std::filesystem::path(location).lexically_normal()) {
    if (part == "..") return std::nullopt;
    if (!part.empty() && part != ".") result /= part;
  }
  return result.empty() ? std::nullopt : std::optional(result);
}

/// Part by part and without following links, so that no component can lead outside: the descriptor,
/// or -1 and errno (ELOOP: a link).
int open_below(const std::filesystem::path& folder, const std::filesystem::path& relative) {
  Descriptor at(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (auto part = relative.begin(); at.get() >= 0 && part != relative.end(); ++part) {
    const int last = std::next(part) == relative.end() ? 0 : O_DIRECTORY;
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | last;
    Descriptor next(::openat(at.get(), part->c_str(), flags));
    if (next.get() < 0 && errno == ENOTDIR) {
      struct stat facts {};
      const bool is_link = ::fstatat(at.get(), part->c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
                           S_ISLNK(facts.st_mode);
      errno = is_link ? ELOOP : ENOTDIR;
    }
    at = std::move(next);
  }
  return at.release();
}

std::optional<std::uint64_t> decimal(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

// Links are resolved, and what they lead to is opened below a folder that is allowed: the model's
// own, or the one of its real file. A hub's cache has both files as links into one folder.
int ExternalFiles::find(const std::filesystem::path& relative, const std::string& tensor) const {
  const int plain = open_below(folder_, relative);
  if (plain >= 0 || (errno != ELOOP && errno != ENOENT)) return plain;
  const bool is_link = errno == ELOOP;
  std::error_code failed;
  std::vector<std::filesystem::path> allowed;
  for (const std::filesystem::path& folder :
       {folder_, std::filesystem::canonical(model_, failed).parent_path()}) {
    const std::filesystem::path real = std::filesystem::canonical(folder, failed);
    if (!failed) allowed.push_back(real);
  }
  if (!is_link) {
    const int beside = allowed.size() < 2 ? -1 : open_below(allowed[1], relative);
    if (beside < 0) errno = ENOENT;
    return beside;
  }
  const std::filesystem::path real = std::filesystem::canonical(folder_ / relative, failed);
  if (failed) {
    errno = failed.value();
    return -1;
  }
  for (const std::filesystem::path& folder : allowed) {
    const std::filesystem::path below = real.lexically_relative(folder);
    if (!below.empty() && *below.begin() != "..") return open_below(folder, below);
  }
  refuse(model_, tensor, "external data '" + relative.string() + "' is a link out of the folder",
         "a file in the model's folder, or in the one of the file that the model is a link to",
         real.string(),
         "copy the model with what its links lead to (cp -rL FOLDER COPY; hf download --local-dir "
         "COPY)");
}

const ExternalFiles::Mapping& ExternalFiles::open(const std::string& location,
                                                  const std::string& tensor) {
  if (auto known = files_.find(location); known != files_.end()) return known->second;
  const auto bad = [&](std::string message, std::string got = "") {
    refuse(model_, tensor, std::move(message), "a plain file inside the model's folder",
           got.empty() ? "'" + location + "'" : std::move(got));
  };
  if (folder_.empty()) bad("external data of a model without a folder");
  const std::optional<std::filesystem::path> relative = inside_a_folder(location);
  if (!relative) bad("bad location of external data");
  const Descriptor at(find(*relative, tensor));
  if (at.get() < 0) bad("cannot open external data '" + location + "'", std::strerror(errno));
  struct stat facts {};
  if (::fstat(at.get(), &facts) != 0) bad("cannot open external data", std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) bad("external data is not a regular file");
  if (facts.st_nlink != 1) {
    refuse(model_, tensor, "external data is a hard link", "a file of its own",
           "'" + location + "'", "copy the model's folder (cp -r FOLDER COPY)");
  }

  Mapping mapping;
  mapping.size = static_cast<std::size_t>(facts.st_size);
  if (mapping.size > 0) {
    const std::size_t size = mapping.size;
    // Private and writable: changing a tensor changes a copy of its pages, never the file.
    void* memory =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, at.get(), 0);
    if (memory == MAP_FAILED) bad("cannot map external data", std::strerror(errno));
    mapping.memory = std::shared_ptr<void>(memory, [size](void* p) { ::munmap(p, size); });
  }
  return files_.emplace(location, std::move(mapping)).first->second;
}

HostTensor ExternalFiles::read(const onnx::TensorProto& tensor, const TensorType& type) {
  std::string location;
  std::optional<std::uint64_t> offset = 0, length;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() != "offset" && entry.key() != "length") continue;
    const auto number = decimal(entry.value());
    if (!number) {
      refuse(model_, tensor.name(), entry.key() + " of external data", "a decimal number",
             "'" + entry.value() + "'");
    }
    (entry.key() == "offset" ? offset : length) = number;
  }
  const Mapping& file = open(location, tensor.name());
  const std::uint64_t bytes = type.bytes();
  // Some writers say 0 where they mean all of it.
  if (length && *length != bytes && *length != 0) {
    refuse(model_, tensor.name(), "length of external data",
           fmt::format("{} bytes for {}", bytes, to_string(type)), std::to_string(*length));
  }
  if (*offset > file.size || bytes > file.size - *offset) {
    refuse(model_, tensor.name(), "external data ends before the tensor does",
           fmt::format("{} bytes from byte {}", bytes, *offset),
           fmt::format("a file of {} bytes ('{}')", file.size, location));
  }
  if (bytes == 0) return HostTensor(type);
  char* data = static_cast<char*>(file.memory.get()) + *offset;
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % size_of(type.dtype) == 0;
  if (aligned && type.dtype != DType::boolean) return HostTensor(type, data, file.memory);
  HostTensor copy(type);
  std::memcpy(copy.data(), data, bytes);
  return copy;
}

}  // namespace tandem::importer
