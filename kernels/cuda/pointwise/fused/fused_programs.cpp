#include "kernels/cuda/pointwise/fused/fused_programs.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "engine/formats/sha256.h"
#include "engine/graph/error.h"
#include "kernels/cuda/libraries/nvrtc.h"

namespace tandem::cuda {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& message, const std::string& got) {
  throw Error(ErrorKind::runtime,
              Diagnostic{.message = message, .got = got, .fix = "run without the pass `fuse`"});
}

/// A program of the compiler, destroyed at the end.
class Program {
 public:
  Program(const Nvrtc& nvrtc, const std::string& source) : nvrtc_(nvrtc) {
    std::vector<const char*> names, texts;
    for (const EmbeddedHeader* header = embedded_headers; header->name != nullptr; ++header) {
      names.push_back(header->name);
      texts.push_back(header->text);
    }
    check(nvrtc_.nvrtcCreateProgram(&program_, source.c_str(), "fused.cu",
                                    static_cast<int>(names.size()), texts.data(), names.data()));
  }
  ~Program() { nvrtc_.nvrtcDestroyProgram(&program_); }
  Program(const Program&) = delete;

  CompiledKernel compile(int architecture, bool to_ptx) {
    const std::string target = std::string("--gpu-architecture=") + (to_ptx ? "compute_" : "sm_") +
                               std::to_string(architecture);
    // Lambdas of templates count as the host's without the second option. 186: comparing unsigned
    // numbers with zero, in functions that are written for all types.
    const char* options[] = {target.c_str(), "--std=c++20", "--device-as-default-execution-space",
                             "--diag-suppress=186"};
    const nvrtcResult result =
        nvrtc_.nvrtcCompileProgram(program_, static_cast<int>(std::size(options)), options);
    CompiledKernel kernel;
    kernel.log = read(nvrtc_.nvrtcGetProgramLogSize, nvrtc_.nvrtcGetProgramLog);
    while (!kernel.log.empty() && (kernel.log.back() == '\0' || kernel.log.back() == '\n'))
      kernel.log.pop_back();
    if (result != NVRTC_SUCCESS) fail("NVRTC does not compile a fused kernel", kernel.log);
    kernel.code = to_ptx ? read(nvrtc_.nvrtcGetPTXSize, nvrtc_.nvrtcGetPTX)
                         : read(nvrtc_.nvrtcGetCUBINSize, nvrtc_.nvrtcGetCUBIN);
    return kernel;
  }

 private:
  void check(nvrtcResult result) {
    if (result != NVRTC_SUCCESS) fail("NVRTC fails", nvrtc_.nvrtcGetErrorString(result));
  }

  std::string read(nvrtcResult (*size_of)(nvrtcProgram, std::size_t*),
                   nvrtcResult (*get)(nvrtcProgram, char*)) {
    std::size_t size = 0;
    check(size_of(program_, &size));
    std::string text(size, '\0');
    if (size > 0) check(get(program_, text.data()));
    return text;
  }

  const Nvrtc& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

/// The newest architecture that the compiler knows and the GPU runs.
int known_architecture(const Nvrtc& nvrtc, int architecture) {
  int count = 0;
  if (nvrtc.nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0) return architecture;
  std::vector<int> known(static_cast<std::size_t>(count));
  if (nvrtc.nvrtcGetSupportedArchs(known.data()) != NVRTC_SUCCESS) return architecture;
  int best = 0;
  for (int one : known) {
    if (one <= architecture) best = std::max(best, one);
  }
  if (best == 0) {
    fail("NVRTC does not know the GPU", "compute capability " + std::to_string(architecture));
  }
  return best;
}

constexpr std::size_t digest_size = 64;

// The code that follows its digest in the file; nothing where there is no such file, or another
// digest.
std::string read_code(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (content.size() <= digest_size) return {};
  std::string code = content.substr(digest_size);
  if (sha256(code.data(), code.size()) != content.substr(0, digest_size)) return {};
  return code;
}

// Written next to its place, then renamed: readers never see half a file. Failures cost the time to
// compile again.
void write_code(const fs::path& path, const std::string& code) {
  static std::atomic<int> count{0};
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::path beside =
      path.string() + "." + std::to_string(getpid()) + "." + std::to_string(++count);
  {
    std::ofstream file(beside, std::ios::binary);
    file << sha256(code.data(), code.size()) << code;
    file.close();
    if (file) {
      fs::rename(beside, path, error);
      if (!error) return;
    }
  }
  fs::remove(beside, error);
}

}  // namespace

CompiledKernel compile_for_gpu(const Nvrtc& nvrtc, const std::string& source, int architecture) {
  const int known = known_architecture(nvrtc, architecture);
  return Program(nvrtc, source).compile(known, known != architecture);
}

FusedPrograms::~FusedPrograms() {
  gpu_->runtime->set_gpu(gpu_->gpu);
  for (const auto& [source, loaded] : loaded_) gpu_->runtime->unload_library(loaded.library);
}

std::string FusedPrograms::code_of(const std::string& source, const Nvrtc& nvrtc) const {
  const int architecture = 10 * gpu_->properties.major + gpu_->properties.minor;
  if (gpu_->cache_folder.empty()) return compile_for_gpu(nvrtc, source, architecture).code;
  int major = 0, minor = 0;
  nvrtc.nvrtcVersion(&major, &minor);
  std::string key = "sm_" + std::to_string(architecture) + " NVRTC " + std::to_string(major) + "." +
                    std::to_string(minor) + "\n" + source;
  for (const EmbeddedHeader* header = embedded_headers; header->name != nullptr; ++header) {
    key += header->text;
  }
  const fs::path path = fs::path(gpu_->cache_folder) /
                        ("fused-" + sha256(key.data(), key.size()).substr(0, 32) + ".bin");
  std::string code = read_code(path);
  if (!code.empty()) return code;
  code = compile_for_gpu(nvrtc, source, architecture).code;
  write_code(path, code);
  return code;
}

const void* FusedPrograms::kernel(const std::string& source) {
  const std::lock_guard lock(mutex_);
  const auto found = loaded_.find(source);
  if (found != loaded_.end()) return found->second.entry;
  const Nvrtc* const nvrtc = gpu_->libraries->nvrtc();
  if (nvrtc == nullptr) fail("NVRTC is gone", "");
  const std::string code = code_of(source, *nvrtc);
  Runtime& runtime = *gpu_->runtime;
  const auto check = [&](cudaError_t error) {
    if (error != cudaSuccess) fail("a compiled kernel cannot be loaded", runtime.error_text(error));
  };
  check(runtime.set_gpu(gpu_->gpu));
  Loaded loaded;
  check(runtime.load_library(loaded.library, code.data()));
  Loaded& kept = loaded_[source] = loaded;
  check(runtime.find_kernel(kept.entry, kept.library, "fused"));
  return kept.entry;
}

}  // namespace tandem::cuda
