#include "importer/file/external_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <optional>

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

 private:
  int fd_;
};

std::vector<std::string> parts_of(const std::string& location) {
  std::vector<std::string> parts(1);
  for (char c : location) {
    if (c == '/') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::optional<std::uint64_t> decimal(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

const ExternalFiles::Mapping& ExternalFiles::open(const std::string& location,
                                                  const std::string& tensor) {
  if (auto known = files_.find(location); known != files_.end()) return known->second;
  const auto bad = [&](std::string message, std::string got = "") {
    refuse(model_, tensor, std::move(message), "a plain file inside the model's folder",
           got.empty() ? "'" + location + "'" : std::move(got));
  };
  if (folder_.empty()) bad("external data of a model without a folder");
  if (location.empty() || location[0] == '/' || location.find('\0') != std::string::npos) {
    bad("bad location of external data");
  }
  const std::vector<std::string> parts = parts_of(location);
  for (const std::string& part : parts) {
    if (part.empty() || part == "." || part == "..") bad("bad location of external data");
  }

  // Part by part and without following links, so that no component can lead outside.
  Descriptor at(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (at.get() < 0) bad("cannot open the model's folder", std::strerror(errno));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int last = i + 1 == parts.size() ? 0 : O_DIRECTORY;
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | last;
    Descriptor next(::openat(at.get(), parts[i].c_str(), flags));
    if (next.get() < 0) {
      const bool link = errno == ELOOP || (errno == ENOTDIR && last != 0);
      bad("cannot open external data '" + location + "'",
          link ? "a symbolic link" : std::strerror(errno));
    }
    at = std::move(next);
  }
  struct stat facts {};
  if (::fstat(at.get(), &facts) != 0) bad("cannot open external data", std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) bad("external data is not a regular file");
  if (facts.st_nlink != 1) bad("external data is a hard link");

  Mapping mapping;
  mapping.size = static_cast<std::size_t>(facts.st_size);
  if (mapping.size > 0) {
    const std::size_t size = mapping.size;
    // Private and writable: whoever changes a tensor changes a copy of its pages, never the file.
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
  if (length && *length != bytes) {
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
