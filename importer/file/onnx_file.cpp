#include "importer/file/onnx_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <set>

#include "importer/branches.h"
#include "importer/file/check_file.h"
#include "importer/file/external_data.h"
#include "importer/file/narrow_integers.h"
#include "importer/file/node_order.h"
#include "importer/file/onnx_content.h"
#include "importer/file/sparse_tensors.h"
#include "importer/file/tensor_data.h"
#include "importer/training_info/artifacts.h"
#include "importer/weights/constant_weights.h"
#include "importer/weights/merged_names.h"
#include "importer/weights/packed_weights.h"

namespace tandem {
namespace importer {

void refuse(const std::filesystem::path& file, std::string where, std::string message,
            std::string expected, std::string got, std::string fix) {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .file = file.string(),
                                           .path = std::move(where),
                                           .expected = std::move(expected),
                                           .got = std::move(got),
                                           .fix = std::move(fix)});
}

namespace {

// The bytes of a file, mapped while they are parsed.
class MappedFile {
 public:
  MappedFile(const std::filesystem::path& path, const FileLimits& limits) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd_ < 0) refuse(path, "", "cannot open the model", "", std::strerror(errno));
    struct stat facts {};
    if (::fstat(fd_, &facts) != 0 || !S_ISREG(facts.st_mode)) {
      close();
      refuse(path, "", "the model is not a regular file");
    }
    size_ = static_cast<std::size_t>(facts.st_size);
    if (size_ == 0 || size_ > limits.file_bytes) {
      close();
      refuse(path, "", size_ == 0 ? "the file is empty" : "the file is too large",
             fmt::format("1 to {} bytes", limits.file_bytes), std::to_string(size_),
             size_ == 0 ? "" : "save it with external data");
    }
    data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_, 0);
    if (data_ == MAP_FAILED) {
      close();
      refuse(path, "", "cannot read the model", "", std::strerror(errno));
    }
  }
  ~MappedFile() {
    ::munmap(data_, size_);
    close();
  }
  MappedFile(const MappedFile&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void close() { ::close(fd_); }

  int fd_ = -1;
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

std::shared_ptr<onnx::ModelProto> parse(std::string_view bytes, const std::filesystem::path& path,
                                        const FileLimits& limits) {
  if (bytes.empty() || bytes.size() > limits.file_bytes) {
    refuse(path, "", bytes.empty() ? "the file is empty" : "the file is too large");
  }
  refuse_artifact_checkpoint(bytes, path);
  if (count_messages(bytes, limits.messages) > limits.messages) {
    refuse(path, "", "the file has too many parts", fmt::format("at most {}", limits.messages));
  }
  auto model = std::make_shared<onnx::ModelProto>();
  google::protobuf::LogSilencer quiet;
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(static_cast<int>(bytes.size()));
  if (!model->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    refuse(path, "", "the file is not an ONNX model, or it is damaged", "",
           fmt::format("{} bytes", bytes.size()),
           "one that was cut short looks so: copy it again, or export the model again");
  }
  return model;
}

std::shared_ptr<const OnnxFile::Content> read(std::string_view bytes, std::filesystem::path path,
                                              std::filesystem::path folder,
                                              const FileLimits& limits) {
  auto content = std::make_shared<OnnxFile::Content>();
  content->path = std::move(path);
  content->folder = std::move(folder);
  content->limits = limits;
  content->model = parse(bytes, content->path, limits);
  content->external = std::make_shared<ExternalFiles>(content->path, content->folder);
  make_dense(*content->model, *content);
  if (content->model->has_graph()) {
    widen_narrow_integers(*content->model, *content, find_packed_weights(*content->model));
  }
  if (content->model->has_graph()) order_nodes(*content->model->mutable_graph(), limits.nesting);
  check_file(*content);
  lift_branch_weights(*content->model);
  restore_merged_names(*content->model);
  content->attribute_weights = lift_attribute_weights(*content->model);
  content->attribute_weights.merge(lift_constant_weights(*content->model));
  content->packed = find_packed_weights(*content->model);
  for (const onnx::TensorProto& tensor : content->model->graph().initializer()) {
    if (is_nibbles(tensor) && content->packed.data.contains(tensor.name())) {
      content->initializers.emplace(tensor.name(), read_nibbles(tensor, *content, tensor.name()));
      continue;
    }
    // Tensors of other types are refused where a node reads them.
    if (!dtype_from_onnx(tensor.data_type())) continue;
    content->initializers.emplace(tensor.name(), read_tensor(tensor, *content, tensor.name()));
  }
  return content;
}

// The locations of tensors in a part of a model: its own, and those of what is in it.
class Locations {
 public:
  std::set<std::string> all;

  void add(const onnx::GraphProto& graph) {
    for (const onnx::TensorProto& tensor : graph.initializer()) add(tensor);
    for (const onnx::NodeProto& node : graph.node()) add(node);
  }
  void add(const onnx::NodeProto& node) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_t()) add(attribute.t());
      for (const onnx::TensorProto& tensor : attribute.tensors()) add(tensor);
      if (attribute.has_g()) add(attribute.g());
      for (const onnx::GraphProto& graph : attribute.graphs()) add(graph);
    }
  }

 private:
  void add(const onnx::TensorProto& tensor) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
    for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
      if (entry.key() == "location") all.insert(entry.value());
    }
  }
};

}  // namespace
}  // namespace importer

OnnxFile OnnxFile::open(const std::filesystem::path& path, const FileLimits& limits) {
  const importer::MappedFile file(path, limits);
  OnnxFile result;
  const std::filesystem::path folder = path.parent_path();
  result.content_ = importer::read(file.bytes(), path, folder.empty() ? "." : folder, limits);
  return result;
}

OnnxFile OnnxFile::from_bytes(std::string_view bytes, const std::filesystem::path& folder,
                              const FileLimits& limits) {
  OnnxFile result;
  result.content_ = importer::read(bytes, {}, folder, limits);
  return result;
}

const std::filesystem::path& OnnxFile::path() const { return content_->path; }

std::map<std::string, std::string> OnnxFile::metadata() const {
  std::map<std::string, std::string> entries;
  for (const onnx::StringStringEntryProto& entry : content_->model->metadata_props()) {
    if (entry.key().starts_with(own_metadata))
      entries[entry.key().substr(own_metadata.size())] = entry.value();
  }
  return entries;
}

std::vector<std::filesystem::path> external_files(const std::filesystem::path& model) {
  importer::Locations locations;
  try {
    const FileLimits limits;
    const importer::MappedFile file(model, limits);
    const auto content = importer::parse(file.bytes(), model, limits);
    locations.add(content->graph());
    for (const onnx::TrainingInfoProto& info : content->training_info()) {
      locations.add(info.algorithm());
      locations.add(info.initialization());
    }
    for (const onnx::FunctionProto& function : content->functions()) {
      for (const onnx::NodeProto& node : function.node()) locations.add(node);
    }
  } catch (const Error&) {
    return {};
  }
  std::vector<std::filesystem::path> files;
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::canonical(model, failed).parent_path();
  for (const std::string& location : locations.all) {
    files.push_back(model.parent_path() / location);
    if (!failed && !std::filesystem::exists(files.back(), failed)) files.back() = real / location;
  }
  return files;
}

}  // namespace tandem
