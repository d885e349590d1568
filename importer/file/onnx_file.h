// An ONNX file that was read and checked: what import reads from and export writes back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// What a file may ask for. Exceeding one is an Error, before anything of that size is allocated.
struct FileLimits {
  std::uint64_t file_bytes = (std::uint64_t{1} << 31) - 1;  // the model without external data
  std::int64_t messages = 20'000'000;  // parts of the file: nodes, attributes, tensors, names
  std::int64_t nodes = 1'000'000;      // with all functions expanded
  int nesting = 32;                    // graphs inside nodes, functions inside functions
  int rank = 32;
  std::int64_t tensor_bytes = std::int64_t{1} << 40;
};

/// What the keys of an exported model's metadata that are Tandem's own begin with.
inline constexpr std::string_view own_metadata = "tandem.";

/// Opaque; only the importer uses the parsed message. Copies share it.
class OnnxFile {
 public:
  /// Reads the model, checks its structure and opens external data next to it. Throws Error{usage}
  /// naming the file and the node or tensor that is wrong.
  static OnnxFile open(const std::filesystem::path& path, const FileLimits& limits = {});
  /// Like `open`, from memory; external data is looked for in `folder` (refused where it is empty).
  static OnnxFile from_bytes(std::string_view bytes, const std::filesystem::path& folder = {},
                             const FileLimits& limits = {});

  const std::filesystem::path& path() const;  // empty where it came from memory
  /// What Tandem has written into an exported model's metadata, by key without own_metadata.
  std::map<std::string, std::string> metadata() const;

  struct Content;
  const Content& content() const { return *content_; }

 private:
  std::shared_ptr<const Content> content_;
};

/// The files that tensors of a model lie in, as it says itself: nothing else is checked, they need
/// not be there. None where it cannot be read as a model.
std::vector<std::filesystem::path> external_files(const std::filesystem::path& model);

}  // namespace tandem
