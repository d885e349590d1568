#include "api/model/cuda_status.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/model/engine.h"
#include "engine/graph/text.h"
#include "placement/quantities.h"

namespace tandem::api {
namespace {

using Json = nlohmann::ordered_json;

const char* const absent = "not in this build";

std::string use_of(const CudaGpu& gpu) { return "cuda:" + std::to_string(gpu.ordinal); }

std::string capability(const CudaGpu& gpu) { return fmt::format("{}.{}", gpu.major, gpu.minor); }

std::string line(const std::string& name, const std::string& text) {
  return fmt::format("{:<9} {}\n", name, text);
}

std::string gpu_text(const CudaGpu& gpu) {
  std::string of = gpu.name.empty() ? "a GPU" : gpu.name;
  if (gpu.memory_bytes > 0) {
    of += fmt::format(", compute capability {}, {}", capability(gpu), bytes_text(gpu.memory_bytes));
  }
  if (!gpu.problem.empty()) return of + "; cannot be used: " + gpu.problem;
  return of + ", " + bytes_text(gpu.free_bytes) + " free";
}

std::string library_text(const CudaLibraryReport& library) {
  std::string of = library.version;
  if (!library.path.empty()) of += (of.empty() ? "" : " ") + ("in " + library.path);
  if (library.problem.empty()) return of;
  return of + (of.empty() ? "" : "; ") + "cannot be used: " + library.problem;
}

}  // namespace

std::string cuda_text(const CudaReport& report) {
  if (report.toolkit.empty()) return line("cuda", absent);
  const auto with_fix = [](const std::string& fix) {
    return fix.empty() ? "" : line("", "fix: " + fix);
  };
  std::string built = "built with " + report.toolkit;
  if (!report.driver.empty()) built += ", the driver is for " + report.driver;
  if (!report.problem.empty()) built += "; no GPU can be used: " + report.problem;
  std::string text = line("cuda", built) + with_fix(report.fix);
  for (const CudaGpu& gpu : report.gpus) text += line(use_of(gpu), gpu_text(gpu));
  for (const CudaLibraryReport& library : report.libraries) {
    text += line(library.name, library_text(library)) + with_fix(library.fix);
    for (const std::string& file : library.passed_over) text += line("", "passed over: " + file);
  }
  return text;
}

Json cuda_json(const CudaReport& report) {
  if (report.toolkit.empty()) return absent;
  Json gpus = Json::array(), libraries = Json::array();
  for (const CudaGpu& gpu : report.gpus) {
    gpus.push_back({{"name", use_of(gpu)},
                    {"card", gpu.name},
                    {"compute_capability", capability(gpu)},
                    {"memory_bytes", gpu.memory_bytes},
                    {"free_bytes", gpu.free_bytes},
                    {"problem", gpu.problem}});
  }
  for (const CudaLibraryReport& library : report.libraries) {
    libraries.push_back({{"name", library.name},
                         {"needed", library.needed},
                         {"version", library.version},
                         {"path", library.path},
                         {"problem", library.problem},
                         {"fix", library.fix},
                         {"passed_over", library.passed_over}});
  }
  return {{"toolkit", report.toolkit}, {"driver", report.driver}, {"problem", report.problem},
          {"fix", report.fix},         {"cards", gpus},           {"libraries", libraries}};
}

std::optional<Diagnostic> missing_gpu(const CudaReport& report, const std::string& use) {
  Diagnostic d{.fix = report.fix};
  if (report.gpus.empty()) {
    d.message = report.problem;
    return d;
  }
  const auto gpu = std::find_if(report.gpus.begin(), report.gpus.end(),
                                [&](const CudaGpu& gpu) { return use_of(gpu) == use; });
  if (gpu == report.gpus.end()) {
    d.message = "this machine has no " + use;
    d.expected = joined(report.gpus, ", ", use_of);
    return d;
  }
  if (gpu->problem.empty()) return std::nullopt;
  d.message = fmt::format("{} ({}) cannot be used: {}", use,
                          gpu->name.empty() ? "a GPU" : gpu->name, gpu->problem);
  return d;
}

}  // namespace tandem::api
