// The keys of [data] that all tables have, and those of kind = "jsonl" and "lines".
#include <filesystem>

#include "engine/training/config/key_visitor.h"
#include "engine/training/config/run_config.h"

namespace tandem {

void visit_rows(KeyVisitor& v, TextTable& c) {
  v.when_read([&](const TableReader& table) {
    c.cache = (std::filesystem::path(table.folder()) / "runs" / "data").string();
  });
  v.key("on_bad", c.on_bad, on_bad_help);
  v.key("cache", path(c.cache), by_default("(runs/data beside this file)"),
        "folder of prepared tables");
  v.key("tokenizer", path(c.tokenizer), written_if(!c.tokenizer.empty()),
        "tokenizer.json of Hugging Face, for the function `tokens`");
}

void visit(KeyVisitor& v, JsonLines& c) { visit_rows(v, c); }
void visit(KeyVisitor& v, TextLines& c) { visit_rows(v, c); }

}  // namespace tandem
