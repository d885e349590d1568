// Lines of files as samples of conversations: several threads encode them, in the order of the
// files; lines that are wrong are gathered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/data_config.h"
#include "engine/data/chat/chat_samples.h"
#include "engine/data/data_source.h"

namespace tandem {

/// For the files of one split. What is passed in outlives it.
class ChatReader {
 public:
  ChatReader(const ChatFiles& kind, const ChatEncoder& encoder, const ChatWindows& windows,
             const OpenOptions& options)
      : kind_(kind),
        encoder_(encoder),
        options_(options),
        samples_(std::make_shared<ChatSamples>(windows)) {}

  /// Throws Error{data} or Error{runtime} where the file cannot be read, and where a stop was
  /// requested.
  void read(const std::string& path);
  /// The samples of all files; null where lines are wrong, which is reported. Messages say what is
  /// left out or cut off; they are warnings where that is more than one conversation in a hundred.
  std::shared_ptr<const ChatSamples> finish(std::vector<Diagnostic>& errors,
                                            std::vector<std::string>& warnings);

 private:
  struct Line {
    std::int64_t number;
    std::string text;
  };
  /// A line as tokens; or what is wrong with it.
  struct Encoded {
    std::int64_t line;
    ChatTokens tokens = {};
    std::optional<Diagnostic> problem = {};
    bool is_left_out = false;  // longer than a sample
  };
  void encode(const std::vector<Line>& lines);
  Encoded encode(const Line& line, ChatEncoder::Scratch& scratch) const;
  void check_length(Encoded& line) const;
  void take(const Encoded& line);
  void tell(std::vector<std::string>& warnings) const;

  const ChatFiles& kind_;
  const ChatEncoder& encoder_;
  const OpenOptions& options_;
  std::shared_ptr<ChatSamples> samples_;
  std::vector<std::string> files_;    // those read, and the one that is
  std::vector<Diagnostic> problems_;  // the first ones
  std::int64_t bad_ = 0, long_ = 0;   // lines
  std::int64_t longest_left_out_ = 0;
  std::size_t claimed_ = 0;  // bytes that memory was looked for
};

}  // namespace tandem
