#include "api/trained/recorded_fields.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>

#include "api/init/facts.h"
#include "api/init/guessed_run.h"
#include "engine/config/keys/config_names.h"
#include "engine/config/keys/config_value.h"
#include "engine/config/keys/key_forms.h"
#include "engine/config/keys/key_visitor.h"
#include "engine/config/kinds/metric_keys.h"
#include "engine/data/table_plan.h"
#include "engine/data/tokens/read_text.h"
#include "engine/formats/files.h"
#include "engine/graph/error.h"

namespace tandem::api {
namespace {

constexpr const char *kind_key = "data.kind", *terms_key = "loss.terms";
constexpr std::string_view fields_key = "data.fields.", loss_fields_key = "loss.fields.";
/// Keys of [data], [eval] and of the model that are recorded unchanged, next to the fields.
constexpr const char* plain_keys[] = {"data.columns", "data.decimal",  "data.thousands",
                                      "data.missing", "data.template", "data.begin",
                                      "data.system",  "data.length",   "data.too_long",
                                      "data.pad",     "eval.metrics",  "model.bind"};
// Kinds of data whose fields are recorded: their arrays have names, or their columns.
constexpr std::string_view kinds[] = {"csv", "tsv", "jsonl", "npz", "chat"};

std::string toml_of(const FieldConfig& field) {
  std::vector<std::string> functions;
  for (const Transform& transform : field.as) functions.push_back(text_without_file(transform));
  std::string text =
      "{ from = " + (field.stacked ? toml_list_of_strings(field.columns) : toml_string(field.from));
  if (!functions.empty()) text += ", as = " + toml_list_of_strings(functions);
  if (field.out_of_range == OutOfRange::zero) text += ", out_of_range = \"zero\"";
  return text + " }";
}

bool is_said(const std::vector<std::string>& overrides, const std::string& key) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const std::string& item) { return says(item, key); });
}

/// Data fields that the loss and metrics read.
std::set<std::string> fields_of_loss(const RunConfig& config) {
  std::set<std::string> names;
  for (const LossTerm& term : config.loss.terms) {
    for (const std::string& field : term.fields()) names.insert(field);
  }
  for (const MetricConfig& metric : config.eval.metrics) {
    for (const std::string& field : metric.fields()) names.insert(field);
  }
  return names;
}

/// The list that a visit writes as "KEY = [ … ]", on one line.
std::string list_of(const Visit& visit) {
  std::string text = write_keys(visit);
  text.erase(0, std::min(text.find('['), text.size()));
  text.erase(text.find_last_of(']') + 1);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// Lengths of the model's free dimensions, or "" for none; with buckets, the length of the longest.
std::string bind_of(const RunConfig& config) {
  std::map<std::string, std::int64_t> bind = config.model.bind;
  const BucketConfig& buckets = config.data->buckets;
  if (!buckets.lengths.empty() && !buckets.dimension.empty())
    bind.emplace(buckets.dimension, buckets.lengths.back());
  std::string text;
  for (const auto& [name, length] : bind)
    text += (text.empty() ? "{ " : ", ") + toml_key(name) + " = " + std::to_string(length);
  return text.empty() ? text : text + " }";
}

void add_loss(const RunConfig& config, const std::vector<std::string>& outputs,
              std::map<std::string, std::string>& metadata) {
  LossConfig loss{.terms = config.loss.terms};
  const bool is_kept =
      outputs.empty() || std::all_of(loss.terms.begin(), loss.terms.end(), [&](const auto& term) {
        return std::all_of(term.values.begin(), term.values.end(), [&](const std::string& value) {
          return std::find(outputs.begin(), outputs.end(), value) != outputs.end();
        });
      });
  if (loss.terms.empty() || !is_kept) return;
  metadata[terms_key] = list_of([&](KeyVisitor& v) { visit(v, loss); });
  std::vector<MetricConfig> metrics = config.eval.metrics;
  if (!metrics.empty())
    metadata["eval.metrics"] = list_of([&](KeyVisitor& v) { visit_metrics(v, metrics); });
  for (const std::string& name : fields_of_loss(config)) {
    const auto& all = config.data->fields;
    const auto field = std::find_if(all.begin(), all.end(),
                                    [&](const FieldConfig& one) { return one.name == name; });
    // Without fields, arrays serve as fields under their own names.
    metadata[std::string(loss_fields_key) + name] =
        field == all.end() ? toml_string(name) : toml_of(*field);
  }
}

/// Records how cells of a table are written.
void add_cells(const TextTable& table, bool has_marks,
               std::map<std::string, std::string>& metadata) {
  if (has_marks) {
    if (!table.columns.empty()) metadata["data.columns"] = toml_list_of_strings(table.columns);
    metadata["data.decimal"] = toml_string(choice_name(table.cells.decimal));
    metadata["data.thousands"] = toml_string(choice_name(table.cells.thousands));
  }
  if (table.cells.missing) metadata["data.missing"] = toml_list_of_strings(*table.cells.missing);
}

/// Records how conversations become samples. Keys that tell only which of them share a sample or
/// are left out, and the tokenizer, which is a file of its own, are not recorded.
void add_chat(ChatFiles chat, std::map<std::string, std::string>& metadata) {
  std::istringstream lines(write_keys([&](KeyVisitor& v) { visit(v, chat); }));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find(' '), value = line.find_first_not_of(" =", end);
    const std::string key = "data." + line.substr(0, end);
    if (std::find(std::begin(plain_keys), std::end(plain_keys), key) != std::end(plain_keys))
      metadata[key] = line.substr(value);
  }
}

bool is_delimited(std::string_view kind) { return kind == "csv" || kind == "tsv"; }
/// The form that a file's name shows.
std::string_view form_of(std::string_view kind) {
  return is_delimited(kind) ? "csv" : kind == ChatFiles::name ? JsonLines::name : kind;
}
bool are_alike(std::string_view one, std::string_view other) {
  return form_of(one) == form_of(other);
}

[[noreturn]] void refuse_kind_of(const std::string& data, const std::string& trained,
                                 const std::string& given) {
  throw Error(
      ErrorKind::usage,
      Diagnostic{.message = "the export says how its inputs are made of data of another kind",
                 .file = data,
                 .expected = trained,
                 .got = given,
                 .fix = "write the data as " + trained +
                        ", or add --config train.toml, whose [data] says how this is read"});
}

RecordedKeys all_keys(const std::map<std::string, std::string>& metadata, const std::string& stem,
                      const std::vector<std::string>& overrides) {
  RecordedKeys recorded;
  const std::string& kind = metadata.at(kind_key);
  const auto add = [&](const std::string& key, const std::string& text) {
    if (!is_said(overrides, key)) recorded.keys.push_back(key + "=" + text);
  };
  const auto add_field = [&](std::string_view prefix, const std::string& key,
                             const std::string& text) {
    add(std::string(fields_key) + toml_key(key.substr(prefix.size())), text);
  };
  recorded.has_loss = metadata.contains(terms_key) && !is_said(overrides, terms_key);
  for (const auto& [key, text] : metadata) {
    if (key.starts_with(fields_key)) add_field(fields_key, key, text);
    if (recorded.has_loss && key.starts_with(loss_fields_key))
      add_field(loss_fields_key, key, text);
  }
  if (recorded.has_loss) add(terms_key, metadata.at(terms_key));
  for (const char* key : plain_keys) {
    const auto found = metadata.find(key);
    const bool is_of_loss = std::string_view(key).starts_with("eval.");
    if (found != metadata.end() && (!is_of_loss || recorded.has_loss)) add(key, found->second);
  }
  // A file named .tsv may have any separator, and lines of JSON may be conversations.
  if (kind == CsvTable::name || form_of(kind) == JsonLines::name) add(kind_key, toml_string(kind));
  const std::string tokenizer = stem + tokenizer_file;
  if (metadata.contains(tokenizer_file) && path_exists(tokenizer))
    add("data.tokenizer", toml_string(tokenizer));
  return recorded;
}

}  // namespace

std::map<std::string, std::string> fields_metadata(const RunConfig& config,
                                                   const std::vector<std::string>& outputs) {
  std::map<std::string, std::string> metadata;
  if (!config.data) return metadata;
  add_loss(config, outputs, metadata);
  const std::string_view kind = config.data->kind_name();
  const bool is_recorded = std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
  const std::set<std::string> of_loss = fields_of_loss(config);
  for (const FieldConfig& field : config.data->fields) {
    if (!is_recorded || of_loss.contains(field.name) || (!field.stacked && field.from.empty()))
      continue;
    metadata[std::string(fields_key) + field.name] = toml_of(field);
  }
  if (metadata.empty()) return metadata;
  metadata[kind_key] = kind;
  if (const std::string bind = bind_of(config); is_recorded && !bind.empty())
    metadata["model.bind"] = bind;
  const TextTable* const table = config.data->table();
  if (table != nullptr && is_recorded) add_cells(*table, is_delimited(kind), metadata);
  if (const auto* chat = std::get_if<ChatFiles>(&config.data->kind)) add_chat(*chat, metadata);
  return metadata;
}

RecordedKeys recorded_keys(const std::map<std::string, std::string>& metadata,
                           const std::string& data, const std::string& stem,
                           const std::vector<std::string>& overrides) {
  RecordedKeys recorded;
  const auto kind = metadata.find(kind_key);
  if (kind == metadata.end()) return recorded;
  const auto is_input = [&](const std::string& key) { return key.starts_with(fields_key); };
  const std::string given = kind_of_data(data);
  if (given.empty()) return recorded;  // inspecting the data reports its kind
  if (!are_alike(kind->second, given)) {
    for (const auto& [key, text] : metadata) {
      if (is_input(key) && !is_said(overrides, key)) refuse_kind_of(data, kind->second, given);
    }
    return recorded;
  }
  return all_keys(metadata, stem, overrides);
}

std::vector<std::string> recorded_chat_keys(const std::map<std::string, std::string>& metadata,
                                            const std::string& stem,
                                            const std::vector<std::string>& overrides) {
  const auto kind = metadata.find(kind_key);
  const bool is_chat = kind != metadata.end() && kind->second == ChatFiles::name;
  return is_chat ? all_keys(metadata, stem, overrides).keys : std::vector<std::string>();
}

}  // namespace tandem::api
