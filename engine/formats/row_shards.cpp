#include "engine/formats/row_shards.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>

#include "engine/graph/align.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

// At least the page of every system that these files may come to.
constexpr std::size_t page = 65536;

[[noreturn]] void fail_shards(const std::string& file, const std::string& tensor,
                              std::string message, std::string expected = "",
                              std::string got = "") {
  throw Error(ErrorKind::data, {.message = std::move(message),
                                .file = file,
                                .path = tensor,
                                .expected = std::move(expected),
                                .got = std::move(got)});
}

struct Part {
  std::string path;
  std::uint64_t file_offset = 0;  // where its elements begin in the file
  std::size_t at = 0;             // where they begin in the tensor, in bytes
  HostTensor rows;
};

// Addresses for the whole tensor, filled with the files; null where the system or the parts'
// places do not allow it.
std::shared_ptr<void> mapped(const std::vector<Part>& parts, std::size_t bytes) {
  const auto unit = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (const Part& part : parts) {
    if (part.file_offset % unit != 0 || part.at % unit != 0) return nullptr;
  }
  const std::size_t size = align_up(bytes, unit);
  void* memory =
      ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  std::shared_ptr<void> owner(memory, [size](void* at) { ::munmap(at, size); });
  for (const Part& part : parts) {
    const int file = ::open(part.path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) fail_shards(part.path, "", std::string("cannot open: ") + std::strerror(errno));
    const void* at =
        ::mmap(static_cast<char*>(memory) + part.at, part.rows.bytes(), PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, file, static_cast<off_t>(part.file_offset));
    ::close(file);
    if (at == MAP_FAILED) return nullptr;
  }
  return owner;
}

}  // namespace

std::vector<RowShard> row_shards(const TensorSource& tensor, std::uint64_t bytes,
                                 const std::string& stem) {
  const std::int64_t rows = tensor.rows();
  const std::uint64_t wanted = (tensor.type.bytes() + std::max<std::uint64_t>(bytes, 1) - 1) /
                               std::max<std::uint64_t>(bytes, 1);
  const std::int64_t count =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min<std::uint64_t>(wanted, 99999)), 1,
                               std::max<std::int64_t>(rows, 1));
  const auto unit = static_cast<std::int64_t>(page / std::gcd(page, tensor.row_bytes()));
  const std::int64_t each = align_up((rows + count - 1) / count, unit);
  std::vector<RowShard> shards;
  for (std::int64_t first = 0; first < rows; first += each) {
    shards.push_back({"", first, std::min(each, rows - first)});
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    char number[48];
    std::snprintf(number, sizeof number, "-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    shards[i].file = stem + number;
  }
  return shards;
}

WrittenFile write_row_shard(const std::string& folder, const TensorSource& tensor,
                            const RowShard& shard) {
  TensorSource part{tensor.name, tensor.type, {}, nullptr};
  part.type.shape[0] = shard.rows;
  if (tensor.data != nullptr) {
    part.data = static_cast<const char*>(tensor.data) +
                tensor.row_bytes() * static_cast<std::size_t>(shard.first);
  } else {
    part.read = [&](std::int64_t first, std::int64_t rows, void* to) {
      tensor.read(shard.first + first, rows, to);
    };
  }
  return write_safetensors(folder + "/" + shard.file, std::vector<TensorSource>{part},
                           {{"format", "pt"},
                            {"first_row", std::to_string(shard.first)},
                            {"rows", std::to_string(tensor.rows())}},
                           page);
}

NamedTensor read_row_shards(const std::string& folder, const std::string& name,
                            const std::vector<RowShard>& shards) {
  TensorType type;
  std::int64_t rows = 0;
  std::string all;  // rows of the table, as the files say
  std::vector<Part> parts;
  for (const RowShard& shard : shards) {
    const std::string path = folder + "/" + shard.file;
    const SafetensorsFile file(path);
    const HostTensor* found = file.find(name);
    if (found == nullptr || file.tensors().size() != 1 || found->shape().empty()) {
      fail_shards(path, name, "the file does not hold only rows of this tensor");
    }
    TensorType expected = parts.empty() ? found->type() : type;
    expected.shape[0] = shard.rows;
    if (found->type() != expected) {
      fail_shards(path, name, "rows of another type", to_string(expected),
                  to_string(found->type()));
    }
    if (shard.rows > std::numeric_limits<std::int64_t>::max() - rows) {
      fail_shards(path, name, "more rows than 64 bits count");
    }
    if (shard.first != rows) {
      fail_shards(path, name, "rows are missing", "rows from " + std::to_string(rows) + " on",
                  "rows from " + std::to_string(shard.first) + " on");
    }
    const auto says = [&](const char* key) {
      const auto entry = file.metadata().find(key);
      return entry == file.metadata().end() ? "no number" : entry->second;
    };
    if (parts.empty()) all = says("rows");
    if (says("first_row") != std::to_string(shard.first) || says("rows") != all) {
      fail_shards(path, name, "the file holds other rows",
                  "rows from " + std::to_string(shard.first) + " on, of " + all,
                  "rows from " + says("first_row") + " on, of " + says("rows"));
    }
    const std::size_t at = parts.empty() ? 0 : parts.back().at + parts.back().rows.bytes();
    parts.push_back({path, file.data_offset(), at, *found});
    type = expected;
    rows += shard.rows;
  }
  if (parts.empty()) fail_shards(folder, name, "no file holds rows of this tensor");
  if (std::to_string(rows) != all)
    fail_shards(parts.back().path, name, "rows are missing after it", all + " rows",
                std::to_string(rows));
  type.shape[0] = rows;
  if (std::shared_ptr<void> memory = mapped(parts, type.bytes())) {
    void* data = memory.get();
    return {name, HostTensor(type, data, std::move(memory))};
  }
  HostTensor copy(type);
  for (const Part& part : parts) {
    std::memcpy(static_cast<char*>(copy.data()) + part.at, part.rows.data(), part.rows.bytes());
  }
  return {name, std::move(copy)};
}

}  // namespace tandem
