// Conversations as tokens: a template writes them, a tokenizer makes ids, answers are marked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/chat/chat_template.h"
#include "engine/formats/tokenizer/tokenizer.h"

namespace tandem {

struct ChatTokens {
  std::vector<std::uint32_t> ids;
  std::vector<TextRange> answers;  // the tokens that are learned, ascending, none empty
};

/// Any number of threads may encode, each with a scratch of its own.
class ChatEncoder {
 public:
  struct Scratch {
    EncodeScratch tokens;
    RenderedChat text;
    std::vector<std::size_t> marks;
    std::vector<TokenPlace> places;
  };

  /// `system`: the message for conversations that begin with none; "": none.
  ChatEncoder(ChatTemplate style, std::string system, std::shared_ptr<const Tokenizer> tokenizer)
      : style_(std::move(style)), system_(std::move(system)), tokenizer_(std::move(tokenizer)) {}

  /// The tokens of the template that the tokenizer has not.
  std::vector<std::string> missing_tokens() const;
  /// What is wrong, without its place; else `to` has the tokens. A token that an answer shares with
  /// the text around it belongs to the answer.
  std::optional<Diagnostic> encode(Conversation conversation, Scratch& scratch,
                                   ChatTokens& to) const;
  /// The ids of a conversation that the model is to answer. Returns what is wrong, as above.
  std::optional<Diagnostic> encode_prompt(Conversation conversation, Scratch& scratch,
                                          std::vector<std::uint32_t>& ids) const;
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const ChatTemplate& style() const { return style_; }

 private:
  void add_system(Conversation& conversation) const;

  ChatTemplate style_;
  std::string system_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace tandem
