// The manifest.json of a prepared table, and the paths of its arrays.
#pragma once

#include <string>

#include "engine/data/prepare_table.h"

namespace tandem {

/// Version of the arrays and the manifest, part of the table's key. Raised where the same
/// configuration and files make other arrays than before (what a function gives, how values are
/// stored or ordered), so that tables of older programs are not taken for current ones.
constexpr int table_format = 4;

/// The arrays of one source file are PREFIX.FIELD and PREFIX.lines.
std::string table_prefix(const std::string& folder, bool eval, std::size_t file);

/// Fills in splits and vocabularies. False where the folder does not hold the whole table, which is
/// made of that many files.
bool read_manifest(PreparedTable& table, std::size_t train_files, std::size_t eval_files);
/// The last file of a folder in the making.
void write_manifest(const PreparedTable& table, const std::string& folder);

}  // namespace tandem
