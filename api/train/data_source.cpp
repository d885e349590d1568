// tandem::api::DataSource: what a program's own samples need not say.
#include "tandem/data_source.h"

namespace tandem::api {

v1::DataSource::~DataSource() = default;

std::string v1::DataSource::describe(std::int64_t sample) const {
  return "sample " + std::to_string(sample);
}

}  // namespace tandem::api
