// Memory of the fake CUDA runtime.
#include "tests/cuda/support/fake_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tandem::testing {
namespace {

constexpr std::size_t alignment = 256;
constexpr std::size_t kept_bytes = std::size_t{16} << 20;  // how much released memory is kept
constexpr std::uint8_t nan_byte = 0xff;
std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::size_t block_bytes(std::size_t bytes) {
  return round_up(std::max<std::size_t>(bytes, 1), alignment) + 2 * BlockList::guard;
}

// Pairs of bytes that are NaN in every floating point type. Each block has its own, so that a
// kernel that copies what it reads past an end writes different bytes past the next one.
std::uint8_t guard_byte(std::uintptr_t start, std::size_t i) {
  return i % 2 == 1 ? nan_byte : static_cast<std::uint8_t>(0x81 + (start >> 8) * 40503 / 256 % 126);
}

void fill_guard(std::uint8_t* at, std::uintptr_t start) {
  for (std::size_t i = 0; i < BlockList::guard; ++i) at[i] = guard_byte(start, i);
}

// The index of the first changed byte; `guard` if none has changed.
std::size_t first_touched(const std::uint8_t* at, std::uintptr_t start) {
  for (std::size_t i = 0; i < BlockList::guard; ++i) {
    if (at[i] != guard_byte(start, i)) return i;
  }
  return BlockList::guard;
}

}  // namespace

void BlockList::add(std::uintptr_t start, std::size_t bytes) {
  std::memset(view(start), nan_byte, bytes);
  fill_guard(view(start) - guard, start);
  // Right after the last byte, so that no write past the end goes unseen.
  fill_guard(view(start) + bytes, start);
  blocks_[start] = {bytes, false};
  live_bytes_ += bytes;
  reported_.erase(start);
}

BlockList::Found BlockList::find(std::uintptr_t address) const {
  auto above = blocks_.upper_bound(address);
  if (above == blocks_.begin()) return {};
  --above;
  const std::size_t extent = std::max<std::size_t>(above->second.bytes, 1);
  if (address - above->first >= extent) return {};
  return {above->first, &above->second};
}

void BlockList::release(std::uintptr_t start) {
  Block& block = blocks_.at(start);
  block.released = true;
  live_bytes_ -= block.bytes;
  std::memset(view(start), nan_byte, block.bytes);
  released_.push_back(start);
  released_bytes_ += block.bytes;
}

std::vector<std::pair<std::uintptr_t, std::size_t>> BlockList::forget_released(std::size_t most) {
  std::vector<std::pair<std::uintptr_t, std::size_t>> gone;
  while (released_bytes_ > most) {
    const std::uintptr_t start = released_.front();
    released_.pop_front();
    const std::size_t bytes = blocks_.at(start).bytes;
    released_bytes_ -= bytes;
    gone.emplace_back(start, bytes);
    blocks_.erase(start);
    reported_.erase(start);
  }
  return gone;
}

void BlockList::check_block(std::uintptr_t start, Block& block, const std::string& whose,
                            std::vector<std::string>& problems) {
  if (reported_.contains(start)) return;
  const std::string text = whose + " block of " + std::to_string(block.bytes) + " bytes";
  const std::size_t before = first_touched(view(start) - guard, start);
  const std::size_t behind = first_touched(view(start) + block.bytes, start);
  std::string problem;
  if (before < guard) {
    problem = "the guard before a " + text + " is overwritten, " + std::to_string(guard - before) +
              " bytes before it";
  } else if (behind < guard) {
    problem = "the guard behind a " + text + " is overwritten, " + std::to_string(behind) +
              " bytes behind its end";
  } else if (block.released) {
    const std::uint8_t* bytes = view(start);
    const std::size_t touched = static_cast<std::size_t>(
        std::find_if(bytes, bytes + block.bytes, [](std::uint8_t b) { return b != nan_byte; }) -
        bytes);
    if (touched < block.bytes)
      problem = "a released " + text + " is written, at byte " + std::to_string(touched);
  }
  if (problem.empty()) return;
  reported_[start] = true;
  problems.push_back(problem);
}

void BlockList::check(const std::string& whose, std::vector<std::string>& problems) {
  for (auto& [start, block] : blocks_) check_block(start, block, whose, problems);
}

GpuMemory::GpuMemory(std::size_t limit, bool protect) : limit_(limit), protect_(protect) {
  window_ = round_up(4 * limit, std::size_t{1} << 20) + (std::size_t{1} << 30);
  file_ = ::memfd_create("fake GPU", MFD_CLOEXEC);
  const auto map = [&](int rights) -> std::uintptr_t {
    void* at = ::mmap(nullptr, window_, rights, MAP_SHARED | MAP_NORESERVE, file_, 0);
    return at == MAP_FAILED ? 0 : reinterpret_cast<std::uintptr_t>(at);
  };
  if (file_ >= 0 && ::ftruncate(file_, static_cast<off_t>(window_)) == 0) {
    device_view_ = map(protect ? PROT_NONE : PROT_READ | PROT_WRITE);
    host_view_ = map(PROT_READ | PROT_WRITE);
  }
  if (device_view_ == 0 || host_view_ == 0) {
    std::perror("the memory of a fake GPU");
    std::abort();
  }
  blocks = BlockList(static_cast<std::ptrdiff_t>(host_view_ - device_view_));
  free_.emplace(0, window_);
}

GpuMemory::~GpuMemory() {
  ::munmap(reinterpret_cast<void*>(device_view_), window_);
  ::munmap(reinterpret_cast<void*>(host_view_), window_);
  ::close(file_);
}

void* GpuMemory::allocate(std::size_t bytes) {
  const std::size_t charged = round_up(bytes, 512);
  if (charged < bytes || charged > limit_ - in_use_) return nullptr;
  const std::size_t wanted = block_bytes(bytes) + alignment;
  const auto range =
      std::find_if(free_.begin(), free_.end(), [&](const auto& r) { return r.second >= wanted; });
  if (range == free_.end()) return nullptr;
  const auto [offset, size] = *range;
  free_.erase(range);
  if (size > wanted) free_.emplace(offset + wanted, size - wanted);
  in_use_ += charged;
  const std::uintptr_t start = device_view_ + offset + BlockList::guard;
  blocks.add(start, bytes);
  return reinterpret_cast<void*>(start);
}

void GpuMemory::release(std::uintptr_t start) {
  in_use_ -= round_up(blocks.find(start).block->bytes, 512);
  blocks.release(start);
  for (const auto& [gone, bytes] : blocks.forget_released(kept_bytes)) {
    std::size_t offset = gone - BlockList::guard - device_view_;
    std::size_t size = block_bytes(bytes) + alignment;
    auto range = free_.emplace(offset, size).first;
    if (const auto next = std::next(range); next != free_.end() && offset + size == next->first) {
      range->second += next->second;
      free_.erase(next);
    }
    if (range == free_.begin()) continue;
    const auto before = std::prev(range);
    if (before->first + before->second != offset) continue;
    before->second += range->second;
    free_.erase(range);
  }
}

void GpuMemory::set_open(bool open) {
  if (!protect_) return;
  ::mprotect(reinterpret_cast<void*>(device_view_), window_,
             open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

PinnedMemory::~PinnedMemory() {
  for (const auto& [start, block] : blocks.blocks())
    std::free(reinterpret_cast<void*>(start - BlockList::guard));
}

void* PinnedMemory::allocate(std::size_t bytes) {
  void* memory = std::aligned_alloc(alignment, block_bytes(bytes) + alignment);
  if (memory == nullptr) return nullptr;
  const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(memory) + BlockList::guard;
  blocks.add(start, bytes);
  return reinterpret_cast<void*>(start);
}

void PinnedMemory::release(std::uintptr_t start) {
  blocks.release(start);
  for (const auto& [gone, bytes] : blocks.forget_released(kept_bytes))
    std::free(reinterpret_cast<void*>(gone - BlockList::guard));
}

}  // namespace tandem::testing
