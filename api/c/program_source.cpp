#include "api/c/program_source.h"

#include <string>
#include <utility>

#include "api/c/guarded.h"
#include "api/c/structs.h"
#include "api/c/tensors.h"

namespace tandem::c_library {

ProgramSource::ProgramSource(const TandemDataSource* source, const char* name)
    : source_(read_struct(source, name)) {
  const std::string member = std::string(name) + ".";
  if (source_.fill == nullptr) throw bad_argument(member + "fill", "this function is NULL");
  if (source_.identity == nullptr) throw bad_argument(member + "identity", "this text is NULL");
  identity_ = source_.identity;
  const std::string fields = member + "fields";
  for (std::size_t i = 0; i < source_.field_count; ++i) {
    const TandemTensor field = read_element(source_.fields, i, fields.c_str());
    const std::string field_name = name_of_element(field, i, fields.c_str());
    fields_.push_back({field_name, dtype_of(field.dtype, field_name), shape_of(field, field_name)});
  }
  source_.fields = nullptr;  // those of the caller may be gone
  source_.identity = nullptr;
}

ProgramSource::~ProgramSource() {
  if (is_owned_ && source_.release != nullptr) source_.release(source_.user);
}

void ProgramSource::fill(std::size_t field, std::span<const std::int64_t> indices, void* to) const {
  const int result = source_.fill(source_.user, field, indices.data(), indices.size(), to);
  if (result == 0) return;
  throw Error(ErrorKind::data, Diagnostic{.message = "`fill` of the program's samples failed",
                                          .path = "data.fields." + fields_[field].name,
                                          .expected = "0",
                                          .got = std::to_string(result)});
}

std::shared_ptr<ProgramSource> program_source(const TandemDataSource* source, const char* name) {
  return source == nullptr ? nullptr : std::make_shared<ProgramSource>(source, name);
}

}  // namespace tandem::c_library
