// The keys of [data] that say how tokens become samples, with kind = "tokens" or "text".
#include "engine/config/keys/key_visitor.h"
#include "engine/config/kinds/tokenizer_key.h"
#include "engine/config/run_config.h"

namespace tandem {
namespace {

constexpr std::int64_t longest_window = 1 << 24;

void check_windows(const TableReader& table, const TokenWindows& c) {
  if (!c.cross_documents && c.document_end < 0) {
    table.report(table.find("cross_documents")->where, "cross_documents",
                 "nothing says where documents end", "data.document_end, the id of the token", "",
                 "50256 is that of GPT-2");
  }
}

/// One of the two words, or a path.
KeyForm text_tokenizer(std::string& member) {
  return {path_value,
          [&](const Found& found) {
            const std::string& text = found.value.text;
            const bool is_word = text == TextFiles::characters || text == TextFiles::bytes;
            if (text.empty()) found.report("no tokenizer is named");
            member =
                is_word || text.empty() ? text : tokenizer_in(found.table.resolve(found.value));
          },
          text_or_none(member).write};
}

}  // namespace

static void visit_windows(KeyVisitor& v, TokenWindows& c) {
  v.key("length", c.length, required, between(1, static_cast<double>(longest_window)),
        "tokens of a sample");
  v.key("stride", c.stride, between(1, static_cast<double>(longest_window)),
        by_default("(the length)"), written_if(c.stride > 0),
        "tokens from the start of a sample to that of the next one");
  v.key("shift", c.shift, between(0, static_cast<double>(longest_window)),
        "how many tokens the targets are ahead");
  v.key("document_end", c.document_end, at_least(0), by_default("(none)"),
        written_if(c.document_end >= 0), "the id that ends each document");
  v.key("cross_documents", c.cross_documents,
        "false: each document has samples of its own, the last of which is padded");
  v.key("pad", c.pad, at_least(0), "the id of the padding; such targets are -100, and 0 in `mask`");
  v.when_read([&](const TableReader& table) { check_windows(table, c); });
}

void visit(KeyVisitor& v, TokenFiles& c) {
  v.key("element", c.element, "how an id is stored, with its lowest byte first");
  v.key("vocabulary", c.vocabulary, at_least(0), by_default("(as the model takes them)"),
        written_if(c.vocabulary > 0), "ids are below this number");
  v.key("header_bytes", c.header_bytes, at_least(0),
        "bytes in front of the ids of each file (1024 in files of llm.c)");
  visit_windows(v, c.windows);
}

void visit(KeyVisitor& v, TextFiles& c) {
  v.key("tokenizer", text_tokenizer(c.tokenizer), required,
        "\"characters\" (those of the training data), \"bytes\", or a tokenizer.json");
  v.key("documents", c.documents,
        "what is encoded at once, and ends with document_end if that is set");
  visit_windows(v, c.windows);
}

}  // namespace tandem
