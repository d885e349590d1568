#include "api/generate/text_inputs.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "api/init/roles.h"
#include "engine/config/keys/config_check.h"
#include "engine/data/functions/field_function.h"

namespace tandem::api {
namespace {

bool is_number(const std::string& dim) {
  return !dim.empty() &&
         std::all_of(dim.begin(), dim.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// The field of the configuration that feeds an input; null where it is not made of tokens.
const FieldConfig* field_of(const RunConfig& config, const std::string& input) {
  if (!config.data || config.data->table() != nullptr) return nullptr;
  constexpr std::array arrays{text_arrays::tokens, text_arrays::mask, text_arrays::positions,
                              text_arrays::attention};
  for (const FieldConfig& field : config.data->fields) {
    const bool is_of_tokens = std::any_of(arrays.begin(), arrays.end(),
                                          [&](const char* name) { return field.from == name; });
    if (field.name == input && is_of_tokens) return &field;
  }
  return nullptr;
}

/// A function that names the length, so that samples have no other one.
bool names_length(const FieldConfig& field) {
  return std::any_of(field.as.begin(), field.as.end(),
                     [](const Transform& function) { return function.kind->name == "reshape"; });
}

class Reader {
 public:
  Reader(const RunConfig& config, const std::vector<DeclaredInput>& inputs)
      : config_(config), inputs_(inputs) {}

  TextInputs run() {
    for (const DeclaredInput& input : inputs_) take(input);
    const bool has_tokens =
        std::any_of(result_.fields.begin(), result_.fields.end(),
                    [](const FieldConfig& field) { return field.from == text_arrays::tokens; });
    if (!has_tokens && problems_.empty())
      problems_.push_back({.message = "no input of the model takes token ids",
                           .file = config_.model.file,
                           .expected = "an input of whole numbers, such as input_ids"});
    if (!problems_.empty()) throw Error(ErrorKind::usage, std::move(problems_));
    for (const auto& [name, extent] : config_.model.bind) {
      if (may_keep(name)) result_.bind.emplace_back(name, extent);
    }
    return std::move(result_);
  }

 private:
  /// Whether the configuration's extent of a dimension holds here too.
  bool may_keep(const std::string& name) const {
    const auto is_bound = [&](const auto& bound) { return bound.first == name; };
    if (std::any_of(result_.bind.begin(), result_.bind.end(), is_bound)) return false;
    const auto& lengths = result_.lengths;
    if (std::find(lengths.begin(), lengths.end(), name) != lengths.end()) return false;
    return std::none_of(inputs_.begin(), inputs_.end(), [&](const DeclaredInput& input) {
      return !input.dims.empty() && input.dims[0] == name;  // the batch is 1
    });
  }

  void take(const DeclaredInput& input) {
    const Role role = role_named(input.name);
    if (role == Role::past) return take_past(input);
    if (role == Role::switches && input.may_have_value) {
      result_.bind.emplace_back(input.name, 0);
      return;
    }
    if (const FieldConfig* const own = field_of(config_, input.name)) {
      FieldConfig field = *own;
      field.augment.clear();
      if (names_length(field))
        fix_length(config_.data->window_length(),
                   "data.fields." + input.name + ", whose functions name the length");
      return add(input, std::move(field));
    }
    FieldConfig field{.name = input.name, .from = array_of(input, role)};
    if (field.from.empty()) return refuse(input, role);
    if (role == Role::segments) field.as.push_back(parse_transform("fill(0)"));
    if (input.dtype != DType::int64) field.as.push_back(cast_to(*input.dtype));
    add(input, std::move(field));
  }

  /// The array that fills an input, by its name; "": none does.
  std::string array_of(const DeclaredInput& input, Role role) const {
    if (!input.dtype || input.dims.size() != 2) return "";
    switch (role) {
      case Role::mask:
        return text_arrays::mask;
      case Role::positions:
        return is_integer(*input.dtype) ? text_arrays::positions : "";
      case Role::segments:
        return is_integer(*input.dtype) ? text_arrays::tokens : "";
      case Role::none:
        return is_integer(*input.dtype) && may_be_tokens(input) ? text_arrays::tokens : "";
      default:
        return "";
    }
  }

  /// Whether the name is the usual one, or no other input could be the tokens.
  bool may_be_tokens(const DeclaredInput& input) const {
    if (input.name == "input_ids") return true;
    const auto others =
        std::count_if(inputs_.begin(), inputs_.end(), [](const DeclaredInput& other) {
          return role_named(other.name) == Role::none && other.dtype && is_integer(*other.dtype);
        });
    return others == 1;
  }

  void add(const DeclaredInput& input, FieldConfig field) {
    const std::size_t axes = field.from == text_arrays::attention ? 2 : 1;
    for (std::size_t i = std::max<std::size_t>(1, input.dims.size() - axes); i < input.dims.size();
         ++i) {
      const std::string& dim = input.dims[i];
      if (is_number(dim)) {
        const std::int64_t extent = std::stoll(dim);
        if (axes == 1 || extent > 1)
          fix_length(extent, "axis " + std::to_string(i) + " of the input " + input.name);
      } else if (std::find(result_.lengths.begin(), result_.lengths.end(), dim) ==
                 result_.lengths.end()) {
        result_.lengths.push_back(dim);
      }
      if (field.from == text_arrays::tokens && result_.trained_length == 0)
        result_.trained_length = extent_of(dim);
    }
    result_.fields.push_back(std::move(field));
  }

  std::int64_t extent_of(const std::string& dim) const {
    if (is_number(dim)) return std::stoll(dim);
    const auto found = config_.model.bind.find(dim);
    return found == config_.model.bind.end() ? 0 : found->second;
  }

  void fix_length(std::int64_t length, std::string by) {
    if (result_.only_length > 0 || length <= 0) return;
    result_.only_length = length;
    result_.fixed_by = std::move(by);
  }

  void take_past(const DeclaredInput& input) {
    for (std::size_t i = 1; i < input.dims.size(); ++i) {
      const std::string& dim = input.dims[i];
      const bool is_known = std::any_of(result_.bind.begin(), result_.bind.end(),
                                        [&](const auto& bound) { return bound.first == dim; });
      if (is_number(dim) || dim == "?" || is_known) continue;
      const auto said = config_.model.bind.find(dim);
      result_.bind.emplace_back(dim, said == config_.model.bind.end() ? 0 : said->second);
    }
  }

  void refuse(const DeclaredInput& input, Role role) {
    const bool is_of_encoder = role == Role::decoder_ids || role == Role::encoder_states;
    Diagnostic& d = is_of_encoder ? problems_.emplace_back() : result_.unfilled.emplace_back();
    d.file = config_.model.file;
    d.path = input.name;
    if (is_of_encoder) {
      d.message = "the model writes an answer to what an encoder reads";
      d.expected = "a decoder, which goes on with the tokens of its prompt";
      return;
    }
    d.message = "nothing fills this input: it is no row of tokens, mask or positions";
    std::string dims;
    for (const std::string& dim : input.dims) dims += (dims.empty() ? "" : ", ") + dim;
    d.got = (input.dtype ? std::string(name_of(*input.dtype)) : "another type") + " [" + dims + "]";
    d.fix =
        "make it of tokens, mask, positions or attention in [data.fields], or export the model "
        "without it";
  }

  const RunConfig& config_;
  const std::vector<DeclaredInput>& inputs_;
  TextInputs result_;
  std::vector<Diagnostic> problems_;
};

}  // namespace

TextInputs text_inputs(const RunConfig& config, const std::vector<DeclaredInput>& inputs) {
  return Reader(config, inputs).run();
}

}  // namespace tandem::api
