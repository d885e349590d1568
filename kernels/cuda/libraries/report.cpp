#include "kernels/cuda/libraries/report.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <string_view>

#include "kernels/cuda/libraries/library_file.h"

namespace tandem {
namespace cuda {
namespace {

constexpr int toolkit_major = CUDART_VERSION / 1000;

/// 13000 is 13.0.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string newer_driver() {
  std::string text = "NVIDIA's driver for CUDA " + std::to_string(toolkit_major) + " or newer";
  if constexpr (toolkit_major == 13) text += " (580 or newer)";
  return text;
}

void no_driver(CudaReport& report) {
  report.problem = "this machine has no NVIDIA driver (libcuda.so.1)";
  report.fix = "install " + newer_driver() + "; a container has to be started with --gpus all";
}

void broken_driver(CudaReport& report, const std::string& path, const std::string& why) {
  report.problem = "the NVIDIA driver's library " + path + " cannot be used: " + why;
  report.fix = "remove that file, or its folder from LD_LIBRARY_PATH; install " + newer_driver();
}

void old_driver(CudaReport& report) {
  report.problem = "the driver is for CUDA " + report.driver + ", this build needs " +
                   std::to_string(toolkit_major) + ".0 or newer";
  report.fix = "install " + newer_driver();
}

void no_card(CudaReport& report) {
  report.problem = "the driver sees no card";
  report.fix = "see what nvidia-smi says, and what CUDA_VISIBLE_DEVICES hides";
}

bool has_code(const CudaCard& card) {
  return runs_on(TANDEM_CUDA_ARCHITECTURES, card.major, card.minor);
}

CudaCard look_at(Runtime& runtime, int ordinal) {
  CudaCard card;
  card.ordinal = ordinal;
  CardProperties properties;
  if (const cudaError_t error = runtime.properties(ordinal, properties); error != cudaSuccess) {
    card.problem = "the driver does not describe it: " + runtime.error_text(error);
    return card;
  }
  card.name = properties.name;
  card.memory_bytes = properties.memory_bytes;
  card.major = properties.major;
  card.minor = properties.minor;
  if (!has_code(card)) {
    card.problem = "compute capability " + std::to_string(card.major) + "." +
                   std::to_string(card.minor) +
                   ": this build has code for the architectures " TANDEM_CUDA_ARCHITECTURES;
  }
  return card;
}

void find_cards(Runtime& runtime, CudaReport& report) {
  int driver = 0;
  if (runtime.driver_version(driver) != cudaSuccess || driver <= 0) return no_driver(report);
  report.driver = version_text(driver);
  if (driver / 1000 < toolkit_major) return old_driver(report);
  int count = 0;
  const cudaError_t error = runtime.card_count(count);
  if (error == cudaErrorInsufficientDriver) return old_driver(report);
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) return no_card(report);
  if (error != cudaSuccess) {
    report.problem = "the driver does not start: " + runtime.error_text(error);
    report.fix = "see what nvidia-smi says";
    return;
  }
  for (int card = 0; card < count; ++card) report.cards.push_back(look_at(runtime, card));
}

void say_if_none_is_usable(CudaReport& report) {
  const bool any = std::any_of(report.cards.begin(), report.cards.end(),
                               [](const CudaCard& card) { return card.problem.empty(); });
  if (any || report.cards.empty()) return;
  const CudaCard& first = report.cards[0];
  report.problem = (first.name.empty() ? "card 0" : first.name) + ": " + first.problem;
  report.fix = "see what nvidia-smi says";
  if (first.name.empty() || has_code(first)) return;
  report.fix = "a build with -DCMAKE_CUDA_ARCHITECTURES=" + std::to_string(first.major) +
               std::to_string(first.minor) + " has code for it, where the toolkit still knows it";
}

void ask_for_memory(Runtime& runtime, CudaCard& card) {
  std::size_t total = 0;
  cudaError_t error = runtime.set_card(card.ordinal);
  if (error == cudaSuccess) error = runtime.free_bytes(card.free_bytes, total);
  if (error != cudaSuccess) card.problem = "it does not start: " + runtime.error_text(error);
}

struct Architecture {
  int number = 0;         // 90 of "90a-real"
  bool one_card = false;  // "90a": features that other cards lack
  bool code = true, translated = true;
};

/// False where the text is none of a number.
bool read(std::string_view text, Architecture& to) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, to.number);
  if (error != std::errc()) return false;
  std::string_view kind(rest, static_cast<std::size_t>(end - rest));
  to.one_card = kind.starts_with('a');
  const bool one_family = kind.starts_with('f');
  if (to.one_card || one_family) kind.remove_prefix(1);
  if (!kind.empty() && kind != "-real" && kind != "-virtual") return false;
  to.code = kind != "-virtual" || one_family;
  to.translated = kind != "-real" && !one_family;
  return true;
}

}  // namespace

bool runs_on(const std::string& architectures, int major, int minor) {
  const int card = major * 10 + minor;
  const std::string_view text = architectures;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    Architecture of;
    if (!read(text.substr(start, end - start), of)) return true;
    const bool own_code = of.code && of.number / 10 == major && of.number <= card;
    const bool fits = own_code || (of.translated && of.number <= card);
    if (of.one_card ? of.number == card : fits) return true;
    start = end + 1;
  }
  return false;
}

CudaReport report_cards(Runtime& runtime) {
  CudaReport report;
  report.toolkit = version_text(CUDART_VERSION);
  find_cards(runtime, report);
  say_if_none_is_usable(report);
  return report;
}

CudaReport report_all(Runtime& runtime, Libraries& libraries) {
  CudaReport report = report_cards(runtime);
  for (CudaCard& card : report.cards) {
    if (card.problem.empty()) ask_for_memory(runtime, card);
  }
  say_if_none_is_usable(report);
  report.libraries = libraries.report();
  return report;
}

void name_missing_folders(CudaReport& report, const LibraryPlaces& places) {
  for (const std::string& folder : missing_folders(places)) {
    report.fix += (report.fix.empty() ? "" : "; ") + ("take " + folder) +
                  " out of TANDEM_CUDA_LIBRARIES: it is no folder";
  }
}

CudaReport with_driver_at(const std::string& path, const std::function<CudaReport()>& look) {
  const std::string problem = path.empty() ? "" : file_problem(path);
  if (!problem.empty()) {
    CudaReport report;
    report.toolkit = version_text(CUDART_VERSION);
    broken_driver(report, path, problem);
    report.fix += "; cuBLASLt, cuDNN, NVRTC and NCCL are looked at once that is done";
    return report;
  }
  CudaReport report = look();
  if (!path.empty() && report.driver.empty())
    broken_driver(report, path, "the CUDA runtime finds no driver in it");
  return report;
}

}  // namespace cuda

namespace {

template <class Ask>
CudaReport without_throwing(Ask ask) {
  try {
    return cuda::with_driver_at(cuda::loader_file("libcuda.so.1"),
                                [&] { return ask(*cuda::make_real_runtime()); });
  } catch (const std::exception& error) {
    CudaReport report;
    report.toolkit = cuda::version_text(CUDART_VERSION);
    report.problem = error.what();
    return report;
  }
}

}  // namespace

CudaReport cuda_report() {
  CudaReport report = without_throwing([](cuda::Runtime& runtime) {
    return cuda::report_all(runtime, *cuda::make_real_libraries());
  });
  cuda::name_missing_folders(report, cuda::library_places());
  return report;
}

CudaReport cuda_cards() {
  return without_throwing([](cuda::Runtime& runtime) { return cuda::report_cards(runtime); });
}

}  // namespace tandem
