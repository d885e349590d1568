#include "kernels/cpu/cpu_device.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "engine/graph/align.h"
#include "engine/graph/host_memory.h"
#include "kernels/cpu/collective_stream.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/threads/onednn_regions.h"

namespace tandem {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t small_block = std::size_t{1} << 20;  // below: from the heap

[[noreturn]] void no_memory(std::size_t bytes) {
  fail_without_memory({.message = "the host has no memory left",
                       .got = std::to_string(bytes) + " bytes more",
                       .fix = "use a smaller batch or more micro-batches"});
}

class HeapMemory final : public Memory {
 public:
  explicit HeapMemory(std::size_t bytes)
      : address_(std::aligned_alloc(64, std::max<std::size_t>(align_up(bytes, 64), 64))),
        bytes_(bytes) {
    if (address_ == nullptr) no_memory(bytes);
    std::memset(address_, 0, align_up(bytes, 64));
  }
  ~HeapMemory() override { std::free(address_); }
  void* address() override { return address_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  void* address_;
  std::size_t bytes_;
};

// Pages of its own, huge where the system offers them; reserved ranges hold nothing until they
// grow.
class MappedMemory final : public Memory {
 public:
  MappedMemory(std::size_t bytes, bool reserve_only)
      : reserved_(align_up(bytes, huge_page) + huge_page) {
    const int protection = reserve_only ? PROT_NONE : PROT_READ | PROT_WRITE;
    mapping_ =
        ::mmap(nullptr, reserved_, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping_ == MAP_FAILED) {
      if (!reserve_only) no_memory(bytes);
      mapping_ = nullptr;
      return;
    }
    const auto start = align_up(reinterpret_cast<std::uintptr_t>(mapping_), huge_page);
    address_ = reinterpret_cast<void*>(start);
    capacity_ = align_up(bytes, huge_page);
    if (!reserve_only) {
      bytes_ = bytes;
      ::madvise(address_, capacity_, MADV_HUGEPAGE);
    }
  }
  ~MappedMemory() override {
    if (mapping_ != nullptr) ::munmap(mapping_, reserved_);
  }

  void* address() override { return address_; }
  std::size_t bytes() const override { return bytes_; }
  bool grow(std::size_t bytes) override {
    if (bytes <= bytes_) return true;
    const std::size_t wanted = align_up(bytes, huge_page);
    if (wanted > capacity_) return false;
    if (::mprotect(address_, wanted, PROT_READ | PROT_WRITE) != 0) return false;
    ::madvise(address_, wanted, MADV_HUGEPAGE);
    bytes_ = wanted;
    return true;
  }

 private:
  std::size_t reserved_;
  void* mapping_ = nullptr;
  void* address_ = nullptr;  // the first huge page boundary; null: no such range is to be had
  std::size_t capacity_ = 0;
  std::size_t bytes_ = 0;
};

// What a thread does with denormal numbers.
class Denormals {
 public:
  /// They count as zero: they cost a hundred cycles each and carry no training signal.
  static Denormals flushed() { return Denormals(bits); }
  static Denormals of_this_thread() {
#if defined(__x86_64__)
    return Denormals(_mm_getcsr() & bits);
#else
    return Denormals(0);
#endif
  }
  void apply() const {
#if defined(__x86_64__)
    _mm_setcsr((_mm_getcsr() & ~bits) | bits_);
#endif
  }

 private:
  static constexpr unsigned bits = 0x8040;  // MXCSR: flush to zero, denormals are zero
  explicit Denormals(unsigned bits) : bits_(bits) {}
  unsigned bits_;
};

// Sets the compute lane's settings on this thread, from which its team takes them in each region.
// The destructor restores the caller's, who may compute between two steps.
class LaneSettings {
 public:
  explicit LaneSettings(int threads) : onednn_(threads), before_(Denormals::of_this_thread()) {
    Denormals::flushed().apply();
  }
  ~LaneSettings() { before_.apply(); }
  LaneSettings(const LaneSettings&) = delete;
  LaneSettings& operator=(const LaneSettings&) = delete;

 private:
  OneDnnTeam onednn_;
  Denormals before_;
};

class CpuDevice final : public Device {
 public:
  CpuDevice(int threads, std::shared_ptr<LaneMonitor> monitor)
      : kernels_(cpu_kernels()), monitor_(std::move(monitor)) {
    facts_.kind = "cpu";
    facts_.features = processor_features();
    facts_.threads = threads <= 0 ? default_threads() : std::min(threads, usable_cores());
  }

  const std::string& name() const override { return name_; }
  const DeviceFacts& facts() const override { return facts_; }
  const KernelList& kernels() const override { return kernels_; }
  std::size_t memory_bytes() const override { return host_memory().bytes; }

  std::unique_ptr<Memory> allocate(std::size_t bytes) override {
    if (bytes < small_block) return fresh(std::make_unique<HeapMemory>(bytes), bytes);
    return fresh(std::make_unique<MappedMemory>(bytes, false), bytes);
  }
  bool allocates_zeros(std::size_t bytes) const override { return bytes >= small_block; }
  std::unique_ptr<Memory> reserve(std::size_t bytes) override {
    // Where addresses are limited, most of them stay for others; who needs a larger range
    // allocates.
    const std::size_t range = std::min(bytes, host_memory().addresses / 4);
    auto memory = std::make_unique<MappedMemory>(range, true);
    if (memory->address() == nullptr) return nullptr;
    return fresh(std::move(memory), range);
  }
  std::unique_ptr<Stream> make_stream(StreamKind kind, const std::string& name) override {
    if (kind == StreamKind::collective) {
      const auto alone = [](const std::function<void()>& work) {
        const LaneSettings settings(1);
        work();
      };
      return make_collective_stream(monitor_, name.empty() ? name_ + ".collective" : name, alone);
    }
    return make_cpu_stream(monitor_, name.empty() ? name_ : name);
  }
  std::unique_ptr<Event> make_event() override { return make_cpu_event(monitor_); }
  void to_device(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void to_host(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }

  void on_lane(const std::function<void()>& f) override {
    const LaneSettings settings(facts_.threads);
    f();
  }
  LaneMonitor* monitor() const override { return monitor_.get(); }

 private:
  // The heap may have given the same bytes to others before.
  std::unique_ptr<Memory> fresh(std::unique_ptr<Memory> memory, std::size_t bytes) {
    if (monitor_) monitor_->forget(memory->address(), bytes);
    return memory;
  }

  std::string name_ = "cpu";
  DeviceFacts facts_;
  KernelList kernels_;
  std::shared_ptr<LaneMonitor> monitor_;
};

// CPUs' worth of time that a quota file grants, or infinity.
double quota(const std::string& folder) {
  double limit = std::numeric_limits<double>::infinity();
  std::string first;
  double period = 0;
  if (std::ifstream file(folder + "/cpu.max"); file >> first >> period) {
    if (first != "max" && period > 0) limit = std::atof(first.c_str()) / period;
    return limit;
  }
  double us = 0;
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"),
      period_file(folder + "/cpu.cfs_period_us");
  if (quota_file >> us && period_file >> period && us > 0 && period > 0) limit = us / period;
  return limit;
}

// The tightest quota of the process's control group and all groups around it.
double smallest_quota() {
  double limit = std::numeric_limits<double>::infinity();
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string id, controllers, group;
    std::getline(fields, id, ':');
    std::getline(fields, controllers, ':');
    std::getline(fields, group);
    std::string root = "/sys/fs/cgroup";
    if (!controllers.empty()) {
      if (("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
      root += "/" + controllers;
    }
    for (;;) {
      limit = std::min(limit, quota(root + group));
      const std::size_t slash = group.rfind('/');
      if (group.empty() || group == "/" || slash == std::string::npos) break;
      group.resize(slash);
    }
  }
  return std::min(limit, quota("/sys/fs/cgroup"));
}

}  // namespace

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int allowed = ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  const double limit = smallest_quota();
  const int granted = limit < allowed ? static_cast<int>(std::ceil(limit - 0.01)) : allowed;
  return std::max(1, granted);
}

std::optional<int> asked_threads() {
  const char* const text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return std::nullopt;
  const std::string_view list(text);  // nested levels, as in "4,2"
  const std::size_t first = std::min(list.find_first_not_of(" \t"), list.size());
  int number = 0;
  const auto [end, error] = std::from_chars(list.data() + first, list.data() + list.size(), number);
  const std::size_t behind =
      list.find_first_not_of(" \t", static_cast<std::size_t>(end - list.data()));
  const bool ends = behind == std::string_view::npos || list[behind] == ',';
  if (error != std::errc() || !ends || number < 1) return std::nullopt;
  return number;
}

int default_threads(int cores) {
  return std::max(1, std::min(cores, asked_threads().value_or(cores)));
}

std::unique_ptr<Device> make_cpu_device(int threads, std::shared_ptr<LaneMonitor> monitor) {
  return std::make_unique<CpuDevice>(threads, std::move(monitor));
}

}  // namespace tandem
