// Makes fields that follow from others: masks, positions and segments from the ids next to them,
// decoder ids from the labels, caches of length 0.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "api/init/data/data_look.h"
#include "api/init/losses/loss_form.h"
#include "api/init/model_config.h"
#include "api/init/roles.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

constexpr const char* export_without_cache =
    "optimum writes one with `--task text-generation` (not `text-generation-with-past`), "
    "torch.onnx.export with model.config.use_cache = False";

/// Whether the lengths may be equal; a free extent may be any.
bool may_be_as_long(const InputFacts& a, const InputFacts& b) {
  const std::int64_t x = a.sample.shape.at(0), y = b.sample.shape.at(0);
  return x < 0 || y < 0 || x == y;
}

class Derivation {
 public:
  Derivation(const std::vector<InputFacts>& inputs, const DataFacts& data, FieldGuesses& guesses)
      : inputs_(inputs), data_(data), guesses_(guesses) {}

  void run() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const FieldGuess& open = field(i);
      if (open.from == nullptr && open.todo.empty() && !open.is_said &&
          data_.choices.contains(inputs_[i].name))
        ask_which_text(i);
    }
    each(Role::decoder_ids, [&](std::size_t i) { derive_decoder_ids(i); });
    each(Role::mask, [&](std::size_t i) { derive_mask(i); });
    each(Role::positions, [&](std::size_t i) { derive_positions(i); });
    each(Role::segments, [&](std::size_t i) { derive_segments(i); });
    each(Role::past, [&](std::size_t i) { leave_past_out(i); });
    each(Role::switches, [&](std::size_t i) {
      field(i).todo =
          "it says which half of a merged decoder runs, with or without a cache, and is not one "
          "boolean that model.bind could set; training takes a file without one: " +
          std::string(export_without_cache);
    });
    each(Role::encoder_states, [&](std::size_t i) {
      field(i).todo =
          "it is what an encoder in another file computes; training takes a file of both: export "
          "the whole model, with input_ids and decoder_input_ids";
    });
  }

 private:
  template <class Derive>
  void each(Role role, const Derive& derive) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const FieldGuess& open = guesses_.fields[i];
      if (open.from == nullptr && open.todo.empty() && !open.is_said && role_of(inputs_[i]) == role)
        derive(i);
    }
  }
  FieldGuess& field(std::size_t i) { return guesses_.fields[i]; }

  /// Inputs of ids that an input accompanies: rows of the same length, in the same half of the
  /// model.
  std::vector<std::size_t> all_ids_beside(std::size_t i) const {
    std::vector<std::size_t> found;
    if (inputs_[i].sample.shape.size() != 1) return found;
    for (std::size_t other = 0; other < inputs_.size(); ++other) {
      const InputFacts& ids = inputs_[other];
      const Role role = role_of(ids);
      const bool is_ids = role == Role::none || role == Role::decoder_ids;
      if (other == i || !is_ids || !is_integer(ids.sample.dtype) || ids.sample.shape.size() != 1 ||
          !may_be_as_long(inputs_[i], ids) || is_decoders(ids.name) != is_decoders(inputs_[i].name))
        continue;
      found.push_back(other);
    }
    return found;
  }
  /// The input of ids that has a field; null where there is none, or several.
  const FieldGuess* ids_beside(std::size_t i) {
    std::vector<std::size_t> found = all_ids_beside(i);
    std::erase_if(found, [&](std::size_t other) { return guesses_.fields[other].from == nullptr; });
    if (found.size() > 1) {  // prefers those that are rows of a table
      std::erase_if(found, [&](std::size_t other) { return inputs_[other].table_rows == 0; });
    }
    return found.size() == 1 ? &guesses_.fields[found[0]] : nullptr;
  }

  /// A chosen text with the functions that this input needs.
  FieldGuess choice_of(std::size_t i, const ArrayFacts& array,
                       const std::vector<std::string>& more) const {
    FieldGuess choice;
    choice.from = &array;
    choice.as = array.made_by;
    choice.as.insert(choice.as.end(), more.begin(), more.end());
    if (inputs_[i].sample.dtype != DType::int64)
      choice.as.emplace_back(name_of(inputs_[i].sample.dtype));
    return choice;
  }
  /// Offers one line for each of these texts, which all have the same length.
  void offer_texts(std::size_t i, const std::vector<ArrayFacts>& texts,
                   const std::vector<std::string>& more) {
    FieldGuess& to = field(i);
    for (const ArrayFacts& text : texts) {
      to.offer += (to.offer.empty() ? "" : "\n") + field_toml(choice_of(i, text, more));
      to.offered.push_back(text.columns.at(0));
    }
    if (inputs_[i].sample.shape.at(0) < 0 && inputs_[i].dims.size() > 1)
      guesses_.bind.emplace(inputs_[i].dims[1], texts.at(0).sample.shape.at(0));
  }
  void ask_which_text(std::size_t i) {
    const std::vector<ArrayFacts>& texts = data_.choices.at(inputs_[i].name);
    const auto name = [](const ArrayFacts& text) { return "\"" + text.columns.at(0) + "\""; };
    const Role role = role_of(inputs_[i]);
    if (role == Role::decoder_ids) {
      const auto [start, pad, file] = start_of_decoder();
      offer_texts(i, texts, {shift_text(start, pad.value_or(texts[0].padding.value_or(0)))});
      field(i).todo = fmt::format(
          "which of the columns {} does the model write? Keep only its line, here and for the "
          "labels; \"{}\" takes another one{}",
          joined(texts, ", ", name), source_ids(), start ? "" : ". " + std::string(asks_for_start));
      return;
    }
    offer_texts(i, texts, {});
    if (role == Role::mask || role == Role::segments) {
      field(i).todo = fmt::format("goes with \"{}\": the same column", source_ids());
      return;
    }
    field(i).todo = fmt::format(
        "which of the columns {} does it read? A field takes one; where a sample is several of "
        "them, as a prompt with its answer, write these as one column into the file first",
        joined(texts, ", ", name));
  }
  /// The input that a choice of texts is offered for.
  std::string source_ids() const {
    for (const InputFacts& input : inputs_) {
      if (data_.choices.contains(input.name) && role_of(input) == Role::none) return input.name;
    }
    return "input_ids";
  }
  /// An input that is made from ids stays open while the choice of these ids is open; each line
  /// offered for the ids then gets one for this input.
  bool goes_with_choice(std::size_t i, const std::string& function) {
    for (const std::size_t ids : all_ids_beside(i)) {
      const auto choices = data_.choices.find(inputs_[ids].name);
      if (choices == data_.choices.end() || guesses_.fields[ids].from != nullptr) continue;
      std::vector<std::string> more{function};
      if (role_of(inputs_[ids]) == Role::decoder_ids) {
        const auto [start, pad, file] = start_of_decoder();
        more.insert(more.begin(),
                    shift_text(start, pad.value_or(choices->second[0].padding.value_or(0))));
      }
      offer_texts(i, choices->second, more);
      field(i).todo = fmt::format("goes with \"{}\": the same column", inputs_[ids].name);
      return true;
    }
    return false;
  }

  /// Gives the field the functions of the ids and one more.
  void take(std::size_t i, const FieldGuess& ids, const std::string& function, std::string why) {
    FieldGuess& to = field(i);
    to.from = ids.from;
    to.as = ids.as;
    to.as.push_back(function);
    finish(i, std::move(why));
  }
  /// Adds a cast where the element type differs from that of the functions, and binds free
  /// dimensions.
  void finish(std::size_t i, std::string why) {
    const InputFacts& input = inputs_[i];
    FieldGuess& to = field(i);
    if (input.sample.dtype != DType::int64) to.as.emplace_back(name_of(input.sample.dtype));
    to.why = std::move(why);
    if (input.sample.shape.at(0) < 0 && input.dims.size() > 1)
      guesses_.bind.emplace(input.dims[1], to.from->sample.shape.at(0));
  }

  /// Explains that there are no ids, of which `function` would make the field.
  void no_ids(std::size_t i, const std::string& what, const std::string& function) {
    if (goes_with_choice(i, function)) return;
    std::vector<std::string> names;
    for (const std::size_t ids : all_ids_beside(i)) {
      if (inputs_[ids].name != inputs_[i].name) names.push_back("\"" + inputs_[ids].name + "\"");
    }
    if (names.empty()) {
      field(i).todo = what + " belongs to an input of ids, and the model has none";
      return;
    }
    if (names.size() == 1) {
      field(i).todo = fmt::format(
          "{} belongs to {}: when its field is there, write the same with \"{}\" after its "
          "functions",
          what, names[0], function);
      return;
    }
    field(i).todo = fmt::format(
        "{} belongs to one of the inputs {}, and it is not clear to which: "
        "{{ from = \"IDS\", as = [ \"{}\" ] }}",
        what, joined(names), function);
  }

  void derive_mask(std::size_t i) {
    const FieldGuess* ids = ids_beside(i);
    if (ids == nullptr) return no_ids(i, "what distinguishes tokens from padding", "fill(1)");
    const ArrayFacts& array = *ids->from;
    if (is_decoders(inputs_[i].name))
      return take(i, *ids, "fill(1)",
                  "1 everywhere: the padding of a decoder comes after its ids, which do not see "
                  "it, and has no label");
    if (array.padding)
      return take(i, *ids, fmt::format("mask(pad={})", *array.padding),
                  fmt::format("1 up to the last id that is not {}, the padding of \"{}\"",
                              *array.padding, array.name));
    if (array.is_ragged)
      return take(i, *ids, "mask(pad=0)", "1 for the values of a list, 0 for its padding");
    take(i, *ids, "fill(1)",
         fmt::format("1 everywhere: nothing in \"{}\" looks like padding", array.name));
  }

  void derive_positions(std::size_t i) {
    const InputFacts& input = inputs_[i];
    if (input.sample.shape.empty()) {
      field(i).todo =
          "it has one place for each token and no axis of the batch, so that no field fits it: "
          "export without it, and without a cache; " +
          std::string(export_without_cache);
      return;
    }
    const FieldGuess* ids = ids_beside(i);
    if (ids == nullptr) return no_ids(i, "the position of each token", "positions");
    const std::int64_t length = ids->from->sample.shape.at(0);
    if (input.table_rows > 0 && length > input.table_rows) {
      field(i).todo =
          fmt::format("samples are {} long, and the table of positions has {} rows: shorten them",
                      length, input.table_rows);
      return;
    }
    take(i, *ids, "positions", "0, 1, 2, … along each sample");
  }

  void derive_segments(std::size_t i) {
    const FieldGuess* ids = ids_beside(i);
    if (ids == nullptr) return no_ids(i, "the segment of each token", "fill(0)");
    take(i, *ids, "fill(0)", "0 everywhere: samples are single texts, which have one segment");
  }

  /// Labels that a decoder could write; null where there are none or several.
  const ArrayFacts* labels_of(const InputFacts& input) const {
    const ArrayFacts* found = nullptr;
    for (const ArrayFacts* array : usable_arrays(data_)) {
      const TensorType& type = array->sample;
      if (!array->is_label || array->is_text || type.shape.size() != 1 || type.shape[0] < 2 ||
          !is_integer(type.dtype) || !array->numbers.whole || guesses_.used.contains(array))
        continue;
      const std::int64_t wanted = input.sample.shape.at(0);
      if (wanted > 0 && wanted != type.shape[0]) continue;
      if (found != nullptr) return nullptr;
      found = array;
    }
    return found;
  }

  void derive_decoder_ids(std::size_t i) {
    const ArrayFacts* labels = labels_of(inputs_[i]);
    if (labels == nullptr) {
      field(i).todo =
          "the decoder reads the labels, one place later; no row of labels fits, and no column of "
          "texts has the name of a model's output (\"target\", \"summary\", \"labels\"): { from = "
          "\"LABELS\", as = [ \"shift_right(start=0, pad=0)\" ] }";
      return;
    }
    const auto [start, pad, file] = start_of_decoder();
    FieldGuess& to = field(i);
    to.as = label_functions(*labels, true);
    const bool is_made = !labels->made.empty() && labels->padding;
    to.as.push_back(shift_text(start, pad.value_or(is_made ? *labels->padding : 0)));
    to.from = labels;
    const std::string name = is_made ? labels->source : labels->name;
    if (!start) {
      to.offer = field_toml(to);
      to.from = nullptr;
      to.as.clear();
      to.offered = labels->columns;
      to.todo = fmt::format("\"{}\" one place later; {}", name, asks_for_start);
      if (inputs_[i].sample.shape.at(0) < 0 && inputs_[i].dims.size() > 1)
        guesses_.bind.emplace(inputs_[i].dims[1], labels->sample.shape.at(0));
      return;
    }
    finish(i,
           fmt::format("\"{}\" one place later, after decoder_start_token_id of {}", name, file));
  }

  static constexpr const char* asks_for_start =
      "which id does the decoder start with, and which one is padding? decoder_start_token_id and "
      "pad_token_id of the model's config.json say it, which is read if it is in the folder of the "
      "model (T5: 0 and 0, BART: 2 and 1)";
  static std::string shift_text(std::optional<std::int64_t> start, std::int64_t pad) {
    return fmt::format("shift_right(start={}, pad={})", start.value_or(0), pad);
  }
  struct DecoderStart {
    std::optional<std::int64_t> start, pad;
    std::string file;
  };
  DecoderStart start_of_decoder() const {
    DecoderStart found;
    if (const auto start = number_in_config(data_.model_folder, "decoder_start_token_id")) {
      found.start = start->value;
      found.file = start->file;
    }
    if (const auto pad = number_in_config(data_.model_folder, "pad_token_id"))
      found.pad = pad->value;
    return found;
  }

  /// Binds free dimensions that only caches have to 0, so that the input is empty.
  void leave_past_out(std::size_t i) {
    const InputFacts& input = inputs_[i];
    for (std::size_t axis = 0; axis < input.sample.shape.size(); ++axis) {
      if (input.sample.shape[axis] >= 0 || axis + 1 >= input.dims.size()) continue;
      const std::string& name = input.dims[axis + 1];
      const bool is_shared =
          std::any_of(inputs_.begin(), inputs_.end(), [&](const InputFacts& other) {
            return role_of(other) != Role::past &&
                   std::find(other.dims.begin(), other.dims.end(), name) != other.dims.end();
          });
      if (is_shared || name.empty() || name == "?") continue;
      guesses_.bind[name] = 0;
      field(i).is_left_out = true;
      field(i).why = "a cache that is empty";
    }
    if (!field(i).is_left_out) {
      field(i).todo =
          "it is the cache of earlier calls, and its length is fixed: training takes a file "
          "without a cache; " +
          std::string(export_without_cache);
    }
  }

  const std::vector<InputFacts>& inputs_;
  const DataFacts& data_;
  FieldGuesses& guesses_;
};

}  // namespace

void derive_fields(const std::vector<InputFacts>& inputs, const DataFacts& data,
                   FieldGuesses& guesses) {
  Derivation(inputs, data, guesses).run();
}

}  // namespace tandem::api
