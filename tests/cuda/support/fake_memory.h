// Memory of the fake CUDA runtime: guards around every block, NaN in fresh and in released bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace tandem::testing {

/// Blocks by address; addresses inside a block find it too. Released blocks are kept for a while
/// and filled, so that later uses are found.
class BlockList {
 public:
  static constexpr std::size_t guard = 256;
  struct Block {
    std::size_t bytes = 0;
    bool released = false;
  };
  struct Found {
    std::uintptr_t start = 0;
    const Block* block = nullptr;  // null: no block contains the address
  };

  /// `delta`: what is added to an address to get the one where the host accesses it.
  explicit BlockList(std::ptrdiff_t delta = 0) : delta_(delta) {}
  /// Takes over the bytes at `start` and the guards around them; fills both.
  void add(std::uintptr_t start, std::size_t bytes);
  Found find(std::uintptr_t address) const;
  /// Fills the block and keeps it. The caller has checked that it is not released.
  void release(std::uintptr_t start);
  /// Removes the oldest released blocks until at most `most` bytes of them are kept; returns those.
  std::vector<std::pair<std::uintptr_t, std::size_t>> forget_released(std::size_t most);
  /// Reports writes to guards and to released blocks, each block once.
  void check(const std::string& whose, std::vector<std::string>& problems);
  const std::map<std::uintptr_t, Block>& blocks() const { return blocks_; }
  std::size_t live_bytes() const { return live_bytes_; }

 private:
  std::uint8_t* view(std::uintptr_t address) const {
    return reinterpret_cast<std::uint8_t*>(address + static_cast<std::uintptr_t>(delta_));
  }
  void check_block(std::uintptr_t start, Block& block, const std::string& whose,
                   std::vector<std::string>& problems);

  std::ptrdiff_t delta_;
  std::map<std::uintptr_t, Block> blocks_;
  std::deque<std::uintptr_t> released_;
  std::size_t released_bytes_ = 0, live_bytes_ = 0;
  std::map<std::uintptr_t, bool> reported_;
};

/// The memory of a GPU: a window of addresses, mapped twice. One view has the addresses that
/// everybody uses and is accessible while kernels run; the other is for copies and tests.
class GpuMemory {
 public:
  GpuMemory(std::size_t limit, bool protect);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  bool contains(std::uintptr_t address) const {
    return address >= device_view_ && address - device_view_ < window_;
  }
  void* host_view(std::uintptr_t address) const {
    return reinterpret_cast<void*>(address - device_view_ + host_view_);
  }
  std::size_t limit() const { return limit_; }
  std::size_t in_use() const { return in_use_; }
  void* allocate(std::size_t bytes);  // null if there is no room
  void release(std::uintptr_t start);
  void set_open(bool open);
  BlockList blocks;

 private:
  std::size_t limit_, in_use_ = 0, window_ = 0;
  bool protect_;
  int file_ = -1;
  std::uintptr_t device_view_ = 0, host_view_ = 0;
  std::map<std::size_t, std::size_t> free_;  // offset → bytes
};

class PinnedMemory {
 public:
  ~PinnedMemory();
  void* allocate(std::size_t bytes);
  void release(std::uintptr_t start);
  BlockList blocks;
};

}  // namespace tandem::testing
