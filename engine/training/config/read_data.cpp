// Reads the [data] section.
#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "engine/formats/files.h"
#include "engine/graph/selector.h"
#include "engine/training/config/config_reader.h"

namespace tandem {
namespace {

using Kind = ConfigValue::Kind;

class DataReader {
 public:
  DataReader(const TableReader& table, DataConfig& to) : table_(table), to_(to) {}

  void read() {
    to_.where = table_.where();
    table_.read("kind", to_.kind);
    read_columns();
    root_ = table_.folder();
    if (const ConfigValue* root = table_.valid("root")) root_ = table_.resolve(*root);
    std::int64_t workers = to_.workers;
    table_.read("workers", workers);
    to_.workers = static_cast<int>(workers);
    table_.read("drop_last", to_.drop_last);

    const TableReader train = table_.table("train"), eval = table_.table("eval");
    read_files(train, to_.train);
    if (const ConfigValue* shuffle = train.valid("shuffle")) {
      if (const auto parsed = parse_shuffle(shuffle->text)) {
        to_.shuffle = *parsed;
      } else {
        train.report(shuffle->where, "shuffle", "not a way to shuffle",
                     "\"full\", \"none\" or \"buffer 1000\"", describe(*shuffle));
      }
    }
    if (eval.exists()) {
      read_files(eval, to_.eval);
      eval.read("fraction", to_.eval_fraction);
      if (const ConfigValue* fraction = eval.valid("fraction")) {
        if (eval.find("files")) {
          eval.report(fraction->where, "fraction",
                      "either files or a fraction of the training data");
        } else if (to_.eval_fraction <= 0 || to_.eval_fraction >= 1) {
          eval.report(fraction->where, "fraction", "out of range", "above 0 and below 1",
                      toml_number(to_.eval_fraction));
        }
      } else if (!eval.find("files")) {
        eval.report(eval.where(), "", "neither files nor a fraction of the training data");
      }
    }
    read_fields();
  }

 private:
  void read_columns() {
    if (!is_table(to_.kind)) {
      for (const std::string_view key : {"columns", "header", "on_bad", "cache"}) {
        if (!table_.find("kind") || !table_.valid("kind") || !table_.valid(key)) continue;
        table_.report(table_.find(key)->where, key, "only csv and tsv have this");
      }
      return;
    }
    to_.cache = (std::filesystem::path(table_.folder()) / "runs" / "data").string();
    table_.read_path("cache", to_.cache);
    table_.read("on_bad", to_.on_bad);
    const ConfigValue* columns = table_.find("columns");
    to_.header = columns == nullptr;
    table_.read("header", to_.header);
    if (!columns) {
      if (!to_.header) {
        table_.report(table_.where(), "columns", "nothing names the columns",
                      "columns, or header = true");
      }
      return;
    }
    if (columns->kind != Kind::list) return;
    for (const ConfigValue& item : columns->items) {
      for (std::string& name : expand_names(item)) {
        if (std::find(to_.columns.begin(), to_.columns.end(), name) != to_.columns.end()) {
          table_.report(item.where, "columns", "two columns have the same name", "", name);
        }
        to_.columns.push_back(std::move(name));
      }
    }
    if (columns->items.empty()) table_.report(columns->where, "columns", "no column is named");
  }

  std::vector<std::string> expand_names(const ConfigValue& text) {
    if (text.kind != Kind::string) return {};
    auto names = expand_braces(text.text);
    if (names) return *std::move(names);
    table_.report(text.where, "columns", "braces hold {0..9} or {a,b}", "", describe(text));
    return {};
  }

  void read_files(const TableReader& split, SplitConfig& to) {
    const ConfigValue* files = split.valid("files");
    if (!files) return;
    const bool needs_names = to_.kind == DataKind::idx && table_.valid("kind");
    if (files->kind != Kind::table) {
      if (needs_names) {
        split.report(files->where, "files", "idx files hold one array each", "a table", "",
                     "write { images = \"…-idx3-ubyte.gz\", labels = \"…-idx1-ubyte.gz\" }");
        return;
      }
      to.files.push_back({"", paths(split, *files), files->where});
    } else if (to_.kind == DataKind::cifar) {
      split.report(files->where, "files", "cifar files hold images and labels together", "a list");
    } else if (is_table(to_.kind)) {
      split.report(files->where, "files", "the files of a table follow each other", "a list");
    } else {
      for (const ConfigValue::Member& member : files->members) {
        if (member.value.kind == Kind::invalid) continue;
        to.files.push_back({member.key, paths(split, member.value), member.where});
      }
    }
    const bool any = std::any_of(to.files.begin(), to.files.end(),
                                 [](const ArrayFiles& array) { return !array.paths.empty(); });
    if (!any) split.report(files->where, "files", "no file is named");
  }

  std::vector<std::string> paths(const TableReader& split, const ConfigValue& value) {
    std::vector<std::string> result;
    const auto add = [&](const ConfigValue& text) {
      if (text.kind != Kind::string) return;
      std::string literal = split.resolve(text, root_);
      if (path_exists(literal)) {  // braces and all
        result.push_back(std::move(literal));
        return;
      }
      const auto names = expand_braces(text.text);
      if (!names) {
        split.report(text.where, "files", "braces hold {0..9} or {a,b}", "", describe(text));
        return;
      }
      for (const std::string& name : *names) {
        ConfigValue one = text;
        one.text = name;
        result.push_back(split.resolve(one, root_));
      }
    };
    if (value.kind == Kind::list) {
      for (const ConfigValue& item : value.items) add(item);
    } else {
      add(value);
    }
    return result;
  }

  void read_fields() {
    const ConfigValue* fields = table_.valid("fields");
    if (!fields) {
      if (is_table(to_.kind) && !table_.find("fields")) {
        table_.report(
            table_.where(), "fields", "nothing says what the columns are for", "", "",
            "write [data.fields] with label = { from = \"label\", as = [ \"float32\" ] }");
      }
      return;
    }
    for (const ConfigValue::Member& member : fields->members) {
      if (member.value.kind == Kind::invalid) continue;
      FieldConfig field{.name = member.key, .where = member.where};
      if (member.value.kind == Kind::string) {
        take_source(member.value, field);
      } else {
        const TableReader table(&member.value, table_.path() + ".fields." + member.key,
                                table_.folder(), table_.errors());
        read_field(table, field);
      }
      check_source(field);
      to_.fields.push_back(std::move(field));
    }
  }

  void read_field(const TableReader& table, FieldConfig& to) {
    const ConfigValue* from = table.valid("from");
    if (from && from->kind == Kind::list && from->items.empty()) {
      table.report(from->where, "from", "no array is named", "string");
    } else if (from && from->kind == Kind::list && !is_table(to_.kind)) {
      table.report(from->where, "from", "only columns of csv and tsv can be stacked", "one array",
                   "a list");
    } else if (from) {
      take_source(*from, to);
    }
    read_functions(table, "as", to.as);
    read_functions(table, "augment", to.augment);
    table.read("out_of_range", to.out_of_range);
    for (Transform& function : to.as) {
      if (function.kind != TransformKind::vocabulary || !function.word.empty()) continue;
      function.word = to.name;  // its own
    }
  }

  void take_source(const ConfigValue& from, FieldConfig& to) {
    if (!is_table(to_.kind)) {
      to.from = from.text;
      return;
    }
    if (from.kind == Kind::list) {
      for (const ConfigValue& item : from.items) {
        for (std::string& name : expand_names(item)) to.columns.push_back(std::move(name));
      }
    } else {
      to.columns = expand_names(from);
    }
    to.stacked = from.kind == Kind::list || to.columns.size() > 1;
    if (!to.stacked && !to.columns.empty()) to.from = to.columns[0];
  }

  void read_functions(const TableReader& table, std::string_view key, std::vector<Transform>& to) {
    const ConfigValue* list = table.valid(key);
    if (!list) return;
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      const ConfigValue& item = list->items[i];
      if (item.kind != Kind::string) continue;
      const std::string place = std::string(key) + "." + std::to_string(i);
      try {
        Transform transform = parse_transform(item.text);
        transform.where = item.where;
        const bool random = transform.kind == TransformKind::random_crop ||
                            transform.kind == TransformKind::random_flip;
        if (key == "as" && random) {
          table.report(item.where, place, "random functions act in training only", "", item.text,
                       "move it to `augment`");
        } else if (key == "augment" && !random && transform.kind != TransformKind::resize) {
          table.report(item.where, place, "not a random function",
                       "random_crop, random_flip or resize", item.text, "move it to `as`");
        }
        to.push_back(std::move(transform));
      } catch (const std::invalid_argument& problem) {
        table.report(item.where, place, problem.what(), "", toml_string(item.text));
      }
    }
  }

  // What the files hold is known before they are opened for idx and cifar.
  void check_source(const FieldConfig& field) {
    for (const std::string& column : field.columns) {
      if (to_.columns.empty()) break;  // the header will tell
      if (std::find(to_.columns.begin(), to_.columns.end(), column) != to_.columns.end()) continue;
      const std::string near = nearest_name(column, to_.columns);
      table_.report(field.where, "fields." + field.name, "no such column", "one of data.columns",
                    column, near.empty() ? "" : "did you mean \"" + near + "\"?");
    }
    if (is_table(to_.kind)) return;
    std::vector<std::string> arrays;
    if (to_.kind == DataKind::cifar) arrays = {"images", "labels", "coarse_labels"};
    for (const ArrayFiles& array : to_.train.files) {
      if (!array.name.empty()) arrays.push_back(array.name);
    }
    if (arrays.empty() || field.from.empty()) return;
    if (std::find(arrays.begin(), arrays.end(), field.from) != arrays.end()) return;
    std::string expected;
    for (const std::string& array : arrays) expected += (expected.empty() ? "" : ", ") + array;
    const std::string near = nearest_name(field.from, arrays);
    table_.report(field.where, "fields." + field.name, "no such array in the files", expected,
                  field.from, near.empty() ? "" : "did you mean \"" + near + "\"?");
  }

  const TableReader& table_;
  DataConfig& to_;
  std::string root_;
};

}  // namespace

void read_data_config(const TableReader& root, std::optional<DataConfig>& to) {
  const TableReader table = root.table("data");
  if (!table.exists()) return;
  DataReader(table, to.emplace()).read();
}

}  // namespace tandem
