#include "engine/train/updates/filled_tensor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "engine/graph/align.h"
#include "engine/graph/host_memory.h"

namespace tandem {
namespace {

constexpr std::size_t repeated_from = std::size_t{128} << 20;
constexpr std::size_t piece = std::size_t{64} << 20;

[[noreturn]] void no_memory() {
  fail_without_memory({.message = "the host has no memory left for a filled tensor",
                       .fix = "give tables fewer rows: parameters.shape = [ { at = "
                              "\"TABLE\", rows = 100000 } ]"});
}

// A file in memory that lives as long as something maps it.
class MemoryFile {
 public:
  explicit MemoryFile(std::size_t bytes) : handle_(memfd_create("filled_tensor", MFD_CLOEXEC)) {
    if (handle_ < 0 || ftruncate(handle_, static_cast<off_t>(bytes)) != 0) {
      close();
      no_memory();
    }
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(); }
  int handle() const { return handle_; }

 private:
  void close() {
    if (handle_ >= 0) ::close(handle_);
  }
  int handle_;
};

void* mapped(void* at, std::size_t bytes, int protection, int flags, int handle) {
  void* address = mmap(at, bytes, protection, flags, handle, 0);
  if (address == MAP_FAILED) no_memory();
  return address;
}

}  // namespace

HostTensor filled_tensor(Shape shape, float value) {
  TensorType type{DType::float32, std::move(shape)};
  const std::size_t bytes = type.bytes();
  if (bytes < repeated_from) {
    HostTensor tensor(type);
    std::ranges::fill(tensor.as<float>(), value);
    return tensor;
  }
  const MemoryFile file(piece);
  void* first = mapped(nullptr, piece, PROT_READ | PROT_WRITE, MAP_SHARED, file.handle());
  std::fill_n(static_cast<float*>(first), piece / sizeof(float), value);
  munmap(first, piece);
  const std::size_t size = align_up(bytes, piece);
  void* data = mapped(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  const std::shared_ptr<void> owner(data, [size](void* at) { munmap(at, size); });
  for (std::size_t at = 0; at < size; at += piece) {
    mapped(static_cast<char*>(data) + at, piece, PROT_READ, MAP_SHARED | MAP_FIXED, file.handle());
  }
  return HostTensor(std::move(type), data, owner);
}

}  // namespace tandem
