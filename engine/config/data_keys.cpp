// The keys of [data].
#include <algorithm>
#include <optional>
#include <stdexcept>

#include "engine/config/keys/key_visitor.h"
#include "engine/config/kinds/file_keys.h"
#include "engine/config/kinds/order_keys.h"
#include "engine/data/functions/field_function.h"
#include "engine/formats/files.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"

namespace tandem {

DEFINE_COPIES(DataConfig);
bool DataConfig::operator==(const DataConfig&) const = default;

std::vector<std::string> columns_of_fields(const DataConfig& data) {
  std::vector<std::string> columns;
  for (const FieldConfig& field : data.fields) {
    for (const std::string& column : field.columns) {
      if (std::find(columns.begin(), columns.end(), column) == columns.end())
        columns.push_back(column);
    }
  }
  return columns;
}

namespace {

using Kind = ConfigValue::Kind;

KeyForm column_names(std::vector<std::string>& member) {
  KeyForm result = form(member);
  result.read = [&](const Found& found) {
    for (const ConfigValue& item : found.value.items) {
      for (std::string& name : expand_names(found, item)) {
        if (std::find(member.begin(), member.end(), name) != member.end())
          Found{found.table, found.key, item}.report("two columns have the same name", "", name);
        member.push_back(std::move(name));
      }
    }
    if (found.value.items.empty()) found.report("no column is named");
  };
  return result;
}

/// 0: unset.
KeyForm above_zero(double& member) {
  KeyForm result = form(member);
  result.write = [&member] { return member > 0 ? toml_number(member) : std::string(); };
  return result;
}

void check_held_out(const TableReader& table, const DataConfig& c) {
  const ConfigValue *files = table.find("files"), *fraction = table.valid("fraction");
  if (!fraction) {
    if (!files)
      table.report(table.where(), "", "neither files nor a fraction of the training data");
  } else if (files) {
    table.report(fraction->where, "fraction", "either files or a fraction of the training data", "",
                 "", "data.eval={files=[…]} on the command line replaces both");
  } else if (c.eval_fraction <= 0 || c.eval_fraction >= 1) {
    table.report(fraction->where, "fraction", "out of range", "above 0 and below 1",
                 toml_number(c.eval_fraction));
  }
}

/// An array; of a text table a column, or columns that make an axis.
KeyForm source(FieldConfig& field, const DataConfig& data) {
  return {string_value | list_value,
          [&](const Found& found) {
            const bool is_list = found.value.kind == Kind::list;
            if (is_list && found.value.items.empty())
              return found.report("no array is named", "string");
            if (is_list && !data.table())
              return found.report("only columns of tables can be stacked", "one array", "a list");
            field.from = found.value.text;
            if (!data.table()) return;
            if (!is_list) field.columns = expand_names(found, found.value);
            for (const ConfigValue& item : found.value.items) {
              for (std::string& name : expand_names(found, item))
                field.columns.push_back(std::move(name));
            }
            field.stacked = is_list || field.columns.size() > 1;
            field.from = field.stacked || field.columns.empty() ? "" : field.columns[0];
          },
          [&] {
            return field.stacked ? toml_list_of_strings(field.columns) : toml_string(field.from);
          }};
}

void check_place(const Found& found, const Transform& function) {
  const bool random = function.kind->is_random;
  if (found.key.starts_with("as") && random) {
    found.report("random functions act in training only", "", found.value.text,
                 "move it to `augment`");
  } else if (found.key.starts_with("augment") && !random && !function.kind->may_augment) {
    std::string names;
    for (const FieldFunctionKind& kind : all_field_functions()) {
      if (kind.is_random || kind.may_augment)
        names += (names.empty() ? "" : ", ") + std::string(kind.name);
    }
    names.replace(names.rfind(", "), 2, " or ");
    found.report("not a random function", names, found.value.text, "move it to `as`");
  }
}

/// The function with the file that it names under an absolute path, as keys have theirs.
std::string with_absolute_file(const Found& found) {
  std::string text = found.value.text;
  const std::optional<std::string> file = Call(text).take_text("file");
  if (!file || file->empty()) return text;
  ConfigValue path = found.value;
  path.text = *file;
  const std::size_t place = text.find(*file, text.find("file"));
  return text.replace(place, file->size(), found.table.resolve(path));
}

void read_function(const Found& found, std::vector<Transform>& to) {
  if (found.value.kind != Kind::string) return;
  try {
    Transform function = parse_transform(with_absolute_file(found));
    function.where = found.value.where;
    check_place(found, function);
    to.push_back(std::move(function));
  } catch (const std::invalid_argument& problem) {
    found.report(problem.what(), "", toml_string(found.value.text));
  }
}

KeyForm functions(std::vector<Transform>& member) {
  return {list_value,
          [&](const Found& found) {
            for (std::size_t i = 0; i < found.value.items.size(); ++i) {
              const std::string place = std::string(found.key) + "." + std::to_string(i);
              read_function({found.table, place, found.value.items[i]}, member);
            }
          },
          [&] { return toml_texts(member, &Transform::text); }};
}

void report_unknown(const TableReader& table, const FieldConfig& field, std::string message,
                    std::string expected, const std::string& name,
                    const std::vector<std::string>& known) {
  table.report(field.where, "", std::move(message), std::move(expected), name,
               did_you_mean(nearest_name(name, known)));
}

/// What the files hold is known before they are opened for idx and cifar, and where keys name it.
void check_source(const TableReader& table, const FieldConfig& field, const DataConfig& data) {
  if (const TextTable* table_kind = data.table()) {
    const std::vector<std::string>& known = table_kind->columns;
    for (const std::string& column : field.columns) {
      if (known.empty()) break;  // the header will tell
      if (std::find(known.begin(), known.end(), column) == known.end())
        report_unknown(table, field, "no such column", "one of data.columns", column, known);
    }
    return;
  }
  std::vector<std::string> arrays =
      words_of(std::visit([](const auto& kind) { return kind.arrays; }, data.kind));
  for (const ArrayFiles& array : data.train.files) {
    if (!array.name.empty()) arrays.push_back(array.name);
  }
  if (arrays.empty() || field.from.empty()) return;
  if (std::find(arrays.begin(), arrays.end(), field.from) != arrays.end()) return;
  report_unknown(table, field, "no such array in the files", joined(arrays), field.from, arrays);
}

void visit_field(KeyVisitor& v, FieldConfig& field, const DataConfig& data) {
  static const std::string as_help = field_functions_help(false);
  static const std::string augment_help = field_functions_help(true);
  v.key("from", source(field, data), required,
        parts("[]", string_value, "a column; {1..13} and {a,b} stand for several"),
        "the array it is made of; or the column, or columns that make an axis");
  v.key("as", functions(field.as), written_if(!field.as.empty()),
        parts("[]", string_value, as_help), "functions, in order");
  v.key("augment", functions(field.augment), written_if(!field.augment.empty()),
        parts("[]", string_value, augment_help),
        "random functions, in training only; before `as`, but after a reshape or resize that it "
        "starts with");
  v.key("out_of_range", field.out_of_range, written_if(field.out_of_range != OutOfRange::error),
        "an id that is no row of the table it looks up: an error, or zeros without a gradient");
  v.when_read([&](const TableReader& table) { check_source(table, field, data); });
}

}  // namespace

/// Kinds without members have no keys of their own.
template <class Kind>
requires std::is_empty_v<Kind>
static void visit(KeyVisitor&, Kind&) {}
static void visit(KeyVisitor& v, TextTable& c) {
  visit_cells(v, c.cells);
  v.when_read([&](const TableReader& table) { c.header = table.find("columns") == nullptr; });
  v.key("columns", column_names(c.columns), by_default("(the first row names them)"),
        written_if(!c.columns.empty()),
        parts("[]", string_value, "a name; {1..13} and {a,b} stand for several"),
        "names of the columns, in order");
  v.key("header", c.header, by_default("(true without data.columns)"),
        "the first row of every file names the columns");
  visit_rows(v, c);
  v.when_read([&](const TableReader& table) {
    if (!c.header && !table.find("columns")) {
      table.report(table.where(), "columns", "nothing names the columns",
                   "columns, or header = true");
    }
  });
}

static void visit(KeyVisitor& v, CsvTable& c) {
  v.key("separator", c.separator, also_spelled(separator_spellings),
        written_if(c.separator != Separator::automatic),
        "the mark between cells; auto: the one of these four that the first rows of a file show");
  visit(v, static_cast<TextTable&>(c));
}

std::string_view DataConfig::kind_name() const {
  return std::visit([](const auto& of_kind) { return of_kind.name; }, kind);
}

const TextTable* DataConfig::table() const {
  const auto as_table = [](const auto& of_kind) -> const TextTable* {
    if constexpr (std::is_base_of_v<TextTable, std::decay_t<decltype(of_kind)>>) return &of_kind;
    return nullptr;
  };
  return std::visit(as_table, kind);
}

const std::string* DataConfig::tokenizer_path() const {
  if (table()) return &table()->tokenizer;
  if (text() && text()->has_tokenizer_file()) return &text()->tokenizer;
  return chat() ? &chat()->tokenizer : nullptr;
}

std::int64_t DataConfig::window_length() const {
  return tokens() ? tokens()->windows.length
         : text() ? text()->windows.length
         : chat() ? chat()->length
                  : 0;
}

void visit(KeyVisitor& v, DataConfig& c) {
  std::string root;
  v.place(c.where);
  v.when_read([&](const TableReader& table) { root = table.folder(); });
  v.key("kind", c.kind, required,
        "the files' format; program: no files, a program gives the samples to the library");
  v.key("root", path(root), by_default("(the folder of this file)"), written_if(false),
        "folder that file names are relative to");
  v.of_kind(c.kind);
  v.table(
      "train",
      [&](KeyVisitor& train) {
        visit_files(train, c.train.files, c.kind, root, by_default("(required without sources)"),
                    written_if(c.sources.empty()),
                    "files in order; a table of array = file for single arrays (idx, .npy)");
        visit_order(train, c, root);
      },
      required, "the training data");
  v.table(
      "eval",
      [&](KeyVisitor& eval) {
        visit_files(eval, c.eval.files, c.kind, root, "as data.train.files");
        eval.key("fraction", above_zero(c.eval_fraction), between(0, 1),
                 "hold out this part of the training data instead, chosen by the seed");
        eval.when_read([&](const TableReader& table) { check_held_out(table, c); });
      },
      "the held-out data");
  v.named_tables(
      "fields", c.fields, &FieldConfig::name, "an array's name, or a table with the keys below",
      [&](KeyVisitor& inside, FieldConfig& field) { visit_field(inside, field, c); },
      or_only("from", string_value), by_default("(every array under its own name)"),
      "inputs of the graph and of the loss");
  v.table(
      "mix",
      [&](KeyVisitor& mix) {
        mix.key("mixup", c.mix.mixup, at_least(0),
                "sums of two samples with shares of Beta(a, a), this being a; 0: none");
        mix.key("cutmix", c.mix.cutmix, at_least(0),
                "rectangles of another sample whose area has the same distribution; 0: none. With "
                "both, one or the other");
        mix.key("fields", c.mix.fields, by_default("(all)"), written_if(!c.mix.fields.empty()),
                parts("[]", string_value, "a field of float32"),
                "fields that are mixed, including labels");
      },
      written_if(!(c.mix == MixConfig{})), on_one_line, "training samples mixed with others");
  v.table(
      "buckets", [&](KeyVisitor& buckets) { visit_buckets(buckets, c.buckets); },
      written_if(!c.buckets.lengths.empty()), on_one_line,
      "training batches of samples of about one length, padded to it and not to the longest");
  v.key("workers", c.workers, between(1, 256), "threads that read ahead of the step");
  v.key("drop_last", c.drop_last, "leave out the partial batch at the end of an epoch");
  v.when_read([&](const TableReader& table) {
    if (!c.buckets.lengths.empty() && !(c.mix == MixConfig{})) {
      table.report(c.buckets.where, "buckets", "data.mix would mix samples of several lengths", "",
                   "", "leave one of them out");
    }
    if (const ConfigValue* fields = table.find("fields"); fields && c.is_of_program()) {
      table.report(fields->where, "fields", "the program that trains names the fields", "", "",
                   "leave it out");
    }
    if (std::holds_alternative<JsonLines>(c.kind)) c.table()->columns = columns_of_fields(c);
    if (c.table() && !table.find("fields")) {
      table.report(table.where(), "fields", "nothing says what the columns are for", "", "",
                   "write [data.fields] with label = { from = \"label\", as = [ \"float32\" ] }");
    }
  });
}

}  // namespace tandem
