// JSON files that Tandem reads back: parsed within bounds, and every value is asked for with its
// type and range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/graph/error.h"

namespace tandem {

struct JsonLimits {
  std::uint64_t bytes = std::uint64_t{64} << 20;
  std::size_t values = std::size_t{1} << 21;
  int depth = 8;
};

/// What errors say about the document.
struct JsonSource {
  std::string file;
  std::string what = "the file";  // "the header"
  std::uint64_t offset = 0;       // where its text begins in the file
  ErrorKind kind = ErrorKind::data;
  std::string fix{};
};

/// A value, and the keys that lead to it. Valid while its JsonFile lives. What throws, throws an
/// Error of the source's kind that names file, keys, what was expected and what is there.
class JsonItem {
 public:
  bool is_object() const;
  bool is_list() const;
  bool is_null() const;
  std::size_t size() const;  // members of an object, items of a list; 0 of all else
  const std::string& keys() const { return keys_; }
  const std::string& file() const { return source_->file; }
  std::string shown() const;  // for messages; long ones are cut

  // The value as one type; nothing where it has another one.
  std::optional<JsonItem> find(std::string_view key) const;
  std::optional<std::uint64_t> as_natural() const;  // an integer of 0 or more
  std::optional<double> as_number() const;          // integers too
  std::optional<std::string> as_text() const;
  std::vector<JsonItem> items() const;                            // a list's
  std::vector<std::pair<std::string, JsonItem>> members() const;  // an object's, sorted by name

  static constexpr std::size_t longest_text = 4096;
  JsonItem at(std::string_view key) const;
  std::uint64_t natural(std::uint64_t least = 0,
                        std::uint64_t most = std::numeric_limits<std::int64_t>::max()) const;
  double number(double least, double most) const;
  bool boolean() const;
  /// Without control characters.
  std::string text(std::size_t most_bytes = longest_text) const;
  std::string any_text() const;
  std::string sha256() const;
  std::vector<JsonItem> list() const;
  std::vector<std::pair<std::string, JsonItem>> object() const;
  [[noreturn]] void refuse(std::string message, std::string expected = "") const;

 private:
  friend class JsonFile;
  JsonItem(const JsonSource* source, const void* value, std::string keys)
      : source_(source), value_(value), keys_(std::move(keys)) {}
  JsonItem below(const std::string& key, const void* value) const;

  const JsonSource* source_;
  const void* value_;  // the library's, whose header stays in json_file.cpp
  std::string keys_;
};

/// A whole document. Objects that have a name twice are no documents.
class JsonFile {
 public:
  /// Throws Error{runtime} where the file cannot be read, else as below.
  explicit JsonFile(const std::string& path, const JsonLimits& limits = {});
  /// Throws an Error of the source's kind where the text is no JSON, or above the limits.
  JsonFile(JsonSource source, std::string_view text, const JsonLimits& limits = {});
  ~JsonFile();
  JsonFile(JsonFile&&) noexcept;
  JsonFile& operator=(JsonFile&&) noexcept;

  JsonItem root() const;

 private:
  struct Document;
  std::unique_ptr<const Document> document_;
};

}  // namespace tandem
