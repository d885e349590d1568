#include "engine/train/divergence/check_integers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "engine/config/keys/config_value.h"
#include "engine/config/rows_line.h"
#include "engine/data/bounded_source.h"
#include "engine/formats/count_text.h"
#include "engine/graph/error.h"
#include "engine/graph/structures/function_ref.h"
#include "engine/losses/loss_weights.h"
#include "engine/operators/operator.h"
#include "engine/operators/scalar_functions.h"
#include "engine/operators/tables/rows.h"
#include "engine/train/divergence/id_remedies.h"
#include "engine/train/divergence/sample_checks.h"
#include "engine/train/divergence/tokenizer_rows.h"
#include "engine/train/tables/column_lookups.h"

namespace tandem {
namespace {

/// The extent of the class axis that integer labels of this sample shape choose from; nothing for
/// one-hot labels, probabilities, and shapes that do not fit.
std::optional<std::int64_t> class_count(const Shape& logits, const TensorType& labels) {
  if (!is_integer(labels.dtype) || logits.size() < 2) return std::nullopt;
  Shape y = labels.shape;  // without the batch
  const Shape x(logits.begin() + 1, logits.end());
  if (y == x) return std::nullopt;
  if (y.size() == x.size() && y.back() == 1) y.pop_back();
  if (y == Shape(x.begin(), x.end() - 1)) return x.back();
  if (y == Shape(x.begin() + 1, x.end())) return x[0];
  return std::nullopt;
}

/// The input of the graph that a value is a copy of (another integer type or shape), or "".
std::string copied_input(const Graph& graph, ValueId id) {
  while (graph.value(id).producer) {
    const Node& node = graph.node(graph.value(id).producer);
    // Ids of cached rows go elsewhere, all others to the table as they are.
    const bool of_table = node.op->name == "SplitIds" && graph.value(id).output_index == 0;
    const bool copies =
        node.op->role == Role::reshape || node.op->scalar == ScalarFunction::cast || of_table;
    if (!copies) return "";
    id = node.inputs[0];
  }
  for (const NamedValue& input : graph.inputs) {
    if (input.value == id) return input.name;
  }
  return "";
}

/// Adds what a check of a field finds in its values: what they are for, and once how to fix them. A
/// failure of reading them passes through.
template <class Check>
void collect(const std::string& meaning, FunctionRef<std::string(const BadValues&)> fix_of,
             std::vector<Diagnostic>& problems, Check check) {
  try {
    check();
  } catch (const BadValues& error) {
    std::string fix = fix_of(error);
    for (Diagnostic d : error.diagnostics()) {
      d.message += ": " + meaning;
      if (d.fix.empty()) d.fix = std::exchange(fix, "");
      problems.push_back(std::move(d));
    }
  }
}
template <class Check>
void collect(const std::string& meaning, const std::string& fix, std::vector<Diagnostic>& problems,
             Check check) {
  collect(
      meaning, [&](const BadValues&) { return fix; }, problems, check);
}

DType type_of(const DataSource& source, int field) {
  return source.fields()[static_cast<std::size_t>(field)].sample.dtype;
}

void check_classes(const DataSource& source, const std::string& field, std::int64_t classes,
                   const std::optional<std::int64_t>& ignore, const std::string& meaning,
                   std::vector<Diagnostic>& problems) {
  const int index = source.find_field(field);
  if (index < 0) return;
  const DType dtype = type_of(source, index);
  if (!is_integer(dtype)) return;
  const std::string fix = ignore ? "classes are counted from 0"
                                 : "classes are counted from 0; ignore_index of the loss leaves "
                                   "one label out";
  collect(meaning, fix, problems,
          [&] { source.check_range(index, classes, ignore ? &*ignore : nullptr); });
}

/// The value of an input for which `ids`, a copy of it, name no row; nothing where its type or a
/// type between cannot hold that.
std::optional<std::int64_t> absent_value(const Graph& graph, ValueId ids) {
  const DType looked_up = graph.type(ids).dtype;
  for (;; ids = graph.node(graph.value(ids).producer).inputs[0]) {
    const DType dtype = graph.type(ids).dtype;
    if (dtype != DType::int64 && dtype != looked_up) return std::nullopt;
    if (!graph.value(ids).producer) return absent_id_of(looked_up);
  }
}

/// A field of the data that chooses rows of a parameter.
struct FieldLookup {
  std::string field, path, table;
  std::int64_t rows = 0;
  DType ids = DType::int64;            // as they are looked up
  std::optional<std::int64_t> absent;  // the field's value that names no row
};

std::vector<FieldLookup> lookups(const Graph& graph) {
  std::vector<FieldLookup> found;
  for (const Node& node : graph.nodes) {
    const bool sums = node.op->role == Role::embedding_bag;
    if (node.op->role != Role::lookup && !sums) continue;
    const Value& table = graph.value(node.inputs[0]);
    if (table.kind != ValueKind::state) continue;
    const std::string field = copied_input(graph, node.inputs[1]);
    if (field.empty()) continue;
    const std::int64_t axis = sums ? 0 : node.attributes.integer("axis");
    const ValueId ids = node.inputs[1];
    found.push_back({field, node.path, table.name, table.type.shape[axis], graph.type(ids).dtype,
                     absent_value(graph, ids)});
  }
  return found;
}

bool gives_zeros(const RunConfig& config, const std::string& field) {
  if (!config.data) return false;
  const std::vector<FieldConfig>& fields = config.data->fields;
  return std::any_of(fields.begin(), fields.end(), [&](const FieldConfig& known) {
    return known.name == field && known.out_of_range == OutOfRange::zero;
  });
}

/// Whether the field's own type holds the value that names no row.
bool can_be_absent(const FieldLookup& lookup, DType own) {
  return lookup.absent && (own == DType::int64 || own == lookup.ids);
}

/// `group`: lookups of one field in tables of equally many rows.
void check_lookups(const RunConfig& config, const Graph& forward,
                   const std::vector<FieldLookup>& all, const std::vector<FieldLookup>& group,
                   const DataSource& source, std::vector<Diagnostic>& problems) {
  const FieldLookup& lookup = group.front();
  const int index = source.find_field(lookup.field);
  if (index < 0) return;
  const DType own = type_of(source, index);
  if (own == DType::boolean) return;
  // Without fields in the configuration, the caller that feeds the ids may name no row, too.
  const bool zeros = !config.data || gives_zeros(config, lookup.field);
  const bool could = std::all_of(all.begin(), all.end(), [&](const FieldLookup& other) {
    return other.field != lookup.field || (can_be_absent(other, own) && other.rows == lookup.rows);
  });
  const std::string rows = std::to_string(lookup.rows);
  std::string meaning =
      "an index of " + lookup.path + " into \"" + lookup.table + "\", which has " + rows + " rows";
  if (group.size() > 1) meaning += ", and of " + count_text(group.size() - 1, "more lookup");
  std::vector<std::string> tables;
  for (const FieldLookup& one : group) tables.push_back(one.table);
  const auto fix = [&](const BadValues& bad) {
    return remedy_of_ids(config, lookup.field,
                         line_for_ids(forward, tables, bad.greatest, lookup.rows),
                         bad.greatest >= static_cast<double>(lookup.rows), could && !zeros);
  };
  collect(meaning, fix, problems, [&] {
    if (is_float(own)) {  // the graph rounds towards 0
      const double limit = static_cast<double>(lookup.rows);
      return source.check_numbers(index, 0, std::nextafter(limit, 0.0), "from 0 to below " + rows);
    }
    source.check_range(index, lookup.rows, zeros && lookup.absent ? &*lookup.absent : nullptr);
  });
}

/// Lookups of one field in tables of equally many rows, together, in their order.
std::vector<std::vector<FieldLookup>> grouped_lookups(const std::vector<FieldLookup>& all) {
  std::vector<std::vector<FieldLookup>> groups;
  for (const FieldLookup& lookup : all) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& other) {
      return other[0].field == lookup.field && other[0].rows == lookup.rows &&
             other[0].absent == lookup.absent;
    });
    if (group == groups.end())
      groups.push_back({lookup});
    else
      group->push_back(lookup);
  }
  return groups;
}

/// Checks lengths of recurrent layers that come from the data.
void check_lengths(const Graph& graph, const Node& node, const DataSource& source,
                   std::vector<Diagnostic>& problems) {
  if (node.op->name != std::string_view("RnnScan") || node.inputs.size() <= 3 || !node.inputs[3])
    return;
  const int field = source.find_field(copied_input(graph, node.inputs[3]));
  if (field < 0) return;
  const std::int64_t steps = graph.type(node.inputs[0]).shape[0];
  collect("a length of " + node.path + ", which has " + std::to_string(steps) + " steps",
          "leave out empty sequences, and cut the others to the steps of the model", problems, [&] {
            source.check_numbers(field, 1, static_cast<double>(steps),
                                 "1 to " + std::to_string(steps));
          });
}

/// Checks columns of a field that look up rows of a table of their own, or a part of one.
void check_columns(const Graph& graph, const ColumnLookup& lookup, const DataSource& source,
                   std::vector<Diagnostic>& problems) {
  const int index = source.find_field(lookup.input);
  if (index < 0) return;
  const TensorType& type = source.fields()[static_cast<std::size_t>(index)].sample;
  const NamedValue* const input = graph.find_input(lookup.input);
  if (!is_integer(type.dtype) || type.elements() != std::ssize(lookup.offsets) ||
      input == nullptr || graph.type(input->value).rank() != type.rank() + 1)
    return;
  std::vector<std::int64_t> limits;
  for (const std::int64_t offset : lookup.offsets)
    limits.push_back(offset == ColumnLookup::unread ? -1 : lookup.rows - offset);
  const bool is_whole = std::all_of(
      lookup.offsets.begin(), lookup.offsets.end(),
      [](std::int64_t offset) { return offset == ColumnLookup::unread || offset == 0; });
  const auto fix = [&](const BadValues& bad) {
    const std::string line =
        is_whole ? line_for_ids(graph, {lookup.parameter}, bad.greatest, lookup.rows) : "";
    return (line.empty() ? "ids have to be rows of the table" : line + " gives each id a row") +
           "; vocabulary(by='table') in `as` numbers the values of each column from 1 on";
  };
  collect("an index of " + lookup.path + " into \"" + lookup.parameter + "\", which has " +
              std::to_string(lookup.rows) + " rows",
          fix, problems, [&] { source.check_elements(index, limits); });
}

/// Checks labels and weights of a term that have a range whatever the model.
void check_ranges(const LossTerm& term, const DataSource& source,
                  std::vector<Diagnostic>& problems) {
  const std::string of_term =
      " of the loss term \"" + term.name + "\" (" + std::string(term.kind->name) + ")";
  const auto check = [&](const std::string& field, double low, double high,
                         const std::string& range, const char* what, const char* fix) {
    const int index = source.find_field(field);
    if (index < 0) return;
    collect(what + of_term, fix, problems, [&] { source.check_numbers(index, low, high, range); });
  };
  if (term.kind->labels.form == LabelForm::zero_to_one)
    check(term.labels, 0, 1, "0 to 1", "a label",
          "labels are 0 for no and 1 for yes, or a probability between");
  if (term.kind->labels.form == LabelForm::signs) {
    check(term.labels, -1, 1, "-1 or 1", "a label", "labels are -1 for no and 1 for yes");
    if (problems.empty()) check_signs(term, source, "a label" + of_term, problems);
  }
  if (term.kind->refuses_negative_labels != nullptr && term.kind->refuses_negative_labels(term))
    check(term.labels, 0, std::numeric_limits<double>::max(), "0 or more", "a target",
          "targets are probabilities; log_target = true takes their logarithms");
  check(term.sample_weights, 0, std::numeric_limits<double>::max(), "a finite number from 0 on",
        "a weight", "a weight is 0 for a sample that does not count, 1 for one that does");
}

/// Checks labels of a loss inside the model.
void check_loss_node(const Graph& graph, const Node& node, const DataSource& source,
                     std::vector<Diagnostic>& problems) {
  if (node.op->role != Role::class_loss) return;
  const std::string input = copied_input(graph, node.inputs[1]);
  if (input.empty()) return;
  std::optional<std::int64_t> ignore;
  if (node.inputs.size() > 2 && node.inputs[2] && graph.value(node.inputs[2]).producer) {
    const Node& weights = graph.node(graph.value(node.inputs[2]).producer);
    if (weights.op->name != "LabelWeights") return;
    if (weights.attributes.flag("ignore")) ignore = weights.attributes.integer("ignore_index");
  }
  check_classes(source, input, graph.type(node.inputs[0]).shape[1], ignore,
                "a label is not a class at " + node.path, problems);
}

}  // namespace

std::vector<LabelMean> label_means(const Graph& forward) {
  std::vector<LabelMean> means;
  for (const Node& node : forward.nodes) {
    if (node.op->name != std::string_view("LabelWeights") || !node.attributes.flag("ignore"))
      continue;
    const bool divides =
        std::any_of(forward.nodes.begin(), forward.nodes.end(), [&](const Node& quotient) {
          if (quotient.op->name != std::string_view("Div")) return false;
          const Value& below = forward.value(quotient.inputs[1]);
          return below.producer && forward.node(below.producer).inputs[0] == node.outputs[0];
        });
    const std::string input = copied_input(forward, node.inputs[0]);
    if (divides && !input.empty())
      means.push_back({input, node.attributes.integer("ignore_index"), node.path});
  }
  return means;
}

std::int64_t looked_up_rows(const Graph& forward, const std::string& field) {
  for (const FieldLookup& lookup : lookups(forward)) {
    if (lookup.field == field) return lookup.rows;
  }
  return 0;
}

std::vector<std::string> looked_up_tables(const Graph& forward, const std::string& field) {
  std::vector<std::string> tables;
  for (const FieldLookup& lookup : lookups(forward)) {
    if (lookup.field == field) tables.push_back(lookup.table);
  }
  return tables;
}

std::shared_ptr<const DataSource> zero_out_of_range(const RunConfig& config, const Graph& forward,
                                                    std::shared_ptr<const DataSource> source) {
  if (!source || !config.data) return source;
  std::map<int, IdBound> bounds;
  const std::vector<FieldLookup> all = lookups(forward);
  for (const FieldConfig& field : config.data->fields) {
    if (field.out_of_range != OutOfRange::zero) continue;
    const int index = source->find_field(field.name);
    if (index < 0) continue;
    Diagnostic d = at(field.where, "data.fields." + field.name,
                      "out_of_range is for ids that look up rows of a parameter");
    const DType own = type_of(*source, index);
    const FieldLookup *first = nullptr, *other = nullptr;  // tables of different lengths
    for (const FieldLookup& lookup : all) {
      if (lookup.field != field.name) continue;
      if (first == nullptr) first = &lookup;
      if (lookup.rows != first->rows) other = &lookup;
      IdBound& bound = bounds.emplace(index, IdBound{lookup.rows, 0}).first->second;
      const bool fits = can_be_absent(lookup, own);
      if (!fits || (bound.outside != 0 && bound.outside != *lookup.absent)) {
        d.message =
            "out_of_range is not possible here: after the casts before its lookups no id of this "
            "field is outside of the table";
        d.expected = std::string(name_of(lookup.ids)) + " ids, as " + lookup.path + " takes them";
        d.got = name_of(own);
        d.fix = "export the model with ids of that type, or leave out_of_range out";
        throw Error(ErrorKind::usage, std::move(d));
      }
      bound.outside = *lookup.absent;
    }
    if (other != nullptr) {
      const auto shown = [](const FieldLookup& lookup) {
        return std::to_string(lookup.rows) + " in \"" + lookup.table + "\"";
      };
      d.message =
          "its ids look up rows of tables of different lengths: an id that only one of them lacks "
          "cannot give zeros for only that one";
      d.expected = "tables with equally many rows";
      d.got = shown(*first) + " and " + shown(*other);
      d.fix =
          "give the model an input, and the data a field, for each table; or equal rows: " +
          rows_line({{selector_of(forward, first->table), std::max(first->rows, other->rows)},
                     {selector_of(forward, other->table), std::max(first->rows, other->rows)}}) +
          "; or leave out_of_range out";
      throw Error(ErrorKind::usage, std::move(d));
    }
    if (!bounds.contains(index)) throw Error(ErrorKind::usage, std::move(d));
  }
  return make_bounded_source(std::move(source), std::move(bounds));
}

struct FieldChecks::Found {
  std::vector<FieldLookup> lookups;
  std::vector<ColumnLookup> columns;
  std::vector<LabelMean> means;
};

FieldChecks::FieldChecks(const RunConfig& config, const Graph& forward, const Evaluator& evaluate)
    : config_(config),
      forward_(forward),
      found_(new Found{lookups(forward), column_lookups(forward, evaluate), label_means(forward)}) {
}
FieldChecks::~FieldChecks() = default;

void FieldChecks::check(const DataSource& source) const {
  const Graph& forward = forward_;
  std::vector<Diagnostic> problems;
  for (const LossTerm& term : config_.loss.terms) {
    check_ranges(term, source, problems);
    if (!are_class_numbers(term.kind->labels.form)) continue;
    const NamedValue* output = forward.find_output(term.values[0]);
    const ValueId scores = output != nullptr ? output->value : forward.find_value(term.values[0]);
    const int field = source.find_field(term.labels);
    if (!scores || field < 0) continue;
    check_samples(term, forward.type(scores).shape, source, problems);
    if (term.kind->labels.form != LabelForm::classes) continue;
    const auto classes = class_count(forward.type(scores).shape, source.fields()[field].sample);
    if (!classes) continue;
    check_classes(source, term.labels, *classes, class_options(term).ignore_index,
                  "a label is not a class of \"" + term.values[0] + "\"", problems);
    if (problems.empty()) check_any_label_counts(term, source, problems);
  }
  for (const Node& node : forward.nodes) {
    check_loss_node(forward, node, source, problems);
    check_lengths(forward, node, source, problems);
  }
  if (problems.empty())
    for (const LabelMean& mean : found_->means) check_any_label_counts(mean, source, problems);
  const std::vector<FieldLookup>& all = found_->lookups;
  for (const std::vector<FieldLookup>& group : grouped_lookups(all)) {
    const FieldLookup& lookup = group.front();
    const std::size_t before = problems.size();
    check_lookups(config_, forward, all, group, source, problems);
    if (problems.size() == before || !config_.data) continue;
    // What is out of range elsewhere, labels above all, is so for this reason.
    if (auto foreign = foreign_tokenizer(*config_.data, lookup.field, lookup.table, lookup.rows))
      throw Error(ErrorKind::data, std::move(*foreign));
  }
  for (const ColumnLookup& lookup : found_->columns) {
    const bool is_whole = std::any_of(all.begin(), all.end(), [&](const FieldLookup& known) {
      return known.path == lookup.path && known.table == lookup.parameter;
    });
    if (!is_whole && !gives_zeros(config_, lookup.input))
      check_columns(forward, lookup, source, problems);
  }
  if (!problems.empty()) throw Error(ErrorKind::data, std::move(problems));
}

void check_integer_fields(const RunConfig& config, const Graph& forward, const DataSource& source,
                          const Evaluator& evaluate) {
  FieldChecks(config, forward, evaluate).check(source);
}

}  // namespace tandem
