#include "engine/training/data/table_plan.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "engine/graph/selector.h"
#include "engine/training/config/config_value.h"
#include "engine/training/data/number_functions.h"

namespace tandem {
namespace {

bool is_integer(DType dtype) { return !is_float(dtype) && dtype != DType::boolean; }

/// Of integers of at most 64 bits.
std::int64_t greatest_of(DType dtype) {
  std::int64_t greatest = std::numeric_limits<std::int64_t>::max();
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T> && sizeof(T) < sizeof(std::int64_t)) {
      greatest = static_cast<std::int64_t>(std::numeric_limits<T>::max());
    }
  });
  return greatest;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 40;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return text + (names.size() > most ? ", …" : "");
}

class FieldPlanner {
 public:
  /// `file`: where the names of the columns are from.
  FieldPlanner(const FieldConfig& field, const std::string& file, TablePlan& plan,
               std::vector<Diagnostic>& errors)
      : field_(field), file_(file), plan_(plan), errors_(errors) {}

  void add() {
    const std::size_t before = errors_.size();
    to_.name = field_.name;
    find_columns();
    for (const Transform& function : field_.as) {
      if (ended_) {
        take_rest(function);
      } else {
        take(function);
      }
    }
    to_.text = field_.name + "\n" + (field_.stacked ? "stacked" : "one");
    for (const std::string& column : field_.columns) to_.text += "\n" + column;
    for (std::size_t i = 0; i < taken_; ++i) to_.text += "\n" + field_.as[i].text;
    store();
    if (errors_.size() == before) plan_.fields.push_back(std::move(to_));
  }

 private:
  void report(const Where& where, std::string message, std::string fix = "") {
    errors_.push_back(at(where, "data.fields." + field_.name, std::move(message)));
    errors_.back().fix = std::move(fix);
  }

  void find_columns() {
    for (const std::string& name : field_.columns) {
      const auto found = std::find(plan_.columns.begin(), plan_.columns.end(), name);
      if (found == plan_.columns.end()) {
        const std::string near = nearest_name(name, plan_.columns);
        report(field_.where, "no column `" + name + "` in " + file_,
               near.empty() ? "" : "did you mean \"" + near + "\"?");
        errors_.back().expected = "one of " + listed(plan_.columns);
      } else {
        to_.columns.push_back(static_cast<std::size_t>(found - plan_.columns.begin()));
      }
    }
  }

  void take(const Transform& function) {
    const bool plain = to_.numeric.empty();
    ++taken_;
    switch (function.kind) {
      case TransformKind::missing:
        if (to_.has_missing || to_.most > 0 || !plain) {
          report(function.where, function.text + ": `missing` comes first");
        }
        to_.has_missing = true;
        to_.missing = function.absent;
        return;
      case TransformKind::split:
        if (to_.most > 0 || !plain) {
          report(function.where,
                 function.text + ": the text is split once, before other functions");
        }
        split_ = &function;
        to_.separator = function.separator;
        to_.most = function.most;
        to_.pad = function.pad;
        return;
      case TransformKind::log1p:
      case TransformKind::bucketize:
        take_numeric(function);
        return;
      case TransformKind::hash:
      case TransformKind::vocabulary:
        if (!plain && !whole_) {
          report(function.where, function.text + ": takes text or whole numbers",
                 "bucketize after " + to_.numeric.back().text);
        }
        ended_ = true;
        if (function.kind == TransformKind::hash) {
          to_.end = TableField::End::hash;
          to_.modulus = function.modulus;
          for (const std::string& column : field_.columns) to_.hashes.emplace_back(column);
        } else {
          to_.end = TableField::End::vocabulary;
          to_.vocabulary = vocabulary(function);
        }
        return;
      case TransformKind::cast:
        ended_ = true;
        if (plain) {
          number_ = function.dtype;
        } else {
          take_rest(function);
          --taken_;
        }
        return;
      case TransformKind::scale:
      case TransformKind::normalize:
      case TransformKind::flatten:
      case TransformKind::reshape:
      case TransformKind::one_hot:
      case TransformKind::resize:
      case TransformKind::random_crop:
      case TransformKind::random_flip:
        ended_ = true;
        --taken_;
        take_rest(function);
        return;
    }
  }

  void take_numeric(const Transform& function) {
    const NumberFunction* const number = number_function(function.kind);
    assert(number != nullptr);
    if (whole_) {
      report(function.where, function.text + ": no function of numbers follows " +
                                 to_.numeric.back().text + ", whose whole numbers are ids");
    }
    whole_ = number->gives_whole_numbers();
    to_.numeric.push_back(function);
  }

  void take_rest(const Transform& function) {
    switch (function.kind) {
      case TransformKind::missing:
      case TransformKind::split:
      case TransformKind::hash:
      case TransformKind::vocabulary:
        report(function.where, function.text + ": acts on text, but this is an array of numbers",
               "write it before the other functions");
        return;
      case TransformKind::log1p:
      case TransformKind::bucketize:
      case TransformKind::cast:
      case TransformKind::scale:
      case TransformKind::normalize:
      case TransformKind::flatten:
      case TransformKind::reshape:
      case TransformKind::one_hot:
      case TransformKind::resize:
      case TransformKind::random_crop:
      case TransformKind::random_flip:
        to_.rest.push_back(function);
        return;
    }
  }

  std::size_t vocabulary(const Transform& function) {
    const std::string name = function.vocabulary.empty() ? field_.name : function.vocabulary;
    const VocabularyPlan wanted{name, function.min_count, function.by_value};
    for (std::size_t i = 0; i < plan_.vocabularies.size(); ++i) {
      const VocabularyPlan& known = plan_.vocabularies[i];
      if (known.name != name) continue;
      if (known.least != wanted.least || known.by_value != wanted.by_value) {
        const auto of_it = [&](const TableField& field) {
          return field.end == TableField::End::vocabulary && field.vocabulary == i;
        };
        const auto other = std::find_if(plan_.fields.begin(), plan_.fields.end(), of_it);
        const std::string where = other == plan_.fields.end() ? "before" : "in " + other->name;
        const auto options = [](const VocabularyPlan& v) {
          return "min_count " + std::to_string(v.least) + ", by " +
                 (v.by_value ? "value" : "column");
        };
        report(function.where,
               function.text + ": the vocabulary \"" + name + "\" has other options " + where +
                   ": " + options(known) + " there, " + options(wanted) + " here",
               "give both the same min_count and by, or this one another name");
      }
      return i;
    }
    plan_.vocabularies.push_back(wanted);
    return plan_.vocabularies.size() - 1;
  }

  void store() {
    Shape shape;
    if (field_.stacked) shape.push_back(static_cast<std::int64_t>(to_.columns.size()));
    if (to_.most > 0) shape.push_back(to_.most);
    // Ids are stored in 32 bits where they fit and given out as int64, what exporters take.
    DType stored = DType::int32;
    to_.logical = DType::int64;
    if (to_.end == TableField::End::hash) {
      constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
      if (to_.modulus > most || to_.pad > most) stored = DType::int64;
    } else if (to_.end == TableField::End::number && !whole_) {
      stored = to_.logical = number_;
    }
    to_.stored = {stored, shape};
    if (!is_integer(to_.logical) && to_.most > 0 && to_.pad != 0) {
      report(field_.where, "`pad` is an id, but the values are numbers");
    } else if (split_ != nullptr && is_integer(stored) && to_.pad > greatest_of(stored)) {
      report(split_->where, split_->text + ": `pad` does not fit");
      errors_.back().expected = "at most " + std::to_string(greatest_of(stored));
      errors_.back().got = std::to_string(to_.pad);
    }
  }

  const FieldConfig& field_;
  const std::string& file_;
  TablePlan& plan_;
  std::vector<Diagnostic>& errors_;
  TableField to_;
  const Transform* split_ = nullptr;
  std::size_t taken_ = 0;          // functions of the text
  bool ended_ = false;             // the text is an array
  bool whole_ = false;             // the last numeric function gives whole numbers
  DType number_ = DType::float32;  // that text is read as
};

/// Whether both read a cell as the same values.
bool read_alike(const TableField& a, const TableField& b) {
  return a.has_missing == b.has_missing && a.missing == b.missing && a.separator == b.separator &&
         a.most == b.most &&
         std::equal(a.numeric.begin(), a.numeric.end(), b.numeric.begin(), b.numeric.end(),
                    [](const Transform& x, const Transform& y) { return x.text == y.text; });
}

/// A value counts as often as it stands in the files, however many fields read it.
void count_columns_once(std::vector<TableField>& fields) {
  for (TableField& field : fields) {
    if (field.end != TableField::End::vocabulary) continue;
    for (const std::size_t column : field.columns) {
      const bool again = std::any_of(fields.begin(), fields.end(), [&](const TableField& other) {
        if (other.end != TableField::End::vocabulary || other.vocabulary != field.vocabulary)
          return false;
        const auto counted =
            other.columns.begin() + static_cast<std::ptrdiff_t>(other.counts.size());
        return std::find(other.columns.begin(), counted, column) != counted &&
               read_alike(other, field);
      });
      field.counts.push_back(!again);
    }
  }
}

}  // namespace

TablePlan plan_table(const DataConfig& config, std::vector<std::string> columns,
                     std::vector<Diagnostic>& errors) {
  TablePlan plan;
  plan.columns = std::move(columns);
  std::string file = "the files";
  for (const SplitConfig* split : {&config.eval, &config.train}) {
    if (!split->files.empty() && !split->files[0].paths.empty()) file = split->files[0].paths[0];
  }
  for (const FieldConfig& field : config.fields) FieldPlanner(field, file, plan, errors).add();
  count_columns_once(plan.fields);
  if (config.fields.empty()) {
    errors.push_back(at(config.where, "data.fields", "nothing says what the columns are for"));
  }
  return plan;
}

}  // namespace tandem
