// Memory of an emulated device: one file in memory, mapped twice at a fixed distance. Addresses
// outside the kernels are in the device view, which cannot be dereferenced; kernels use the other
// view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "engine/device/device.h"

namespace tandem {

class AddressSpace : public std::enable_shared_from_this<AddressSpace> {
 public:
  AddressSpace(std::string device, std::size_t limit);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  /// Filled with bytes 0xFF (NaN in every floating point type) and followed by an inaccessible
  /// page; so is, but for the rounding up to a page, what is before it. Throws Error{does_not_fit}.
  std::unique_ptr<Memory> allocate(std::size_t bytes);
  /// As `Device::reserve`; null where no addresses are left.
  std::unique_ptr<Memory> reserve(std::size_t bytes);

  bool contains(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= device_view_ && at - device_view_ < window_;
  }
  /// The address of the same byte in the kernels' view.
  void* kernel_view(const void* address) const {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) - device_view_ +
                                   kernel_view_);
  }

  std::size_t limit() const { return limit_; }
  std::size_t bytes_in_use() const;
  std::size_t peak_bytes() const;

 private:
  friend class EmulatedMemory;

  [[noreturn]] void does_not_fit(std::size_t bytes, const std::string& why) const;
  /// Counts `bytes` as used; false where they exceed the limit.
  bool charge(std::size_t bytes);
  /// A range of whole pages in the window, guard pages included; window_ where there is none.
  std::size_t take_range(std::size_t bytes);
  void return_range(std::size_t offset, std::size_t bytes, std::size_t charged);
  /// Opens whole pages to the kernels and fills them.
  bool open(std::size_t offset, std::size_t bytes);

  const std::string device_;
  const std::size_t limit_;
  std::size_t window_ = 0;
  int file_ = -1;
  std::uintptr_t device_view_ = 0, kernel_view_ = 0;

  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;  // offset → bytes
  std::size_t in_use_ = 0, peak_ = 0;
};

}  // namespace tandem
