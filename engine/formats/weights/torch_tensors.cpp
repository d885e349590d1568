#include "engine/formats/weights/torch_tensors.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "engine/formats/claim.h"
#include "engine/formats/weights/torch_names.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view dicts_of_weights[] = {
    "state_dict", "model_state_dict", "model", "module", "net", "weights"};
constexpr int deepest_dict = 4;
constexpr std::size_t most_axes = 64, most_notes = 5;

class TensorFinder {
 public:
  TensorFinder(const Pickle& pickle, const std::string& file) : pickle_(pickle), file_(file) {}

  TorchTensors run() {
    const PickleValue* dict = &pickle_.at(pickle_.root);
    std::string under;
    for (int depth = 0; depth < deepest_dict && dict->kind == Kind::dict; ++depth) {
      const auto inner = has_tensors(*dict) ? std::pair("", nullptr) : dict_of_weights(*dict);
      if (inner.second == nullptr) break;
      under += (under.empty() ? "" : ".") + std::string(inner.first);
      dict = inner.second;
    }
    if (dict->kind == Kind::dict) collect(*dict, "", has_tensors(*dict) ? deepest_dict - 1 : 0);
    if (found_.tensors.empty() && passed_over_.empty()) refuse_none(*dict);
    if (!under.empty()) found_.notes.push_back("the tensors are those under \"" + under + "\"");
    if (!passed_over_.empty()) {
      std::string text = "left out, since their element types are not supported here: ";
      const std::size_t shown = std::min(passed_over_.size(), most_notes);
      text += joined(std::vector<std::string>(passed_over_.begin(), passed_over_.begin() + shown));
      if (shown < passed_over_.size())
        text += " and " + std::to_string(passed_over_.size() - shown) + " more";
      found_.notes.push_back(std::move(text));
    }
    return std::move(found_);
  }

 private:
  [[noreturn]] void fail(const std::string& tensor, std::string message, std::string expected = "",
                         std::string got = "") const {
    throw Error(ErrorKind::data, {.message = std::move(message),
                                  .file = file_,
                                  .path = tensor,
                                  .expected = std::move(expected),
                                  .got = std::move(got)});
  }
  [[noreturn]] void refuse_none(const PickleValue& value) const {
    std::vector<std::string> keys;
    for (std::size_t i = 0; value.kind == Kind::dict && i + 1 < value.items.size(); i += 2) {
      const PickleValue& key = pickle_.at(value.items[i]);
      if (key.kind == Kind::text && keys.size() < most_notes)
        keys.push_back("\"" + key.text.substr(0, 40) + "\"");
    }
    throw Error(ErrorKind::data,
                {.message = "there is no dict of tensors in this file",
                 .file = file_,
                 .expected = "what torch.save(model.state_dict(), FILE) writes",
                 .got = keys.empty() ? "something else" : "a dict with " + joined(keys),
                 .fix = "save the dict of tensors by itself"});
  }

  static bool is_tensor(const PickleValue& value) {
    return value.kind == Kind::call &&
           (value.text == rebuild_tensor || value.text == rebuild_any_tensor ||
            value.text == rebuild_parameter);
  }
  bool has_tensors(const PickleValue& dict) const {
    for (std::size_t i = 1; i < dict.items.size(); i += 2) {
      if (is_tensor(pickle_.at(dict.items[i]))) return true;
    }
    return false;
  }
  std::pair<std::string_view, const PickleValue*> dict_of_weights(const PickleValue& dict) const {
    for (const std::string_view key : dicts_of_weights) {
      const PickleValue* value = pickle_.find(dict, key);
      if (value != nullptr && value->kind == Kind::dict) return {key, value};
    }
    return {"", nullptr};
  }

  /// Tensors of a dict and of dicts in it, each dict once.
  void collect(const PickleValue& dict, const std::string& prefix, int depth) {
    if (depth >= deepest_dict || !seen_.insert(&dict).second) return;
    for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const PickleValue &key = pickle_.at(dict.items[i]), &value = pickle_.at(dict.items[i + 1]);
      if (key.kind != Kind::text) continue;
      const std::string name = prefix + key.text;
      if (is_tensor(value)) add(name, value);
      if (value.kind == Kind::dict) collect(value, name + ".", depth + 1);
    }
  }

  void add(const std::string& name, const PickleValue& value) {
    const std::optional<TorchTensor> tensor = read(name, value);
    if (!tensor) return;
    const auto [at, is_new] = index_.emplace(name, found_.tensors.size());
    if (is_new)
      found_.tensors.push_back(*tensor);
    else
      found_.tensors[at->second] = *tensor;  // the last one counts, as in Python
  }

  const PickleValue& argument(const std::string& tensor, const PickleValue& call, std::size_t i,
                              Kind kind) const {
    const PickleValue& all = pickle_.at(call.items[0]);
    if (i >= all.items.size() || pickle_.at(all.items[i]).kind != kind)
      fail(tensor, "its description in the file is broken (argument " + std::to_string(i) + ")");
    return pickle_.at(all.items[i]);
  }
  std::uint64_t natural(const std::string& tensor, const PickleValue& value) const {
    if (value.kind != Kind::integer || value.integer < 0)
      fail(tensor, "its description in the file is broken: a size, a stride or an offset",
           "an integer of 0 or more");
    return static_cast<std::uint64_t>(value.integer);
  }
  /// The numbers of a tuple, or of torch.Size of one.
  std::vector<std::uint64_t> naturals(const std::string& tensor, const PickleValue& value) const {
    const PickleValue* tuple = &value;
    if (value.kind == Kind::call && value.text == "torch.Size") {
      const PickleValue& arguments = pickle_.at(value.items[0]);
      if (arguments.items.size() == 1) tuple = &pickle_.at(arguments.items[0]);
    }
    if (tuple->kind != Kind::tuple || tuple->items.size() > most_axes)
      fail(tensor, "its shape or its strides are no tuple of numbers");
    std::vector<std::uint64_t> numbers;
    for (const PickleId item : tuple->items) numbers.push_back(natural(tensor, pickle_.at(item)));
    return numbers;
  }

  /// A tensor; nothing where its element type is skipped.
  std::optional<TorchTensor> read(const std::string& name, const PickleValue& value) {
    const PickleValue* call = &value;
    if (value.text == rebuild_parameter) call = &argument(name, value, 0, Kind::call);
    if (call->text != rebuild_tensor && call->text != rebuild_any_tensor)
      fail(name, "a parameter that is made of no plain tensor");
    const PickleValue& stored = argument(name, *call, 0, Kind::persistent);
    const PickleValue& tuple = pickle_.at(stored.items[0]);
    // ("storage", type, key, location, elements)
    constexpr std::size_t parts = 5;
    if (tuple.kind != Kind::tuple || tuple.items.size() != parts)
      fail(name, "its storage in the file is broken");
    const PickleValue &head = pickle_.at(tuple.items[0]), &type = pickle_.at(tuple.items[1]),
                      &key = pickle_.at(tuple.items[2]);
    if (head.text != "storage" || type.kind != Kind::global || key.kind != Kind::text)
      fail(name, "its storage in the file is broken");
    std::string type_name = type.text;
    std::optional<DType> dtype = dtype_of_storage(type_name);
    if (call->text == rebuild_any_tensor) {
      constexpr std::size_t dtype_place = 6;
      type_name = argument(name, *call, dtype_place, Kind::global).text;
      dtype = dtype_of_torch(type_name);
    }
    if (!dtype) {
      passed_over_.push_back(name + " (" + type_name + ")");
      return std::nullopt;
    }
    TorchTensor tensor{.name = name, .storage = key.text};
    const std::uint64_t elements = natural(name, pickle_.at(tuple.items[4]));
    const std::uint64_t size = type.text == untyped_storage ? 1 : size_of(*dtype);
    if (__builtin_mul_overflow(elements, size, &tensor.storage_bytes))
      fail(name, "its storage is impossibly large");
    const PickleValue& arguments = pickle_.at(call->items[0]);
    if (arguments.items.size() < 4) fail(name, "its description in the file is broken");
    tensor.offset = natural(name, pickle_.at(arguments.items[1]));
    const std::vector<std::uint64_t> shape = naturals(name, pickle_.at(arguments.items[2]));
    tensor.strides = naturals(name, pickle_.at(arguments.items[3]));
    tensor.type.dtype = *dtype;
    for (const std::uint64_t extent : shape)
      tensor.type.shape.push_back(static_cast<std::int64_t>(extent));
    check_bounds(tensor);
    return tensor;
  }

  void check_bounds(const TorchTensor& tensor) const {
    const Shape& shape = tensor.type.shape;
    if (tensor.strides.size() != shape.size())
      fail(tensor.name, "its strides do not fit its shape");
    const std::optional<std::uint64_t> bytes = bytes_of_array(tensor.type.dtype, shape);
    if (!bytes) fail(tensor.name, "its shape is too large", "", to_string(shape));
    std::uint64_t last = tensor.offset;  // in elements
    bool fits = true;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      std::uint64_t step = 0;
      const auto extent = static_cast<std::uint64_t>(std::max<std::int64_t>(shape[i], 1));
      fits = fits && !__builtin_mul_overflow(extent - 1, tensor.strides[i], &step) &&
             !__builtin_add_overflow(last, step, &last);
    }
    const std::uint64_t there = tensor.storage_bytes / size_of(tensor.type.dtype);
    const bool is_empty = *bytes == 0;
    if (!fits || (is_empty ? tensor.offset > there : last >= there)) {
      fail(tensor.name, "it reaches beyond its storage",
           std::to_string(there) + " elements at most",
           to_string(tensor.type) + " from element " + std::to_string(tensor.offset) + " on");
    }
  }

  const Pickle& pickle_;
  const std::string& file_;
  TorchTensors found_;
  std::map<std::string, std::size_t> index_;
  std::set<const PickleValue*> seen_;
  std::vector<std::string> passed_over_;
};

}  // namespace

bool TorchTensor::is_contiguous() const {
  std::uint64_t expected = 1;
  for (std::size_t i = type.shape.size(); i-- > 0;) {
    const auto extent = static_cast<std::uint64_t>(type.shape[i]);
    if (extent == 0) return true;
    if (extent != 1 && strides[i] != expected) return false;
    expected *= extent;
  }
  return true;
}

TorchTensors find_torch_tensors(const Pickle& pickle, const std::string& file) {
  return TensorFinder(pickle, file).run();
}

}  // namespace tandem
