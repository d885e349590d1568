// Graphs, engines and plans of the fake cuDNN.
#include <algorithm>
#include <set>

#include "tests/cuda/support/fake_cudnn.h"
#include "tests/cuda/support/fake_cudnn_rules.h"

namespace tandem::testing {
namespace {

bool overlap(const void* x, std::size_t x_bytes, const void* y, std::size_t y_bytes) {
  const auto a = reinterpret_cast<std::uintptr_t>(x), b = reinterpret_cast<std::uintptr_t>(y);
  return a < b + y_bytes && b < a + x_bytes;
}

std::size_t span_bytes(const FakeTensor& t) {
  return static_cast<std::size_t>(t.span_elements()) * bytes_of(t.type);
}

/// Calls f with the offset of every element, in bytes.
template <class F>
void for_each_offset(const FakeTensor& t, const F& f) {
  const auto size = static_cast<std::int64_t>(bytes_of(t.type));
  for (std::int64_t i = 0; i < t.count(); ++i) {
    std::int64_t left = i, offset = 0;
    for (std::size_t axis = t.extents.size(); axis-- > 0;) {
      offset += left % t.extents[axis] * t.strides[axis];
      left /= t.extents[axis];
    }
    f(offset * size);
  }
}

/// Whether an element of one tensor overlaps an element of the other. Interleaved tensors (q, k and
/// v of one product) do not overlap.
bool overlap(const FakeTensor& x, const void* x_address, const FakeTensor& y,
             const void* y_address) {
  if (!overlap(x_address, span_bytes(x), y_address, span_bytes(y))) return false;
  const auto* const x_bytes = static_cast<const std::byte*>(x_address);
  const auto* const y_bytes = static_cast<const std::byte*>(y_address);
  std::vector<bool> taken(span_bytes(x));
  for_each_offset(x, [&](std::int64_t at) {
    for (std::size_t b = 0; b < bytes_of(x.type); ++b)
      taken[static_cast<std::size_t>(at) + b] = true;
  });
  bool found = false;
  for_each_offset(y, [&](std::int64_t at) {
    for (std::size_t b = 0; b < bytes_of(y.type); ++b) {
      const std::ptrdiff_t place = y_bytes + at + b - x_bytes;
      found = found ||
              (place >= 0 && place < std::ssize(taken) && taken[static_cast<std::size_t>(place)]);
    }
  });
  return found;
}

/// The descriptor's names of what FakeOperation calls x, b, select, y and settings.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  int x, b, select, y, settings;
};
constexpr OperationNames operation_names[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, -1,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, -1,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     -1, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
     CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
     CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, -1, -1,
     CUDNN_ATTR_OPERATION_REDUCTION_YDESC, CUDNN_ATTR_OPERATION_REDUCTION_DESC},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_ADESC,
     CUDNN_ATTR_OPERATION_MATMUL_BDESC, -1, CUDNN_ATTR_OPERATION_MATMUL_CDESC,
     CUDNN_ATTR_OPERATION_MATMUL_DESC},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, -1, -1,
     CUDNN_ATTR_OPERATION_RESHAPE_YDESC, -1},
};

const std::string text_mark = "a plan of the fake, number ";

}  // namespace

bool FakeCudnn::read_operation(const Item& item, FakeGraph& to,
                               std::map<const Item*, int>& tensors) {
  const auto names = std::find_if(std::begin(operation_names), std::end(operation_names),
                                  [&](const auto& n) { return n.type == item.type; });
  if (names == std::end(operation_names)) return false;
  const auto tensor = [&](int name) {
    const Item* found = name < 0 ? nullptr : part(item, name);
    if (found == nullptr) return -1;
    const auto [place, fresh] = tensors.try_emplace(found, static_cast<int>(to.tensors.size()));
    if (fresh) to.tensors.push_back(tensor_of(*found));
    return place->second;
  };
  FakeOperation o;
  o.type = item.type;
  o.x = tensor(names->x), o.b = tensor(names->b), o.select = tensor(names->select);
  o.y = tensor(names->y);
  if (names->settings >= 0) {
    const Item& settings = *part(item, names->settings);
    switch (settings.type) {
      case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
        o.strides = values<std::int64_t>(settings, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
        o.dilations = values<std::int64_t>(settings, CUDNN_ATTR_CONVOLUTION_DILATIONS);
        o.pads_begin = values<std::int64_t>(settings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
        o.pads_end = values<std::int64_t>(settings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
        break;
      case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
        o.mode = value<cudnnPointwiseMode_t>(settings, CUDNN_ATTR_POINTWISE_MODE);
        o.axis = static_cast<int>(value<std::int64_t>(settings, CUDNN_ATTR_POINTWISE_AXIS, -1));
        break;
      case CUDNN_BACKEND_REDUCTION_DESCRIPTOR:
        o.mode = value<cudnnReduceTensorOp_t>(settings, CUDNN_ATTR_REDUCTION_OPERATOR);
        break;
      case CUDNN_BACKEND_MATMUL_DESCRIPTOR:
        break;
      default:
        return false;
    }
  }
  to.operations.push_back(std::move(o));
  return true;
}

cudnnStatus_t FakeCudnn::finish_graph(Item& item) {
  auto graph = std::make_shared<FakeGraph>();
  std::map<const Item*, int> tensors;
  for (void* handle : values<void*>(item, CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    if (!read_operation(*find(handle), *graph, tensors))
      return broken("a graph has something that is no operation");
  }
  if (!handles_.contains(value<void*>(item, CUDNN_ATTR_OPERATIONGRAPH_HANDLE)))
    return broken("a graph is of no GPU");
  std::set<std::int64_t> ids;
  for (const FakeTensor& tensor : graph->tensors) {
    if (!ids.insert(tensor.id).second)
      return broken("two tensors have the id " + std::to_string(tensor.id),
                    CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES);
  }
  std::set<int> written;
  for (const FakeOperation& operation : graph->operations) {
    if (std::string text = shape_problem(*graph, operation); !text.empty())
      return broken(text, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
    for (const int tensor : operation.read()) {
      const FakeTensor& t = graph->tensors[static_cast<std::size_t>(tensor)];
      if (t.is_virtual && !written.contains(tensor))
        return broken("a virtual tensor is read before it is written");
    }
    if (!written.insert(operation.written()).second)
      return broken("a tensor is written twice in a graph");
    if (graph->tensors[static_cast<std::size_t>(operation.written())].is_by_value)
      return broken("a number is written");
  }
  item.graph = std::move(graph);
  return CUDNN_STATUS_SUCCESS;
}

std::vector<int> FakeCudnn::offered(const Item& heuristics) {
  std::vector<int> result;
  if (unsupported && unsupported(*heuristics.graph)) return result;
  const bool fallback = value<cudnnBackendHeurMode_t>(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE) ==
                        CUDNN_HEUR_MODE_FALLBACK;
  for (std::size_t i = 0; i < engines.size(); ++i) {
    if (engines[i].is_fallback == fallback) result.push_back(static_cast<int>(i));
  }
  return result;
}

cudnnStatus_t FakeCudnn::finish_plan(Item& item) {
  if (!handles_.contains(value<void*>(item, CUDNN_ATTR_EXECUTION_PLAN_HANDLE)))
    return broken("a plan is of no GPU");
  const bool from_text = item.attributes.contains(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
  if (from_text == item.attributes.contains(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG))
    return broken("a plan is made from an engine or from text");
  if (from_text) {
    const std::vector<char> text =
        values<char>(item, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
    const std::string all(text.begin(), text.end());
    std::size_t number = texts_.size();
    if (all.starts_with(text_mark)) number = std::stoul(all.substr(text_mark.size()));
    if (number >= texts_.size()) {  // no rule is broken, since files may be old
      last_ = "the text is no plan";
      return CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH;
    }
    std::tie(item.graph, item.engine) = texts_[number];
    ++plans_read_;
    return CUDNN_STATUS_SUCCESS;
  }
  const Item& configuration = *part(item, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  if (configuration.engine < 0 || !configuration.graph) return broken("a plan has no engine");
  if (!engines[static_cast<std::size_t>(configuration.engine)].makes_plans) {
    last_ = "the engine takes no such shape";
    return CUDNN_STATUS_NOT_SUPPORTED_SHAPE;
  }
  item.graph = configuration.graph;
  item.engine = configuration.engine;
  ++plans_made_;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t FakeCudnn::get(Item& item, int name, cudnnBackendAttributeType_t type,
                             std::int64_t room, std::int64_t* count, void* to) {
  // Fills descriptors that the caller has made.
  const auto hand_out = [&](cudnnBackendDescriptorType_t wanted, const std::vector<int>& all) {
    if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) return broken("a part is read as another type");
    *count = static_cast<std::int64_t>(all.size());
    if (room == 0) return CUDNN_STATUS_SUCCESS;
    *count = std::min(*count, room);
    void* const* const handles = static_cast<void* const*>(to);
    for (std::int64_t i = 0; i < *count; ++i) {
      Item* part = find(handles[i]);
      if (part == nullptr || part->type != wanted || part->is_finished)
        return broken("a part is read into a wrong descriptor");
      part->graph = item.graph;
      part->engine = all[static_cast<std::size_t>(i)];
      part->is_finished = true;
    }
    return CUDNN_STATUS_SUCCESS;
  };
  const auto number = [&](std::int64_t value) {
    if (type != CUDNN_TYPE_INT64 || room < 1) return broken("a number is read as another type");
    *static_cast<std::int64_t*>(to) = value;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  };
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      if (item.type != CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) break;
      return hand_out(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, offered(item));
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      if (item.type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) break;
      return hand_out(CUDNN_BACKEND_ENGINE_DESCRIPTOR, {item.engine});
    case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG:
      if (item.type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) break;
      return hand_out(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, {item.engine});
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      if (item.type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) break;
      return number(static_cast<std::int64_t>(
          engines[static_cast<std::size_t>(item.engine)].workspace_bytes));
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
      if (item.type != CUDNN_BACKEND_ENGINE_DESCRIPTOR) break;
      const auto& notes = engines[static_cast<std::size_t>(item.engine)].notes;
      *count = static_cast<std::int64_t>(notes.size());
      if (room > 0)
        std::copy_n(notes.begin(), std::min(room, *count),
                    static_cast<cudnnBackendNumericalNote_t*>(to));
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      if (item.type != CUDNN_BACKEND_ENGINE_DESCRIPTOR) break;
      *count = 0;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION: {
      if (item.type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) break;
      if (room == 0) texts_.emplace_back(item.graph, item.engine);
      const std::string text = text_mark + std::to_string(texts_.size() - 1);
      *count = static_cast<std::int64_t>(text.size());
      if (room > 0) std::copy_n(text.begin(), std::min(room, *count), static_cast<char*>(to));
      return CUDNN_STATUS_SUCCESS;
    }
    default:
      break;
  }
  return broken("attribute " + std::to_string(name) + " cannot be read of descriptor type " +
                std::to_string(item.type));
}

cudnnStatus_t FakeCudnn::execute(const Handle& handle, const Item& plan, const Item& pack) {
  const FakeGraph& graph = *plan.graph;
  const FakeEngine& engine = engines[static_cast<std::size_t>(plan.engine)];
  const auto ids = values<std::int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto given = values<void*>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  void* const workspace = value<void*>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (std::set<std::int64_t>(ids.begin(), ids.end()).size() != ids.size())
    return broken("a pack has an id twice");
  std::map<int, void*> addresses;
  std::map<int, double> numbers;
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const FakeTensor& tensor = graph.tensors[i];
    if (tensor.is_virtual) continue;
    const auto found = std::find(ids.begin(), ids.end(), tensor.id);
    if (found == ids.end())
      return broken("a pack lacks the tensor with the id " + std::to_string(tensor.id));
    void* const address = given[static_cast<std::size_t>(found - ids.begin())];
    if (address == nullptr) return broken("a pack has a null address");
    if (tensor.is_by_value) {
      numbers[static_cast<int>(i)] = *static_cast<const float*>(address);
      continue;
    }
    if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0)
      return broken("an address is no multiple of 16 bytes",
                    CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
    addresses[static_cast<int>(i)] = address;
  }
  if (addresses.size() + numbers.size() != ids.size())
    return broken("a pack has a tensor that is not in the graph");
  if (engine.workspace_bytes > 0 &&
      (workspace == nullptr || reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0))
    return broken("a plan has no workspace at a multiple of 256 bytes");
  for (const FakeOperation& operation : graph.operations) {
    const auto to = addresses.find(operation.written());
    if (to == addresses.end()) continue;
    const FakeTensor& result = graph.tensors[static_cast<std::size_t>(to->first)];
    for (const auto& [index, address] : addresses) {
      if (index == to->first) continue;
      if (overlap(graph.tensors[static_cast<std::size_t>(index)], address, result, to->second))
        return broken("a result overlaps another tensor");
    }
    if (overlap(workspace, engine.workspace_bytes, to->second, span_bytes(result)))
      return broken("a result overlaps the workspace");
  }
  kept_.push_back(plan.graph);
  runs_.push_back({plan.engine, plan.graph.get(), handle.stream});
  const bool tensor_cores = std::find(engine.notes.begin(), engine.notes.end(),
                                      CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != engine.notes.end();
  const cudaError_t error = runtime_->enqueue(
      handle.stream, "cudnn",
      [this, addresses, numbers, workspace, tensor_cores, bytes = engine.workspace_bytes,
       kept = plan.graph] {
        if (bytes > 0) std::memset(workspace, 0xff, bytes);
        if (std::string text = compute(*kept, addresses, numbers, tensor_cores); !text.empty())
          problems_.push_back(text);
      });
  return error == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // namespace tandem::testing
