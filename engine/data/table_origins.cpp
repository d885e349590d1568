// Which text of which column an id of a prepared table was made of.
#include <algorithm>
#include <stdexcept>

#include "engine/data/prepare_table.h"
#include "engine/formats/files.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

/// The text of an id in the vocabulary's file; "" where it has none, as for unknown words.
std::string vocabulary_text(const PreparedTable& table, const TableField& field, std::size_t column,
                            std::int64_t id) {
  const VocabularyPlan& plan = table.plan.vocabularies[*field.vocabulary];
  const SavedVocabulary& saved = table.vocabularies.at(*field.vocabulary);
  if (id < 1 || saved.path.empty()) return "";
  try {
    const std::vector<std::string> no_names;
    const Vocabulary vocabulary = Vocabulary::parse(
        read_file(saved.path), plan.by_value ? no_names : table.plan.columns, plan.by_table);
    return std::string(
        vocabulary.text_of(plan.by_value ? 0u : static_cast<std::uint32_t>(column), id));
  } catch (const std::invalid_argument&) {  // the code that reads it next reports this
    return "";
  }
}

}  // namespace

std::string origin_in_table(const PreparedTable& table, const std::string& name,
                            std::int64_t element, std::int64_t id) {
  const auto& fields = table.plan.fields;
  const auto field = std::find_if(fields.begin(), fields.end(),
                                  [&](const TableField& known) { return known.name == name; });
  if (field == fields.end() || element < 0) return "";
  const auto place = static_cast<std::size_t>(element / field->values_of_a_cell());
  if (place >= field->columns.size()) return "";
  const std::size_t column = field->columns[place];
  const std::string of_column = "the column \"" + table.plan.columns[column] + "\"";
  const std::string text = field->vocabulary ? vocabulary_text(table, *field, column, id) : "";
  return text.empty() ? "of " + of_column : "the text \"" + text + "\" of " + of_column;
}

}  // namespace tandem
