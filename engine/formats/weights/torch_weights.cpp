// Weights that torch.save has written (.pt, .pth, .bin): a zip archive of a pickle and one file for
// each storage. The pickle is read as data; nothing that it names is executed.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "engine/formats/claim.h"
#include "engine/formats/files.h"
#include "engine/formats/gzip.h"
#include "engine/formats/weights/torch_names.h"
#include "engine/formats/weights/torch_tensors.h"
#include "engine/formats/weights/weights_file.h"
#include "engine/formats/zip_file.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

constexpr std::string_view pickle_name = "data.pkl";
constexpr const char* save_weights_alone =
    "save only the weights, if you trust the file: torch.save(model.state_dict(), \"weights.pt\")";

[[noreturn]] void refuse_torch_file(const std::string& path, std::string message, std::string fix) {
  throw Error(ErrorKind::data,
              {.message = std::move(message), .file = path, .fix = std::move(fix)});
}

/// Refuses files that are no archive: the older format of PyTorch, and pointers in place of a file.
void refuse_other_files(const std::string& path) {
  const InputFile file(path);
  char start[264] = {};
  const std::size_t size = file.read_at(0, start, sizeof start);
  const std::string_view text(start, size);
  if (text.starts_with("\x80") ||
      text.substr(std::min<std::size_t>(size, 257)).starts_with("ustar"))
    refuse_torch_file(path, "the older format of torch.save, which is not read",
                      "write it again, if you trust the file: torch.save(torch.load(f), f2)");
  if (text.starts_with("version https://git-lfs"))
    refuse_torch_file(path, "a pointer of Git LFS, not the file itself", "git lfs pull");
}

/// Copies the elements of a strided tensor in row-major order; `from` is the storage's first byte.
void gather_strided(const TorchTensor& tensor, const std::uint8_t* from, std::uint8_t* to) {
  const Shape& shape = tensor.type.shape;
  const std::size_t size = size_of(tensor.type.dtype), rank = shape.size();
  const std::int64_t count = tensor.type.elements();
  const std::int64_t columns = rank == 0 ? 1 : shape[rank - 1];
  const std::uint64_t step = rank == 0 ? 0 : tensor.strides[rank - 1];
  std::vector<std::int64_t> index(rank);
  for (std::int64_t done = 0; done < count; done += columns) {
    std::uint64_t at = tensor.offset;
    for (std::size_t i = 0; i + 1 < rank; ++i)
      at += static_cast<std::uint64_t>(index[i]) * tensor.strides[i];
    for (std::int64_t i = 0; i < columns; ++i, to += size)
      std::memcpy(to, from + (at + static_cast<std::uint64_t>(i) * step) * size, size);
    for (std::size_t i = rank > 0 ? rank - 1 : 0; i-- > 0;) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
}

class TorchWeights final : public WeightsFile {
 public:
  explicit TorchWeights(const std::string& path)
      : archive_(path, {.archive = "PyTorch", .member = "file"}),
        mapped_(std::make_shared<MappedFile>(path)) {
    find_folder();
    check_byte_order();
    const std::string bytes = read_member(folder_ + std::string(pickle_name), pickle_bytes);
    const PickleRules rules{.file = path,
                            .member = std::string(pickle_name),
                            .fix = save_weights_alone,
                            .may_stand = may_stand_in_weights,
                            .may_be_called = may_be_called_in_weights,
                            .bytes = pickle_bytes};
    TorchTensors found = find_torch_tensors(read_pickle(bytes, rules), path);
    notes_ = std::move(found.notes);
    std::map<std::tuple<std::string, std::uint64_t, Shape, std::vector<std::uint64_t>, DType>,
             std::string>
        first_at;
    for (TorchTensor& tensor : found.tensors) {
      check_storage(tensor);
      names_.push_back(tensor.name);
      const auto place = std::tuple(tensor.storage, tensor.offset, tensor.type.shape,
                                    tensor.strides, tensor.type.dtype);
      first_names_[tensor.name] = first_at.emplace(place, tensor.name).first->second;
      tensors_.emplace(tensor.name, std::move(tensor));
    }
  }

  std::vector<std::string> names() const override { return names_; }
  std::vector<std::string> notes() const override { return notes_; }
  std::string first_name(const std::string& name) const override { return first_names_.at(name); }
  TensorType type(const std::string& name) const override { return tensors_.at(name).type; }

  std::optional<HostTensor> pages(const std::string& name) const override {
    const TorchTensor& tensor = tensors_.at(name);
    const std::size_t size = size_of(tensor.type.dtype);
    if (!tensor.is_contiguous()) return std::nullopt;
    std::uint8_t* at = checked_storage(tensor) + tensor.offset * size;
    if (reinterpret_cast<std::uintptr_t>(at) % size != 0) return std::nullopt;
    return HostTensor(tensor.type, at, mapped_);
  }

  HostTensor read(const std::string& name, DType as) const override {
    if (const std::optional<HostTensor> there = pages(name)) return there->converted(as);
    const TorchTensor& tensor = tensors_.at(name);
    claim_memory(tensor.type.bytes(), archive_.path(), name,
                 to_string(tensor.type) + ", " + std::to_string(tensor.type.bytes()) + " bytes");
    HostTensor rows(tensor.type);
    gather_strided(tensor, checked_storage(tensor), static_cast<std::uint8_t*>(rows.data()));
    return rows.converted(as);
  }

 private:
  static constexpr std::size_t pickle_bytes = std::size_t{64} << 20;

  /// All names begin with one folder, whatever it is called.
  void find_folder() {
    bool found = false, is_script = false;
    for (const std::string& name : archive_.names()) {
      const std::size_t slash = name.find('/');
      if (slash == std::string::npos) continue;
      const std::string_view rest = std::string_view(name).substr(slash + 1);
      is_script = is_script || rest == "constants.pkl" || rest.starts_with("code/");
      if (rest != pickle_name) continue;
      if (found) archive_.fail("the archive has two pickles", 0, name);
      found = true;
      folder_ = name.substr(0, slash + 1);
    }
    if (is_script)
      refuse_torch_file(archive_.path(), "a TorchScript module, which is no file of weights",
                        "torch.save(torch.jit.load(f).state_dict(), f2)");
    if (!found)
      refuse_torch_file(archive_.path(), "a zip archive, but none of torch.save: it lacks data.pkl",
                        save_weights_alone);
  }

  void check_byte_order() const {
    const std::string name = folder_ + "byteorder";
    constexpr std::size_t longest = 16;
    if (!archive_.has(name) || read_member(name, longest) == "little") return;
    refuse_torch_file(archive_.path(), "its numbers have the byte order of another machine",
                      "write it again on a little-endian machine: torch.save(torch.load(f), f2)");
  }

  /// The checksum is 0 where torch.serialization.set_crc32_options has switched it off.
  void check_sum(const std::string& name, const void* data, std::size_t bytes) const {
    const ZipFile::Entry& entry = archive_.entry(name);
    if (entry.crc != 0 && crc32_of(data, bytes) != entry.crc)
      archive_.fail("damaged: the checksum does not fit", entry.local, name);
  }

  std::string read_member(const std::string& name, std::size_t most) const {
    const ZipFile::Entry& entry = archive_.entry(name);
    ZipStream stream(archive_, name);
    if (stream.size() > most) {
      archive_.fail("more than the " + std::to_string(most) + " bytes that it may have",
                    entry.local, name);
    }
    claim_memory(stream.size(), archive_.path(), name, std::to_string(stream.size()) + " bytes");
    std::string bytes(static_cast<std::size_t>(stream.size()), '\0');
    bytes.resize(read_fully(stream, bytes.data(), bytes.size()));
    if (bytes.size() < entry.bytes) archive_.fail("the archive is cut off", entry.local, name);
    check_sum(name, bytes.data(), bytes.size());
    return bytes;
  }

  void check_storage(const TorchTensor& tensor) const {
    const std::string name = folder_ + "data/" + tensor.storage;
    if (!archive_.has(name)) archive_.fail("the archive lacks the file " + name, 0, tensor.name);
    const ZipFile::Entry& entry = archive_.entry(name);
    if (entry.method != 0)
      archive_.fail("a compressed storage, which torch.save does not write", entry.local, name);
    if (entry.bytes != tensor.storage_bytes) {
      archive_.fail("the file " + name + " has " + std::to_string(entry.bytes) +
                        " bytes, not the " + std::to_string(tensor.storage_bytes) +
                        " of the tensor's storage",
                    entry.local, tensor.name);
    }
    archive_.data_offset(name);
  }

  std::uint8_t* checked_storage(const TorchTensor& tensor) const {
    const std::string name = folder_ + "data/" + tensor.storage;
    std::uint8_t* data = mapped_->data() + archive_.data_offset(name);
    if (!checked_.contains(name)) check_sum(name, data, tensor.storage_bytes);
    checked_.insert(name);
    return data;
  }

  ZipFile archive_;
  std::shared_ptr<MappedFile> mapped_;
  std::string folder_;
  std::map<std::string, TorchTensor> tensors_;
  std::map<std::string, std::string> first_names_;  // by name; only tied weights have another one
  std::vector<std::string> names_, notes_;
  mutable std::set<std::string> checked_;  // storages whose checksum was found right
};

std::unique_ptr<WeightsFile> open_torch_weights(const std::string& path) {
  refuse_other_files(path);
  return std::make_unique<TorchWeights>(path);
}

}  // namespace

WeightsFormat torch_weights() { return {"PyTorch", ".pt|.pth|.bin", open_torch_weights}; }

}  // namespace tandem
