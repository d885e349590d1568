// The names of element types in the public library.
#include "tandem/dtype.h"

#include "engine/graph/types.h"

namespace tandem::api {
inline namespace v1 {

std::string_view name(DType dtype) { return name_of(dtype); }

}  // namespace v1
}  // namespace tandem::api
