// Choosing engines and making plans.
#include "kernels/cuda/networks/plans.h"

#include <algorithm>

#include "engine/graph/error.h"
#include "kernels/cuda/networks/plan_files.h"

namespace tandem::cuda {
namespace {

std::vector<cudnnBackendNumericalNote_t> notes_of(const Descriptor& engine) {
  return engine.values<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                    CUDNN_TYPE_NUMERICAL_NOTE);
}

// Fills `to`, a descriptor of that attribute's kind that is not finished.
bool get_descriptor(const Cudnn& cudnn, const Descriptor& from, cudnnBackendAttributeName_t name,
                    const Descriptor& to) {
  cudnnBackendDescriptor_t handle = to.get();
  std::int64_t count = 0;
  return cudnn.cudnnBackendGetAttribute(from.get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                        &handle) == CUDNN_STATUS_SUCCESS &&
         count == 1;
}

bool computes_float32(const NetworkGraph& graph) {
  return std::any_of(graph.tensors().begin(), graph.tensors().end(),
                     [](const GraphTensor& t) {
                       return t.place == TensorPlace::memory && t.type == CUDNN_DATA_FLOAT &&
                              !t.is_tiled;
                     }) &&
         std::none_of(graph.tensors().begin(), graph.tensors().end(), [](const GraphTensor& t) {
           return t.place == TensorPlace::memory &&
                  (t.type == CUDNN_DATA_HALF || t.type == CUDNN_DATA_BFLOAT16);
         });
}

bool is_allowed(const std::vector<cudnnBackendNumericalNote_t>& notes, const EngineRules& rules,
                bool float32) {
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
  };
  if (has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) && rules.deterministic) return false;
  if (has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return false;
  if (!float32) return true;
  if (has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return false;
  if (rules.tensor_cores) return true;
  // What remains computes as float32 does; large Winograd tiles and FFT lose digits of it.
  return !has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) && !has(CUDNN_NUMERICAL_NOTE_FFT) &&
         !has(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6) &&
         !has(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
}

[[noreturn]] void fail(std::string message, std::string got) {
  throw Error(ErrorKind::runtime, Diagnostic{.message = std::move(message), .got = std::move(got)});
}

}  // namespace

Plans::Plans(const Cudnn& cudnn, std::string gpu, std::string cache_folder)
    : cudnn_(cudnn), gpu_(std::move(gpu)), folder_(std::move(cache_folder)) {}

std::unique_ptr<Plans> Plans::described(const Cudnn& cudnn, const std::string& properties) {
  auto plans = std::make_unique<Plans>(cudnn, properties, "");
  plans->is_described_ = true;
  plans->properties_ = Descriptor(cudnn, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  plans->properties_.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                         static_cast<std::int64_t>(properties.size()), properties.data());
  plans->properties_.finalize();
  return plans;
}

Plans::~Plans() {
  plans_.clear();
  if (handle_ != nullptr) cudnn_.cudnnDestroy(handle_);
}

void Plans::open() {
  if (is_described_ || handle_ != nullptr) return;
  check(cudnn_, cudnn_.cudnnCreate(&handle_), "opening a GPU");
}

std::string Plans::key_of(const NetworkGraph& graph, const EngineRules& rules) const {
  return "cuDNN " + std::to_string(cudnn_.cudnnGetVersion()) + " " + gpu_ + " rules " +
         std::to_string(rules.tensor_cores) + std::to_string(rules.deterministic) + " " +
         std::to_string(rules.workspace_limit) + " " + graph.key();
}

Plans::Offers Plans::ask(const NetworkGraph& graph, const GraphDescriptors& descriptors,
                         const EngineRules& rules) {
  Offers offers;
  const bool float32 = computes_float32(graph);
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    Descriptor heuristics(cudnn_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, descriptors.graph);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (is_described_) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties_);
    const cudnnStatus_t status = cudnn_.cudnnBackendFinalize(heuristics.get());
    if (status != CUDNN_STATUS_SUCCESS) {
      offers.count.problem = failure_text(cudnn_, status);
      continue;
    }
    std::int64_t count = 0;
    check(cudnn_,
          cudnn_.cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
          "counting engines");
    std::vector<Descriptor> found;
    std::vector<cudnnBackendDescriptor_t> handles;
    for (std::int64_t i = 0; i < count; ++i) {
      found.emplace_back(cudnn_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      handles.push_back(found.back().get());
    }
    if (count > 0) {
      check(cudnn_,
            cudnn_.cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count,
                                            handles.data()),
            "reading engines");
    }
    found.resize(std::min(found.size(), static_cast<std::size_t>(count)));
    for (Descriptor& configuration : found) {
      Descriptor engine(cudnn_, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
      if (!get_descriptor(cudnn_, configuration, CUDNN_ATTR_ENGINECFG_ENGINE, engine)) continue;
      ++offers.count.offered;
      if (!is_allowed(notes_of(engine), rules, float32)) continue;
      ++offers.count.allowed;
      offers.configurations.push_back(std::move(configuration));
    }
  }
  return offers;
}

EngineCount Plans::count(const NetworkGraph& graph, const EngineRules& rules) {
  const std::string key = key_of(graph, rules);
  const std::lock_guard lock(mutex_);
  const auto known = counts_.find(key);
  if (known != counts_.end()) return known->second;
  EngineCount count;
  try {
    open();
    count = ask(graph, GraphDescriptors(cudnn_, graph, handle_), rules).count;
  } catch (const Error& error) {
    count.problem = error.what();
  }
  return counts_[key] = count;
}

Descriptor Plans::finish(const Descriptor& configuration) {
  Descriptor plan(cudnn_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (handle_ != nullptr) {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_);
  }
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (is_described_) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, properties_);
  plan.finalize();
  return plan;
}

std::shared_ptr<Plan> Plans::describe(const NetworkGraph& graph, Descriptor descriptor) const {
  auto plan = std::make_shared<Plan>();
  plan->workspace_bytes =
      static_cast<std::size_t>(descriptor.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  Descriptor configuration(cudnn_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  Descriptor engine(cudnn_, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  if (get_descriptor(cudnn_, descriptor, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration) &&
      get_descriptor(cudnn_, configuration, CUDNN_ATTR_ENGINECFG_ENGINE, engine)) {
    const auto notes = engine.values<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                                 CUDNN_TYPE_BEHAVIOR_NOTE);
    plan->is_compiled = std::find(notes.begin(), notes.end(),
                                  CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != notes.end();
  }
  for (const int index : graph.memory_tensors()) plan->ids.push_back(GraphTensor::id_of(index));
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    if (graph.tensors()[i].place != TensorPlace::number) continue;
    plan->ids.push_back(GraphTensor::id_of(static_cast<int>(i)));
    plan->numbers.push_back(graph.tensors()[i].number);
  }
  plan->descriptor = std::move(descriptor);
  return plan;
}

std::optional<Descriptor> Plans::read(const std::string& key) {
  if (folder_.empty()) return std::nullopt;
  const std::optional<std::string> text = read_plan_file(folder_, key);
  if (!text) return std::nullopt;
  try {  // A file of a driver or library that has changed since is made anew.
    Descriptor plan(cudnn_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
             static_cast<std::int64_t>(text->size()), text->data());
    plan.finalize();
    return plan;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void Plans::write(const std::string& key, const Descriptor& plan) {
  if (folder_.empty()) return;
  const std::vector<char> text =
      plan.values<char>(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR);
  if (!text.empty()) write_plan_file(folder_, key, {text.data(), text.size()});
}

std::shared_ptr<const Plan> Plans::plan(const NetworkGraph& graph, const EngineRules& rules) {
  const std::string key = key_of(graph, rules);
  const std::lock_guard lock(mutex_);
  const auto known = plans_.find(key);
  if (known != plans_.end()) return known->second;
  open();
  if (std::optional<Descriptor> kept = read(key)) {
    return plans_[key] = describe(graph, std::move(*kept));
  }
  const GraphDescriptors descriptors(cudnn_, graph, handle_);
  const Offers offers = ask(graph, descriptors, rules);
  std::shared_ptr<Plan> best;
  std::string problem = offers.count.problem;
  for (const Descriptor& configuration : offers.configurations) {
    std::shared_ptr<Plan> plan;
    try {
      plan = describe(graph, finish(configuration));
    } catch (const Error& error) {
      problem = error.what();
      continue;
    }
    if (!best || plan->workspace_bytes < best->workspace_bytes) best = std::move(plan);
    if (best->workspace_bytes <= rules.workspace_limit) break;
  }
  if (!best) {
    fail("cuDNN has no plan for an operation", std::to_string(offers.count.allowed) + " of " +
                                                   std::to_string(offers.count.offered) +
                                                   " engines may compute it; " + problem);
  }
  write(key, best->descriptor);
  return plans_[key] = best;
}

cudnnStatus_t Plans::set_stream(cudaStream_t stream) noexcept {
  if (stream_ && *stream_ == stream) return CUDNN_STATUS_SUCCESS;
  const cudnnStatus_t status = cudnn_.cudnnSetStream(handle_, stream);
  if (status == CUDNN_STATUS_SUCCESS) stream_ = stream;
  return status;
}

}  // namespace tandem::cuda
