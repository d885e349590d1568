// The keys of [data] that all tables have, and those of kind = "jsonl" and "lines".
#include <filesystem>

#include "engine/config/keys/key_visitor.h"
#include "engine/config/kinds/tokenizer_key.h"
#include "engine/config/run_config.h"

namespace tandem {

void visit_cells(KeyVisitor& v, CellText& c) {
  v.key("decimal", c.decimal, written_if(c.decimal != DecimalMark::point),
        "the mark before the fraction of a number");
  v.key("thousands", c.thousands, written_if(c.thousands != ThousandsMark::none),
        "the mark between groups of three digits");
  v.when_read([&](const TableReader& table) {
    const bool are_commas = c.decimal == DecimalMark::comma && c.thousands == ThousandsMark::comma;
    const bool are_points = c.decimal == DecimalMark::point && c.thousands == ThousandsMark::point;
    if (!are_commas && !are_points) return;
    const ConfigValue* const place = table.find("thousands");
    table.report(place ? place->where : table.where(), "thousands",
                 "the same mark as data.decimal");
  });
}

void visit_rows(KeyVisitor& v, TextTable& c) {
  v.when_read([&](const TableReader& table) {
    c.cache = (std::filesystem::path(table.folder()) / "runs" / "data").string();
  });
  v.key("missing", c.cells.missing,
        by_default("(of numbers the usual ones: NA, N/A, NaN, None, null, -, ?)"),
        written_if(c.cells.missing.has_value()),
        "spellings of an empty cell, in every column; spaces around them do not count");
  v.key("on_bad", c.on_bad, on_bad_help);
  v.key("cache", path(c.cache), by_default("(runs/data in the folder of this file)"),
        "folder of prepared tables");
  v.key("tokenizer", tokenizer_path(c.tokenizer), written_if(!c.tokenizer.empty()),
        "tokenizer.json of Hugging Face, for the function `tokens`");
}

void visit(KeyVisitor& v, JsonLines& c) { visit_rows(v, c); }
void visit(KeyVisitor& v, TextLines& c) { visit_rows(v, c); }

}  // namespace tandem
