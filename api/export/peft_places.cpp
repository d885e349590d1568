#include "api/export/peft_places.h"

#include <algorithm>
#include <cctype>

#include "engine/formats/transposed_matrix.h"
#include "engine/graph/error.h"
#include "engine/operators/operator.h"
#include "importer/parameter_path.h"

namespace tandem::api {
namespace {

/// Whether the name is a possible Python attribute. A parameter of the model itself, outside of any
/// module, may have such a name.
bool may_be_of_the_model(const std::string& name) {
  const auto is_part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  const bool is_word = !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
                       std::all_of(name.begin(), name.end(), is_part);
  const bool is_made_up =  // such as val_12
      name.starts_with("val_") && name.size() > 4 &&
      std::all_of(name.begin() + 4, name.end(),
                  [](unsigned char c) { return std::isdigit(c) != 0; });
  return is_word && !is_made_up;
}

bool is_inside(const std::string& inner, const std::string& outer) {
  return inner.size() > outer.size() && inner.starts_with(outer) && inner[outer.size()] == '.';
}

/// Whether both paths may mean the same module: one may lack outer parts, or containers in between,
/// as TorchScript leaves ModuleList and ModuleDict out ("fc1" for "blocks.0.fc1").
bool ends_alike(const std::string& a, const std::string& b) {
  const std::string &shorter = a.size() < b.size() ? a : b, &longer = a.size() < b.size() ? b : a;
  if (!("." + longer).ends_with("." + shorter.substr(shorter.rfind('.') + 1))) return false;
  // Position in the longer one, which has the parts of the shorter one in their order.
  std::size_t at = 0;
  for (std::size_t begin = 0; begin <= shorter.size();) {
    const std::size_t end = std::min(shorter.find('.', begin), shorter.size());
    const std::string part = "." + shorter.substr(begin, end - begin) + ".";
    const std::size_t found = ("." + longer + ".").find(part, at);
    if (found == std::string::npos) return false;
    at = found + part.size() - 1;
    begin = end + 1;
  }
  return true;
}

/// Whether the module `outer` contains that of the path `inner`.
bool is_around(const std::string& outer, const std::string& inner) {
  const std::size_t dot = inner.rfind('.');
  return is_inside(inner, outer) ||
         (dot != std::string::npos && ends_alike(outer, inner.substr(0, dot)));
}

bool says_module(const ParameterReader& reader) { return reader.module != reader.op; }

void refuse_shared(const std::string& name, const std::string& scope,
                   const std::vector<ParameterReader>& readers) {
  for (const ParameterReader& reader : readers) {
    if (!says_module(reader) || ends_alike(reader.module, scope) ||
        is_inside(reader.module, scope) || is_around(reader.module, scope))
      continue;
    refuse_peft(name, "several modules read this tensor, and PEFT needs one",
                "only operators of \"" + scope + "\"", scope + ", " + reader.module, without_peft);
  }
}

}  // namespace

void refuse_peft(const std::string& path, std::string message, std::string expected,
                 std::string got, std::string fix) {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .path = path,
                                           .expected = std::move(expected),
                                           .got = std::move(got),
                                           .fix = std::move(fix)});
}

std::vector<PeftPlace> possible_places(const std::string& name, const TensorType& type,
                                       const std::vector<ParameterReader>& readers) {
  const std::string path = importer::parameter_path(name);
  if (path != name) {
    const std::size_t colon = path.rfind(':');
    return {{path.substr(0, colon), path.substr(colon + 1), true}};
  }
  std::set<std::pair<std::string, std::string>> places;
  for (const ParameterReader& reader : readers) {
    const bool is_weight = reader.role == "weight" && type.shape.size() > 1;
    if (says_module(reader) && !reader.role.empty() && (is_weight || !may_be_of_the_model(name)))
      places.emplace(reader.module, reader.role);
  }
  std::vector<PeftPlace> result;
  for (const auto& [module, role] : places) result.push_back({module, role, false});
  return result;
}

PeftPlace peft_place(const std::string& name, const TensorType& type,
                     const std::vector<ParameterReader>& readers) {
  std::vector<PeftPlace> places = possible_places(name, type, readers);
  if (places.size() == 1) {
    if (places[0].by_name) refuse_shared(name, places[0].module, readers);
    return std::move(places[0]);
  }
  std::string got;
  for (const PeftPlace& place : places)
    got += (got.empty() ? "" : ", ") + place.module + ":" + place.role;
  for (const ParameterReader& reader : readers) {
    if (places.empty()) got += (got.empty() ? "read by " : ", ") + reader.op;
  }
  refuse_peft(name,
              places.empty() ? "neither the name of this tensor nor an operator that reads it says "
                               "its module, which PEFT needs"
                             : "several modules read this tensor, and PEFT needs one",
              "a name like fc1.weight, or one operator of a module that reads it",
              got.empty() ? name : got, without_peft);
}

void expect_called(const PeftPlace& place, const std::string& name,
                   const std::vector<ParameterReader>& readers,
                   const std::set<std::string>& scopes) {
  const char* const message =
      "PEFT's adapter would do nothing: no module is called with this weight";
  const char* const expected = "a Linear or Conv that is called";
  for (const ParameterReader& reader : readers) {
    if (says_module(reader) && is_around(reader.module, place.module) &&
        !ends_alike(place.module, reader.module))
      refuse_peft(
          name, message, expected,
          "\"" + reader.module + "\" computes with the weight of \"" + place.module + "\" itself",
          without_peft);
  }
  for (const std::string& scope : scopes) {
    if (is_inside(scope, place.module))
      refuse_peft(name, message, expected,
                  "\"" + place.module + "\" computes with it, and has \"" + scope + "\" inside",
                  without_peft);
  }
}

bool is_in_first(const Graph& graph, const State& state) {
  return state.start.shape().size() == 2 &&
         std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
           return node.op->name == "MatMul" && node.inputs[1] == state.initial;
         });
}

HostTensor as_module_has_it(const NamedTensor& tensor, const PeftPlace& place, const Graph& graph) {
  const State* state = graph.find_state(tensor.name);
  if (place.by_name || state == nullptr) return tensor.tensor;
  if (is_in_first(graph, *state)) return transposed_matrix(tensor.tensor.converted(DType::float32));
  if (place.role != "bias" || tensor.tensor.shape().size() < 2) return tensor.tensor;
  return tensor.tensor.reshaped({tensor.tensor.type().elements()});
}

std::string PeftNames::renamed_name(std::string name, bool& has_prefix) const {
  has_prefix = !names_.strip.empty() && name.starts_with(names_.strip);
  if (has_prefix) name.erase(0, names_.strip.size());
  return names_.add + name;
}

PeftPlace PeftNames::renamed(PeftPlace place, const std::string& tensor) {
  bool has_prefix = false;
  const std::string name = renamed_name(place.module + "." + place.role, has_prefix);
  stripped_ = stripped_ || has_prefix;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0)
    refuse_peft(tensor, "--strip leaves no module of this name", "a shorter --strip", names_.strip,
                without_peft);
  place.module = name.substr(0, dot);
  place.role = name.substr(dot + 1);
  return place;
}

std::string PeftNames::renamed_module(const std::string& module) const {
  bool has_prefix = false;
  const std::string name = renamed_name(module + ".", has_prefix);
  return name.empty() ? "" : name.substr(0, name.size() - 1);
}

std::string PeftNames::strip_warning(const std::set<std::string>& modules) const {
  if (names_.strip.empty()) return "";
  // A module "model" that is part of the prefix itself does not count.
  const auto other = std::find_if(modules.begin(), modules.end(), [&](const std::string& module) {
    return !(module + ".").starts_with(names_.strip) && !names_.strip.starts_with(module + ".");
  });
  if (other == modules.end()) return "";
  return "--strip " + names_.strip +
         " does not apply to a part of the model, since the file also has \"" + *other +
         "\": PEFT ignores adapters of names that its model lacks, so compare target_modules of "
         "adapter_config.json with model.named_modules(); where the file has the model's own "
         "names, "
         "leave --strip out";
}

void PeftNames::check_strip(const std::set<std::string>& modules) const {
  if (names_.strip.empty() || stripped_) return;
  refuse_peft("--strip", "no module of the adapters has this prefix",
              "the beginning of names such as " + *modules.begin(), names_.strip,
              "leave --strip out, or name their prefix");
}

}  // namespace tandem::api
