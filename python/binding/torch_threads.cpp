#include "python/binding/torch_threads.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <ctime>

#include "api/program/threads.h"

namespace tandem::python {
namespace {

// The functions of libgomp that PyTorch calls; null: not loaded.
struct OpenMp {
  using Region = void (*)(void*);

  void (*parallel)(Region, void*, unsigned threads, unsigned flags) = nullptr;
  int (*thread_number)() = nullptr;
  int (*most_threads)() = nullptr;
  int (*processors)() = nullptr;
};

template <class Function>
void set(Function& function, void* library, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

OpenMp loaded_openmp() {
  OpenMp found;
  void* const torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (torch == nullptr) return found;
  // LLVM's and Intel's runtime have libgomp's functions, too, but wait in other ways.
  const bool is_libgomp = dlsym(torch, "kmp_set_blocktime") == nullptr;
  OpenMp all;
  set(all.parallel, torch, "GOMP_parallel");
  set(all.thread_number, torch, "omp_get_thread_num");
  set(all.most_threads, torch, "omp_get_max_threads");
  set(all.processors, torch, "omp_get_num_procs");
  const bool has_all = all.parallel != nullptr && all.thread_number != nullptr &&
                       all.most_threads != nullptr && all.processors != nullptr;
  return is_libgomp && has_all ? all : found;
}

// How many libraries were ever loaded into the process.
unsigned long long loaded_libraries() {
  unsigned long long count = 0;
  const auto take = [](dl_phdr_info* info, std::size_t, void* to) {
    *static_cast<unsigned long long*>(to) = info->dlpi_adds;
    return 1;
  };
  dl_iterate_phdr(take, &count);
  return count;
}

// At least 1; 2 where the system does not tell.
unsigned long threads_of_process() {
  struct stat folder = {};
  return stat("/proc/self/task", &folder) == 0 && folder.st_nlink > 2 ? folder.st_nlink - 2 : 2;
}

// PyTorch's threads as the main thread, which alone uses this, knows them.
class TorchThreads {
 public:
  bool is_off = false;

  bool are_there() {
    if (openmp_.parallel == nullptr) {
      const unsigned long long libraries = loaded_libraries();
      if (libraries == libraries_) return false;
      libraries_ = libraries;
      openmp_ = loaded_openmp();
    }
    return openmp_.parallel != nullptr && openmp_.most_threads() > 1;
  }

  // Where other programs have the cores, PyTorch's threads come late, and the main thread waits for
  // them: this takes at most a twentieth of the time.
  void let_sleep() {
    const auto begin = Clock::now();
    if (begin < next_) return;
    crowd();
    const auto end = Clock::now();
    next_ = end + 20 * (end - begin);
  }

  void note() { computed_ = computed(); }

 private:
  // libgomp's threads spin only shortly where it has more threads than there are processors (see
  // GOMP_SPINCOUNT in its manual). An empty region with one thread more makes them wait in this
  // way. PyTorch's next region ends that thread, so that its own waits stay as they are.
  void crowd() {
    const int processors = openmp_.processors();
    if (openmp_.most_threads() > processors) return;  // they wait in this way anyway
    if (!knows_clock_ && threads_of_process() == 1) return;
    const std::int64_t now = computed();
    if (now >= 0 && now == computed_) return;  // they sleep
    openmp_.parallel(note_clock, this, static_cast<unsigned>(processors) + 1, 0);
  }

  static void note_clock(void* data) {
    auto& my = *static_cast<TorchThreads*>(data);
    if (my.openmp_.thread_number() == 1)
      my.knows_clock_ = pthread_getcpuclockid(pthread_self(), &my.clock_) == 0;
  }

  // Nanoseconds that the first worker has computed; -1: it has ended, or is not known yet.
  std::int64_t computed() const {
    timespec time{};
    if (!knows_clock_ || clock_gettime(clock_, &time) != 0) return -1;
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }

  using Clock = std::chrono::steady_clock;

  OpenMp openmp_;
  Clock::time_point next_ = {};
  unsigned long long libraries_ = 0;
  clockid_t clock_ = {};
  bool knows_clock_ = false;
  std::int64_t computed_ = -1;  // at the end of the last step
};

TorchThreads torch_threads;

// A child process has none of these threads, and libgomp would wait for them.
void leave_alone() { torch_threads.is_off = true; }

}  // namespace

WithCores::WithCores() {
  static thread_local const bool is_main_thread = gettid() == getpid();
  if (!is_main_thread || torch_threads.is_off || !torch_threads.are_there()) return;
  has_other_threads_ = true;
  torch_threads.let_sleep();
  api::set_workers_resting(false);
}

WithCores::~WithCores() {
  if (!has_other_threads_) return;
  api::set_workers_resting(true);
  torch_threads.note();
}

void watch_forks() { pthread_atfork(nullptr, nullptr, leave_alone); }

void set_core_sharing(bool is_on) {
  torch_threads.is_off = !is_on;
  api::set_workers_resting(false);
}

}  // namespace tandem::python
