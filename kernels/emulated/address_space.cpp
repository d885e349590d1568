#include "kernels/emulated/address_space.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "engine/graph/align.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

constexpr std::size_t alignment = 64;
const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

[[noreturn]] void system_error(const std::string& device, const char* what) {
  Diagnostic d;
  d.message = "the system gives " + device + " no memory: " + what + ": " + std::strerror(errno);
  d.fix = "set a smaller memory= for this device";
  throw Error(ErrorKind::does_not_fit, std::move(d));
}

}  // namespace

// A range of the window: guard page, data, guard page. Plain blocks end right before the second
// guard; growing ones begin right after the first.
class EmulatedMemory final : public Memory {
 public:
  EmulatedMemory(std::shared_ptr<AddressSpace> space, std::size_t range, std::size_t range_bytes,
                 std::size_t data, std::size_t bytes)
      : space_(std::move(space)),
        range_(range),
        range_bytes_(range_bytes),
        data_(data),
        bytes_(bytes) {}
  ~EmulatedMemory() override {
    space_->return_range(range_, range_bytes_, align_up(bytes_, alignment));
  }

  void* address() override { return reinterpret_cast<void*>(space_->device_view_ + data_); }
  std::size_t bytes() const override { return bytes_; }
  bool grow(std::size_t bytes) override {
    if (bytes <= bytes_) return true;
    const std::size_t opened = align_up(bytes_, page), wanted = align_up(bytes, page);
    if (data_ + wanted > range_ + range_bytes_ - page) return false;
    const std::size_t more = align_up(bytes, alignment) - align_up(bytes_, alignment);
    if (!space_->charge(more)) return false;
    if (wanted > opened && !space_->open(data_ + opened, wanted - opened)) {
      space_->return_range(0, 0, more);
      return false;
    }
    bytes_ = bytes;
    return true;
  }

 private:
  std::shared_ptr<AddressSpace> space_;
  std::size_t range_, range_bytes_;  // guards included
  std::size_t data_;
  std::size_t bytes_;
};

AddressSpace::AddressSpace(std::string device, std::size_t limit)
    : device_(std::move(device)), limit_(limit) {
  // Addresses cost nothing: enough for several reservations of the whole memory, and for guards.
  window_ = align_up(8 * limit, page) + (std::size_t{1} << 30);
  file_ = ::memfd_create(device_.c_str(), MFD_CLOEXEC);
  if (file_ < 0) system_error(device_, "memfd_create");
  auto map = [&]() -> std::uintptr_t {
    void* view = ::mmap(nullptr, window_, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file_, 0);
    return view == MAP_FAILED ? 0 : reinterpret_cast<std::uintptr_t>(view);
  };
  if (::ftruncate(file_, static_cast<off_t>(window_)) == 0) {
    device_view_ = map();
    if (device_view_ != 0) kernel_view_ = map();
  }
  if (kernel_view_ == 0) {
    const int reason = errno;
    if (device_view_ != 0) ::munmap(reinterpret_cast<void*>(device_view_), window_);
    ::close(file_);
    errno = reason;
    system_error(device_, "mapping its address range");
  }
  free_.emplace(0, window_);
}

AddressSpace::~AddressSpace() {
  ::munmap(reinterpret_cast<void*>(device_view_), window_);
  ::munmap(reinterpret_cast<void*>(kernel_view_), window_);
  ::close(file_);
}

void AddressSpace::does_not_fit(std::size_t bytes, const std::string& why) const {
  Diagnostic d;
  d.message = device_ + " has no memory left" + why;
  d.expected = "at most " + std::to_string(limit_) + " bytes";
  d.got = std::to_string(bytes) + " bytes wanted, " + std::to_string(bytes_in_use()) + " in use";
  d.fix = "place less on " + device_ + ", use a smaller batch or more micro-batches";
  throw Error(ErrorKind::does_not_fit, std::move(d));
}

bool AddressSpace::charge(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > limit_ - in_use_) return false;
  in_use_ += bytes;
  peak_ = std::max(peak_, in_use_);
  return true;
}

std::size_t AddressSpace::take_range(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [offset, size] = *range;
    if (size < bytes) continue;
    free_.erase(range);
    if (size > bytes) free_.emplace(offset + bytes, size - bytes);
    return offset;
  }
  return window_;
}

void AddressSpace::return_range(std::size_t offset, std::size_t bytes, std::size_t charged) {
  if (bytes > 0) {  // its pages go back to the system: any later access faults
    ::mprotect(reinterpret_cast<void*>(kernel_view_ + offset), bytes, PROT_NONE);
    ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                static_cast<off_t>(bytes));
  }
  const std::lock_guard lock(mutex_);
  in_use_ -= charged;
  if (bytes == 0) return;
  auto range = free_.emplace(offset, bytes).first;
  const auto next = std::next(range);
  if (next != free_.end() && offset + bytes == next->first) {
    range->second += next->second;
    free_.erase(next);
  }
  if (range == free_.begin()) return;
  const auto before = std::prev(range);
  if (before->first + before->second != offset) return;
  before->second += range->second;
  free_.erase(range);
}

bool AddressSpace::open(std::size_t offset, std::size_t bytes) {
  void* pages = reinterpret_cast<void*>(kernel_view_ + offset);
  // Taken from the system now: a step that found none would be killed.
  if (::fallocate(file_, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0 ||
      ::mprotect(pages, bytes, PROT_READ | PROT_WRITE) != 0)
    return false;
  std::memset(pages, 0xff, bytes);
  return true;
}

std::unique_ptr<Memory> AddressSpace::allocate(std::size_t bytes) {
  const std::size_t charged = align_up(bytes, alignment);
  if (charged < bytes || !charge(charged)) does_not_fit(bytes, "");
  const std::size_t opened = std::max(align_up(charged, page), page);
  const std::size_t range = take_range(opened + 2 * page);
  if (range == window_) {
    return_range(0, 0, charged);
    does_not_fit(bytes, ": its addresses are used up");
  }
  if (!open(range + page, opened)) {
    return_range(range, opened + 2 * page, charged);
    does_not_fit(bytes, ": the system gives none");
  }
  const std::size_t data = range + page + opened - charged;
  return std::make_unique<EmulatedMemory>(shared_from_this(), range, opened + 2 * page, data,
                                          bytes);
}

std::unique_ptr<Memory> AddressSpace::reserve(std::size_t bytes) {
  if (bytes > window_) return nullptr;
  const std::size_t total = align_up(bytes, page) + 2 * page;
  const std::size_t range = take_range(total);
  if (range == window_) return nullptr;
  return std::make_unique<EmulatedMemory>(shared_from_this(), range, total, range + page, 0);
}

std::size_t AddressSpace::bytes_in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

std::size_t AddressSpace::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

}  // namespace tandem
