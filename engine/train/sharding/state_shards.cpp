#include "engine/train/sharding/state_shards.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/config/keys/config_value.h"
#include "engine/graph/error.h"
#include "engine/graph/shard_conversion.h"
#include "engine/operators/collectives/collective.h"
#include "engine/operators/update_kind.h"

namespace tandem {
namespace {

[[noreturn]] void refuse_state(const Chosen& chosen, const std::string& why) {
  const std::string kind = "\"" + std::string(chosen.options.name()) + "\"";
  Diagnostic d =
      at(chosen.where, chosen.parameter.path,
         "the optimizer's states of this parameter cannot be sharded over the ranks: " + kind +
             " " + why);
  d.expected = "a kind that updates each element by itself, such as adamw";
  d.got = chosen.kind_key + " = " + kind;
  d.fix = "give it another kind in optimizer.groups, or add { at = \"" + chosen.parameter.path +
          "\", shard = \"whole\" } to the policy";
  throw Error(ErrorKind::usage, std::move(d));
}

}  // namespace

bool StateShards::covers(const Chosen& chosen) const {
  if (!shares_.several()) return false;
  const auto found = shards_.find(chosen.parameter.name);
  if (found == shards_.end() || !keeps_parameter_whole(found->second)) return false;
  const UpdateChoice choice = choose_update(chosen.options, whole_elements(chosen.parameter));
  const UpdateKind& kind = *find_update_kind(choice.op);
  if (kind.kept(choice.settings) == 0 || chosen.parameter.start.bytes() < least_bytes) return false;
  if (kind.whole_tensor && kind.compose == nullptr)
    refuse_state(chosen, "needs all of a tensor for each of its elements");
  if (kind.whole_row) refuse_state(chosen, "needs all of a row for each of its elements");
  if (choice.lazy)
    refuse_state(chosen, "updates single rows (for a table, shard = \"rows\" works)");
  return true;
}

bool StateShards::covers_gradient(const Chosen& chosen) const {
  const auto found = shards_.find(chosen.parameter.name);
  return found != shards_.end() && found->second == Sharding::state_and_gradient;
}

ValueId StateShards::slice(ValueId flat, std::int64_t first, std::int64_t count) {
  return g_.add_node("Slice", {flat},
                     {{"starts", Ints{first}}, {"sizes", Ints{count}}, {"steps", Ints{1}}});
}

ValueId StateShards::padded(ValueId value, std::int64_t count) {
  const std::int64_t own = g_.type(value).elements();
  const ValueId flat = g_.reshape(value, {own});
  if (own == count) return flat;
  const ValueId rest = g_.filled(0, {g_.dtype(value), {count - own}});
  return g_.add_node("Concat", {flat, rest}, {{"axis", std::int64_t{0}}});
}

void StateShards::cut(UpdateRequest& update, bool promptly) {
  State& part = update.parameter;
  g_.set_scope(update_scope(part));
  StateShard shard{ShardKind::elements, part.start.type(), shares_.rank, shares_.ranks};
  const UpdateChoice choice = choose_update(update.options, whole_elements(part));
  if (find_update_kind(choice.op)->keeps_bytes()) shard.unit = state_block;
  const std::int64_t share = shard.part().elements(), own = filled_rows(shard);
  // The exchange cuts equal parts, which end with a unit.
  const std::int64_t cut = shard.unit > 1 ? share * shares_.ranks : shard.whole.elements();
  update.gradient =
      g_.add_node(reduce_scatter_name, {padded(update.gradient, cut)},
                  {{"ranks", std::int64_t{shares_.ranks}}, {"prompt", std::int64_t{promptly}}});
  // Lowering gives the update a copy to overwrite.
  const ValueId flat = g_.reshape(part.initial, {shard.whole.elements()});
  part.initial = own > 0 ? padded(slice(flat, share * shares_.rank, own), share)
                         : g_.filled(0, shard.part());  // the last of very many ranks
  part.start = HostTensor(shard.part());
  part.shard = shard;
}

ValueId StateShards::gathered(const UpdateRequest& update, ValueId part) {
  const TensorType& whole = update.parameter.shard->whole;
  ValueId all = g_.add_node(all_gather_name, {part}, {{"ranks", std::int64_t{shares_.ranks}}});
  if (g_.type(all).elements() > whole.elements()) all = slice(all, 0, whole.elements());
  return g_.reshape(all, whole.shape);
}

void StateShards::put_together(const UpdateRequest& update, ValueId new_part) {
  const State& part = update.parameter;
  g_.set_scope(update_scope(part));
  const ValueId all = gathered(update, new_part);
  const ValueId before = g_.graph().find_state(part.name)->initial;
  g_.write_state(before, g_.add_node("Assign", {before, all}));
}

}  // namespace tandem
