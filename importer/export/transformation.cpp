#include "importer/export/transformation.h"

namespace tandem::importer {
namespace transformations {
#define TRANSFORMATION(name) extern const Transformation name;
#include "importer/export/all_transformations.inl"
#undef TRANSFORMATION
}  // namespace transformations

const std::vector<Transformation>& export_transformations() {
  static const std::vector<Transformation> all{
#define TRANSFORMATION(name) transformations::name,
#include "importer/export/all_transformations.inl"
#undef TRANSFORMATION
  };
  return all;
}

}  // namespace tandem::importer
