#include "engine/train/averages/averaged_weights.h"

#include <algorithm>

#include "engine/config/keys/config_names.h"
#include "engine/config/keys/config_value.h"
#include "engine/graph/error.h"
#include "engine/graph/parameter_names.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

constexpr const char* state_names[] = {"ema", "swa", "slow"};  // by Average

const char* state_name(Average average) { return state_names[static_cast<int>(average)]; }

class AveragesOf {
 public:
  AveragesOf(GraphBuilder& g, Average average, const std::string& at, const Where& where)
      : g_(g), average_(average), selector_(at), at_(at), where_(where) {}

  FedAverage add(const std::vector<UpdateRequest>& updates,
                 const std::vector<std::string>& splits) {
    const std::string key = std::string("optimizer.") + average_names[static_cast<int>(average_)];
    g_.set_scope({key, Phase::update, {}});
    rate_ = g_.input(key, TensorType{DType::float32, {}});
    const ParameterNames named(g_.graph());
    std::vector<std::string> names;
    bool any = false;
    for (const UpdateRequest& update : updates) {
      const State& parameter = update.parameter;
      names.push_back(parameter.path);
      if (!named.covers(selector_, parameter)) continue;
      if (std::find(splits.begin(), splits.end(), parameter.name) != splits.end())
        refuse_split(parameter, key);
      any = true;
      add(parameter);
    }
    if (!any) {
      throw Error(
          ErrorKind::usage,
          at(where_, key + ".at", "\"" + at_ + "\" matches no parameter that is trained", "", "",
             did_you_mean(nearest_name(at_, names), "`tandem inspect MODEL` lists them")));
    }
    return {key, average_};
  }

 private:
  [[noreturn]] void refuse_split(const State& parameter, const std::string& key) const {
    throw Error(
        ErrorKind::usage,
        at(where_, key + ".at", "no average is kept of a table that is stored as split_bfloat16",
           "", parameter.path,
           "let the selector name other parameters, or leave the table out of parameters.storage"));
  }

  /// a (1 - rate) + w rate: exactly w where the rate is 1, exactly a where it is 0.
  ValueId mixed(ValueId a, ValueId w) {
    const DType dtype = g_.dtype(w);
    const ValueId rate = g_.cast(rate_, dtype);
    const ValueId rest = g_.sub(g_.scalar(1, dtype), rate);
    return g_.add(g_.mul(a, rest), g_.mul(w, rate));
  }

  void add(const State& updated) {
    // For a sharded update: the whole parameter, which all ranks have.
    const State parameter = *g_.graph().find_state(updated.name);
    g_.set_scope(update_scope(parameter));
    State state = state_of(parameter, state_name(average_));
    state.start = HostTensor(parameter.start.type());
    state.starts_at_zero = true;  // initialise_averages gives it the parameter's values
    share_like(state, parameter);
    const ValueId before = g_.state(std::move(state)), trained = parameter.final;
    const ValueId average = mixed(before, trained);
    g_.write_state(before, g_.add_node("Assign", {before, average}));
    if (average_ != Average::lookahead) return;
    const ValueId is_due = g_.add_node("Greater", {rate_, g_.scalar(0, DType::float32)});
    const ValueId next = g_.add_node("Where", {is_due, average, trained});
    g_.write_state(parameter.initial, g_.add_node("Assign", {parameter.initial, next}));
  }

  GraphBuilder& g_;
  Average average_;
  Selector selector_;
  std::string at_;
  Where where_;
  ValueId rate_;
};

}  // namespace

std::vector<FedAverage> add_averages(GraphBuilder& g, const OptimizerConfig& config,
                                     const std::vector<UpdateRequest>& updates,
                                     const std::vector<std::string>& splits) {
  std::vector<FedAverage> fed;
  const auto add = [&](Average average, const auto& of) {
    if (of) fed.push_back(AveragesOf(g, average, of->at, of->where).add(updates, splits));
  };
  add(Average::lookahead, config.lookahead);  // the others follow what it makes of the weights
  add(Average::ema, config.ema);
  add(Average::swa, config.swa);
  return fed;
}

std::string averaged_name(const std::string& parameter, Weights weights) {
  if (weights == Weights::trained) return "";
  return parameter + "/" + std::string(choice_name(weights));
}

std::string parameter_of_average(const std::string& state) {
  for (const char* name : state_names) {
    const std::string end = std::string("/") + name;
    if (state.ends_with(end)) return state.substr(0, state.size() - end.size());
  }
  return "";
}

}  // namespace tandem
