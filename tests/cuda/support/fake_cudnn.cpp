// The functions of the fake cuDNN and their checks.
#include "tests/cuda/support/fake_cudnn.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "tests/cuda/support/fake_cudnn_rules.h"

namespace tandem::testing {
namespace {

FakeCudnn* current_cudnn = nullptr;

}  // namespace

/// The functions in the table.
struct CudnnFunctions {
  static bool fails(const char* name, cudnnStatus_t& status) {
    assert(current_cudnn != nullptr);
    const auto found = current_cudnn->failing.find(name);
    if (found == current_cudnn->failing.end()) return false;
    status = found->second;
    current_cudnn->failing.erase(found);
    current_cudnn->last_ = std::string(name) + " fails because a test wants it";
    return true;
  }

  static std::size_t get_version() { return CUDNN_VERSION; }
  static std::size_t get_cudart_version() { return 13000; }
  static const char* get_error_string(cudnnStatus_t status) {
    return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_OF_THE_FAKE";
  }
  static void get_last_error_string(char* to, std::size_t room) {
    std::strncpy(to, current_cudnn->last_.c_str(), room);
    if (room > 0) to[room - 1] = 0;
  }

  static cudnnStatus_t create(cudnnHandle_t* to) {
    cudnnStatus_t status;
    if (fails("cudnnCreate", status)) return status;
    auto handle = std::make_unique<FakeCudnn::Handle>();
    void* const key = handle.get();
    current_cudnn->handles_[key] = std::move(handle);
    *to = static_cast<cudnnHandle_t>(key);
    return CUDNN_STATUS_SUCCESS;
  }
  static cudnnStatus_t destroy(cudnnHandle_t handle) {
    if (current_cudnn->handles_.erase(handle) == 0)
      return current_cudnn->broken("an unknown handle is destroyed");
    return CUDNN_STATUS_SUCCESS;
  }
  static cudnnStatus_t set_stream(cudnnHandle_t handle, cudaStream_t stream) {
    cudnnStatus_t status;
    if (fails("cudnnSetStream", status)) return status;
    const auto found = current_cudnn->handles_.find(handle);
    if (found == current_cudnn->handles_.end())
      return current_cudnn->broken("a stream is set of no handle");
    found->second->stream = stream;
    return CUDNN_STATUS_SUCCESS;
  }

  static cudnnStatus_t create_descriptor(cudnnBackendDescriptorType_t type,
                                         cudnnBackendDescriptor_t* to) {
    cudnnStatus_t status;
    if (fails("cudnnBackendCreateDescriptor", status)) return status;
    auto item = std::make_unique<FakeCudnn::Item>();
    item->type = type;
    if (type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) ++current_cudnn->packs_made_;
    void* const key = item.get();
    current_cudnn->descriptors_[key] = std::move(item);
    *to = key;
    return CUDNN_STATUS_SUCCESS;
  }
  static cudnnStatus_t destroy_descriptor(cudnnBackendDescriptor_t descriptor) {
    if (current_cudnn->descriptors_.erase(descriptor) == 0)
      return current_cudnn->broken("an unknown descriptor is destroyed");
    return CUDNN_STATUS_SUCCESS;
  }

  static cudnnStatus_t set_attribute(cudnnBackendDescriptor_t descriptor,
                                     cudnnBackendAttributeName_t name,
                                     cudnnBackendAttributeType_t type, std::int64_t count,
                                     const void* values) {
    cudnnStatus_t status;
    if (fails("cudnnBackendSetAttribute", status)) return status;
    FakeCudnn::Item* item = current_cudnn->find(descriptor);
    const std::string what = "attribute " + std::to_string(name);
    if (item == nullptr) return current_cudnn->broken(what + " is set of no descriptor");
    if (item->is_finished) return current_cudnn->broken(what + " is set of a finished descriptor");
    const AttributeRule* rule = find_rule(item->type, name);
    if (rule == nullptr)
      return current_cudnn->broken(what + " does not belong to descriptor type " +
                                   std::to_string(item->type));
    if (rule->type != type) return current_cudnn->broken(what + " has another type");
    if (count < 1 || count > rule->most || values == nullptr)
      return current_cudnn->broken(what + " has " + std::to_string(count) + " values");
    const std::size_t bytes = bytes_of(type) * static_cast<std::size_t>(count);
    FakeCudnn::Attribute& to = item->attributes[name];
    to.type = type;
    to.count = count;
    to.bytes.resize(bytes);
    std::memcpy(to.bytes.data(), values, bytes);
    return CUDNN_STATUS_SUCCESS;
  }

  static cudnnStatus_t get_attribute(cudnnBackendDescriptor_t descriptor,
                                     cudnnBackendAttributeName_t name,
                                     cudnnBackendAttributeType_t type, std::int64_t room,
                                     std::int64_t* count, void* to) {
    cudnnStatus_t status;
    if (fails("cudnnBackendGetAttribute", status)) return status;
    FakeCudnn::Item* item = current_cudnn->find(descriptor);
    if (item == nullptr) return current_cudnn->broken("an attribute is read of no descriptor");
    if (!item->is_finished)
      return current_cudnn->broken("an attribute is read of a descriptor that is not finished",
                                   CUDNN_STATUS_NOT_INITIALIZED);
    return current_cudnn->get(*item, name, type, room, count, to);
  }

  static cudnnStatus_t finalize(cudnnBackendDescriptor_t descriptor) {
    cudnnStatus_t status;
    if (fails("cudnnBackendFinalize", status)) return status;
    FakeCudnn::Item* item = current_cudnn->find(descriptor);
    if (item == nullptr) return current_cudnn->broken("no descriptor is finished");
    if (item->is_finished) return current_cudnn->broken("a descriptor is finished twice");
    for (const AttributeRule& rule : attribute_rules()) {
      if (rule.descriptor != item->type || !rule.is_required) continue;
      if (!item->attributes.contains(rule.name))
        return current_cudnn->broken("attribute " + std::to_string(rule.name) + " is missing");
    }
    for (const auto& [name, attribute] : item->attributes) {
      if (attribute.type != CUDNN_TYPE_BACKEND_DESCRIPTOR) continue;
      for (void* part : current_cudnn->values<void*>(*item, name)) {
        const FakeCudnn::Item* known = current_cudnn->find(part);
        if (known == nullptr || !known->is_finished)
          return current_cudnn->broken(
              "attribute " + std::to_string(name) + " names a descriptor that is not finished",
              CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
      }
    }
    status = current_cudnn->finish(*item);
    item->is_finished = status == CUDNN_STATUS_SUCCESS;
    return status;
  }

  static cudnnStatus_t execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                               cudnnBackendDescriptor_t pack) {
    cudnnStatus_t status;
    if (fails("cudnnBackendExecute", status)) return status;
    const auto known = current_cudnn->handles_.find(handle);
    const FakeCudnn::Item *p = current_cudnn->find(plan), *v = current_cudnn->find(pack);
    if (known == current_cudnn->handles_.end() || p == nullptr || v == nullptr || !p->is_finished ||
        !v->is_finished || p->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
        v->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {
      return current_cudnn->broken("what is executed is no finished plan with a finished pack");
    }
    return current_cudnn->execute(*known->second, *p, *v);
  }

  static cudnnStatus_t no_graph(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t,
                                cudaGraph_t) {
    return current_cudnn->broken("plans are captured, not made into graphs");
  }
};

FakeCudnn::FakeCudnn(std::shared_ptr<FakeRuntime> runtime) : runtime_(std::move(runtime)) {
  assert(current_cudnn == nullptr);
  current_cudnn = this;
  using F = CudnnFunctions;
  table_ = {&F::get_version,
            &F::get_cudart_version,
            &F::get_error_string,
            &F::get_last_error_string,
            &F::create,
            &F::destroy,
            &F::set_stream,
            &F::create_descriptor,
            &F::destroy_descriptor,
            &F::finalize,
            &F::set_attribute,
            &F::get_attribute,
            &F::execute,
            &F::no_graph,
            &F::no_graph};
  engines = {{.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, .workspace_bytes = 1000},
             {.notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}},
             {.notes = {}, .workspace_bytes = 3001},
             {.notes = {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}, .is_fallback = true}};
}

FakeCudnn::~FakeCudnn() { current_cudnn = nullptr; }

cudnnStatus_t FakeCudnn::broken(const std::string& text, cudnnStatus_t status) {
  problems_.push_back(text);
  last_ = text;
  return status;
}

FakeCudnn::Item* FakeCudnn::find(const void* handle) {
  const auto found = descriptors_.find(const_cast<void*>(handle));
  return found == descriptors_.end() ? nullptr : found->second.get();
}

const FakeCudnn::Item* FakeCudnn::part(const Item& item, int name) {
  return find(value<void*>(item, name));
}

cudnnStatus_t FakeCudnn::finish(Item& item) {
  switch (item.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return finish_tensor(item);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR: {
      const auto axes =
          static_cast<std::size_t>(value<std::int64_t>(item, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
      for (const int name :
           {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
            CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES}) {
        if (values<std::int64_t>(item, name).size() != axes)
          return broken("a convolution's settings are of another number of axes");
      }
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return finish_graph(item);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      ++questions_;
      item.graph = part(item, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)->graph;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return finish_plan(item);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      if (values<std::int64_t>(item, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).size() !=
          values<void*>(item, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).size())
        return broken("a pack has not as many addresses as ids");
      return CUDNN_STATUS_SUCCESS;
    default:
      return CUDNN_STATUS_SUCCESS;
  }
}

FakeTensor FakeCudnn::tensor_of(const Item& item) const {
  FakeTensor tensor;
  tensor.id = value<std::int64_t>(item, CUDNN_ATTR_TENSOR_UNIQUE_ID);
  tensor.type = value<cudnnDataType_t>(item, CUDNN_ATTR_TENSOR_DATA_TYPE);
  tensor.extents = values<std::int64_t>(item, CUDNN_ATTR_TENSOR_DIMENSIONS);
  tensor.strides = values<std::int64_t>(item, CUDNN_ATTR_TENSOR_STRIDES);
  tensor.is_virtual = value<char>(item, CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0;
  tensor.is_by_value = value<char>(item, CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0;
  tensor.is_tiled = value<cudnnBackendTensorReordering_t>(item, CUDNN_ATTR_TENSOR_REORDERING_MODE,
                                                          CUDNN_TENSOR_REORDERING_NONE) !=
                    CUDNN_TENSOR_REORDERING_NONE;
  return tensor;
}

cudnnStatus_t FakeCudnn::finish_tensor(const Item& item) {
  const FakeTensor tensor = tensor_of(item);
  if (tensor.extents.size() != tensor.strides.size())
    return broken("a tensor has not as many strides as axes");
  for (std::size_t i = 0; i < tensor.extents.size(); ++i) {
    if (tensor.extents[i] < 1 || tensor.strides[i] < 1)
      return broken("a tensor has an extent or a stride below 1");
  }
  if (tensor.is_by_value && (tensor.count() != 1 || tensor.is_virtual))
    return broken("a tensor that is passed by value is no single number");
  std::vector<std::size_t> order(tensor.extents.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return tensor.strides[a] < tensor.strides[b]; });
  std::int64_t within = 1;
  for (const std::size_t axis : order) {
    if (tensor.extents[axis] == 1) continue;
    if (tensor.strides[axis] < within) return broken("a tensor's elements overlap");
    within = tensor.strides[axis] * tensor.extents[axis];
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace tandem::testing
