// A plan file: its key on the first line, the plan's bytes on the second as a number, then the
// plan.
#include "kernels/cuda/networks/plan_files.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "kernels/shared/philox.h"

namespace tandem::cuda {
namespace {

std::filesystem::path path_of(const std::string& folder, const std::string& key) {
  char name[64];
  std::snprintf(name, sizeof name, "cudnn-%016llx.plan",
                static_cast<unsigned long long>(mix_bits(hash_of_path(key))));
  return std::filesystem::path(folder) / name;
}

}  // namespace

std::optional<std::string> read_plan_file(const std::string& folder, const std::string& key) {
  std::ifstream file(path_of(folder, key), std::ios::binary);
  std::string found, size;
  if (!std::getline(file, found) || found != key || !std::getline(file, size)) return std::nullopt;
  std::string plan((std::istreambuf_iterator<char>(file)), {});
  if (plan.empty() || std::to_string(plan.size()) != size) return std::nullopt;
  return plan;
}

void write_plan_file(const std::string& folder, const std::string& key, std::string_view plan) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string path = path_of(folder, key).string();
  std::string beside = path + ".XXXXXX";
  const int descriptor = ::mkstemp(beside.data());
  if (descriptor < 0) return;
  const std::string head = key + '\n' + std::to_string(plan.size()) + '\n';
  std::FILE* file = ::fdopen(descriptor, "wb");
  bool written = file != nullptr && std::fwrite(head.data(), 1, head.size(), file) == head.size() &&
                 std::fwrite(plan.data(), 1, plan.size(), file) == plan.size();
  if (file != nullptr) {
    written = std::fclose(file) == 0 && written;
  } else {
    ::close(descriptor);
  }
  if (!written || std::rename(beside.c_str(), path.c_str()) != 0) ::unlink(beside.c_str());
}

}  // namespace tandem::cuda
