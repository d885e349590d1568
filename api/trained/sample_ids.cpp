#include "api/trained/sample_ids.h"

#include <algorithm>
#include <utility>

#include "api/predict/prediction_output.h"
#include "engine/graph/error.h"
#include "engine/graph/text.h"

namespace tandem::api {
namespace {

constexpr const char* path_id = "path";

[[noreturn]] void refuse_id(const std::string& id, std::string message, std::string expected) {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .file = "--id",
                                           .expected = std::move(expected),
                                           .got = id});
}

/// Fields of the source that hold one number per sample.
std::vector<int> id_fields(const tandem::DataSource& source, const std::vector<std::string>& ids) {
  std::vector<int> fields;
  for (const std::string& id : ids) {
    const int field = source.find_field(id);
    if (field < 0)
      refuse_id(id, "the data has no such array",
                joined(source.fields(), ", ", &tandem::DataField::name));
    const TensorType& type = source.fields()[static_cast<std::size_t>(field)].sample;
    if (type.elements() != 1)
      refuse_id(id, "an id is one number a sample", "an array without further axes");
    fields.push_back(field);
  }
  return fields;
}

std::string number_of(const tandem::DataSource& source, int field, std::int64_t sample) {
  HostTensor value(source.fields()[static_cast<std::size_t>(field)].sample);
  const std::int64_t samples[] = {sample};
  source.fill(field, samples, nullptr, value.data());
  if (!is_float(value.dtype())) return std::to_string(value.integers()[0]);
  std::string text;
  append_number(text, value.dtype() == DType::float64 ? value : value.converted(DType::float32), 0);
  return text;
}

}  // namespace

void add_id_arrays(const std::vector<std::string>& ids, DataConfig& wanted,
                   std::vector<std::string>& arrays) {
  for (const std::string& id : ids) {
    const auto has_name = [&](const FieldConfig& field) { return field.name == id; };
    const bool has_fields = !wanted.fields.empty();
    if (has_fields && std::none_of(wanted.fields.begin(), wanted.fields.end(), has_name))
      wanted.fields.push_back({.name = id, .from = id});
    if (std::find(arrays.begin(), arrays.end(), id) == arrays.end()) arrays.push_back(id);
  }
}

std::function<IdTexts(std::int64_t)> ids_of_samples(
    std::shared_ptr<const tandem::DataSource> source, const std::vector<std::string>& ids,
    bool are_pictures) {
  if (ids.empty()) return {};
  if (are_pictures) {
    for (const std::string& id : ids) {
      if (id != path_id) refuse_id(id, "pictures are identified by their path", path_id);
    }
    return [source = std::move(source), count = ids.size()](std::int64_t sample) {
      return IdTexts(count, source->describe(0, sample));
    };
  }
  std::vector<int> fields = id_fields(*source, ids);
  return [source = std::move(source), fields = std::move(fields)](std::int64_t sample) {
    IdTexts texts;
    for (const int field : fields) texts.push_back(number_of(*source, field, sample));
    return texts;
  };
}

}  // namespace tandem::api
