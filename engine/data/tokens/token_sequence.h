// Consecutive token ids, in a file or in memory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/data_config.h"
#include "engine/formats/byte_stream.h"

namespace tandem {

/// Any number of threads may read.
class TokenSequence {
 public:
  virtual ~TokenSequence() = default;
  virtual std::int64_t tokens() const = 0;
  /// Writes `count` ids from `first` on, which are there. Throws Error{data} with the file where
  /// it has become shorter.
  virtual void read(std::int64_t first, std::int64_t count, std::int64_t* to) const = 0;
  /// For messages.
  virtual const std::string& file() const = 0;
  /// Where in the file a token is; "" where this is not known.
  virtual std::string place(std::int64_t token) const = 0;
};

/// Ids of two or four bytes in a file, of which only the requested ones are read.
class TokenFile final : public TokenSequence {
 public:
  /// Throws Error{runtime} where the file cannot be read, Error{data} where its size is not a whole
  /// number of ids.
  TokenFile(const std::string& path, TokenElement element, std::int64_t header_bytes);

  std::int64_t tokens() const override { return tokens_; }
  void read(std::int64_t first, std::int64_t count, std::int64_t* to) const override;
  const std::string& file() const override { return file_.path(); }
  std::string place(std::int64_t token) const override;

 private:
  InputFile file_;
  std::int64_t element_bytes_, header_bytes_, tokens_;
};

/// Ids in memory, made of the text of a file.
class TokenList final : public TokenSequence {
 public:
  TokenList(std::string file, std::vector<std::uint32_t> ids)
      : file_(std::move(file)), ids_(std::move(ids)) {}

  std::int64_t tokens() const override { return static_cast<std::int64_t>(ids_.size()); }
  void read(std::int64_t first, std::int64_t count, std::int64_t* to) const override;
  const std::string& file() const override { return file_; }
  std::string place(std::int64_t) const override { return ""; }

 private:
  std::string file_;
  std::vector<std::uint32_t> ids_;
};

}  // namespace tandem
