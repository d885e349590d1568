#include "engine/train/graph/rank_sums.h"

#include "engine/graph/error.h"
#include "engine/operators/collectives/collective.h"
#include "engine/operators/tables/rows.h"

namespace tandem {
namespace {

Attributes over(int ranks) { return {{"ranks", std::int64_t{ranks}}}; }

}  // namespace

std::int64_t most_elements(const Graph& graph, ValueId value, const RankShares& shares) {
  const std::int64_t elements = graph.type(value).elements();
  if (shares.own == shares.most || shares.most == 0 || graph.is_constant(value)) return elements;
  if (elements % shares.own != 0) {
    Diagnostic d;
    d.path = graph.value(value).name;
    d.message =
        "ranks compute different numbers of samples, and a lookup has no constant number of ids "
        "for each sample";
    d.expected = "a multiple of " + std::to_string(shares.own) + " elements";
    d.got = to_string(graph.type(value));
    d.fix = "take a batch_size (and micro-batches) that the ranks divide, and drop_last = true";
    throw Error(ErrorKind::usage, std::move(d));
  }
  return elements / shares.own * shares.most;
}

void RankSums::add_losses(std::vector<std::pair<std::string, ValueId>>& values, const char* stop) {
  if (!several()) return;
  g_.set_scope({"ranks.loss", Phase::update, {}});
  std::vector<ValueId> parts;
  for (const auto& [name, value] : values) parts.push_back(g_.reshape(value, {1}));
  parts.push_back(g_.reshape(g_.input(stop, TensorType{DType::float32, {}}), {1}));
  const auto count = static_cast<std::int64_t>(parts.size());
  const ValueId all = g_.add_node("Concat", std::move(parts), {{"axis", std::int64_t{0}}});
  const ValueId sums = g_.add_node(all_reduce_name, {all}, over(shares_.ranks));
  const auto sum_of = [&](std::int64_t i) {
    const ValueId part =
        g_.add_node("Slice", {sums}, {{"starts", Ints{i}}, {"sizes", Ints{1}}, {"steps", Ints{1}}});
    return g_.reshape(part, {});
  };
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i].second = sum_of(static_cast<std::int64_t>(i));
  g_.output(stop, sum_of(count - 1));
}

ValueId RankSums::all_reduced(ValueId value, const char* reduction) {
  Attributes attributes = over(shares_.ranks);
  attributes.set("reduction", std::string(reduction));
  return g_.add_node(all_reduce_name, {value}, std::move(attributes));
}

void RankSums::sum(UpdateRequest& update) {
  if (!several() || update.parameter.shard) return;
  g_.set_scope(update_scope(update.parameter));
  if (update.rows) {
    update.rows = gathered(*update.rows);
    return;
  }
  update.gradient = all_reduced(update.gradient, sum_reduction);
  // Marks that are constant leave out only fixed rows, and are the same on all ranks.
  if (update.touched && !g_.graph().is_constant(update.touched))
    update.touched = all_reduced(update.touched, maximum_reduction);
}

std::int64_t RankSums::gathered_ids(const RowGradient& rows) const {
  if (!several()) return id_count(g_.graph(), rows);
  std::int64_t count = 0;
  for (ValueId ids : rows.ids) count += most_elements(g_.graph(), ids, shares_) * shares_.ranks;
  return count;
}

ValueId RankSums::gathered(ValueId value, double filler) {
  ValueId& known = gathered_[value.index];
  if (known) return known;
  const std::int64_t own = g_.type(value).elements(),
                     most = most_elements(g_.graph(), value, shares_);
  ValueId flat = g_.reshape(value, {own});
  if (most > own) {
    const ValueId rest = g_.filled(filler, {g_.dtype(value), {most - own}});
    flat = g_.add_node("Concat", {flat, rest}, {{"axis", std::int64_t{0}}});
  }
  return known = g_.add_node(all_gather_name, {flat}, over(shares_.ranks));
}

RowGradient RankSums::gathered(const RowGradient& rows) {
  RowGradient all = rows;
  for (ValueId& ids : all.ids)
    ids = gathered(ids, static_cast<double>(absent_id_of(g_.dtype(ids))));
  for (ValueId& dy : all.dy) dy = gathered(dy, 0);
  for (ValueId& weights : all.weights) {
    if (weights) weights = gathered(weights, 0);
  }
  return all;
}

}  // namespace tandem
