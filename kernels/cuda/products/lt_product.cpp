#include "kernels/cuda/products/lt_product.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "engine/graph/error.h"
#include "kernels/shared/block/packs.h"

namespace tandem::cuda {
namespace {

/// The longest load of a kernel.
constexpr std::uint32_t best_alignment = 16;

/// The workspace that an algorithm may take in addition to the operands: NVIDIA's advice from
/// Hopper on, and for earlier GPUs.
std::size_t most_workspace(const GpuProperties& gpu) {
  return (gpu.major >= 9 ? std::size_t{32} : std::size_t{4}) << 20;
}

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return CUDA_R_16F;
    case DType::bfloat16:
      return CUDA_R_16BF;
    default:
      assert(dtype == DType::float32);
      return CUDA_R_32F;
  }
}

std::uint32_t alignment_of(std::uint64_t bytes, std::uint32_t most) {
  while (bytes % most != 0) most /= 2;
  return most;
}

[[noreturn]] void fail(ErrorKind kind, std::string message, std::string path, std::string got,
                       std::string fix) {
  throw Error(kind, Diagnostic{.message = std::move(message),
                               .path = std::move(path),
                               .got = std::move(got),
                               .fix = std::move(fix)});
}

}  // namespace

LtLibrary::~LtLibrary() {
  if (handle_ == nullptr) return;
  gpu_->runtime->set_gpu(gpu_->gpu);
  functions_->cublasLtDestroy(handle_);
}

void LtLibrary::open() {
  const std::lock_guard lock(mutex_);
  const cudaError_t chosen = gpu_->runtime->set_gpu(gpu_->gpu);
  if (chosen != cudaSuccess) {
    fail(ErrorKind::runtime, "the GPU cannot be used", "", gpu_->runtime->error_text(chosen), "");
  }
  if (handle_ != nullptr) return;
  functions_ = gpu_->libraries->cublas_lt();
  if (functions_ == nullptr) {
    fail(ErrorKind::usage, "matrix products on a GPU need cuBLASLt, which was not found", "", "",
         "`tandem doctor` says where it is looked for");
  }
  const cublasStatus_t status = functions_->cublasLtCreate(&handle_);
  if (status == CUBLAS_STATUS_SUCCESS) return;
  handle_ = nullptr;
  fail(ErrorKind::runtime, "cuBLASLt cannot be used", "", "cublasLtCreate: " + text(status), "");
}

std::string LtLibrary::text(cublasStatus_t status) const {
  return functions_->cublasLtGetStatusString(status);
}

bool LtLibrary::has_algorithm(const std::shared_ptr<LtLibrary>& library, const Product& product,
                              DType dtype) {
  const ColumnMajorProduct p = column_major(product);
  std::string key(name_of(dtype));
  const auto add = [&](std::int64_t number) { key += " " + std::to_string(number); };
  for (const ColumnMajor* matrix : {&p.left, &p.right, &p.result}) {
    for (const std::int64_t number : {matrix->rows, matrix->columns, matrix->ld,
                                      matrix->batch_stride, std::int64_t{matrix->transposed}})
      add(number);
  }
  add(p.batch);
  for (const CallOffset& call : p.calls) add(call.left), add(call.right), add(call.result);
  {
    const std::lock_guard lock(library->mutex_);
    if (const auto known = library->has_algorithm_.find(key);
        known != library->has_algorithm_.end())
      return known->second;
  }
  bool has = true;
  try {
    has = LtProduct::make(library, p, {.dtype = dtype}) != nullptr;
  } catch (const Error&) {
  }
  const std::lock_guard lock(library->mutex_);
  return library->has_algorithm_[key] = has;
}

std::unique_ptr<LtProduct> LtProduct::make(std::shared_ptr<LtLibrary> library,
                                           const ColumnMajorProduct& product,
                                           const LtSettings& settings) {
  library->open();
  std::unique_ptr<LtProduct> made(new LtProduct(std::move(library), product, settings));
  made->describe();
  // Operands are as a rule well aligned, but where they lie inside of others (slices) anything may
  // come: the least that every element has is enough for the second algorithm.
  const Alignments best = made->known_alignments(best_alignment);
  const Alignments least = made->known_alignments(1);
  made->add_algorithm(best);
  if (!(best == least)) made->add_algorithm(least);
  if (made->algorithms_.empty()) return nullptr;
  return made;
}

void LtProduct::describe() {
  const CublasLt& lt = library_->functions();
  const bool fast = settings_.dtype == DType::float32 && library_->gpu().allow_tf32;
  require(lt.cublasLtMatmulDescCreate(
              &operation_, fast ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "cublasLtMatmulDescCreate");
  const auto transposition = [](const ColumnMajor& matrix) {
    return static_cast<std::int32_t>(matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, transposition(product_.left));
  set(CUBLASLT_MATMUL_DESC_TRANSB, transposition(product_.right));
  if (settings_.scales_on_gpu) {
    set(CUBLASLT_MATMUL_DESC_POINTER_MODE, static_cast<std::int32_t>(CUBLASLT_POINTER_MODE_DEVICE));
  }
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<std::uint32_t>(settings_.epilogue));
  describe(left_, product_.left);
  describe(right_, product_.right);
  describe(result_, product_.result);
}

LtProduct::~LtProduct() {
  const CublasLt& lt = library_->functions();
  for (cublasLtMatrixLayout_t layout : {left_, right_, result_}) {
    if (layout != nullptr) lt.cublasLtMatrixLayoutDestroy(layout);
  }
  if (operation_ != nullptr) lt.cublasLtMatmulDescDestroy(operation_);
}

void LtProduct::require(cublasStatus_t status, const char* call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(ErrorKind::runtime, std::string(call) + " failed", settings_.path, library_->text(status),
       "");
}

template <class T>
void LtProduct::set(cublasLtMatmulDescAttributes_t attribute, T value) const {
  require(library_->functions().cublasLtMatmulDescSetAttribute(operation_, attribute, &value,
                                                               sizeof value),
          "cublasLtMatmulDescSetAttribute");
}

void LtProduct::describe(cublasLtMatrixLayout_t& layout, const ColumnMajor& matrix) const {
  const CublasLt& lt = library_->functions();
  require(lt.cublasLtMatrixLayoutCreate(&layout, data_type(settings_.dtype),
                                        static_cast<std::uint64_t>(matrix.rows),
                                        static_cast<std::uint64_t>(matrix.columns), matrix.ld),
          "cublasLtMatrixLayoutCreate");
  if (product_.batch == 1) return;
  const auto set_layout = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value) {
    require(lt.cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value),
            "cublasLtMatrixLayoutSetAttribute");
  };
  set_layout(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(product_.batch));
  set_layout(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.batch_stride);
}

/// What every matrix of every call has, given first elements at multiples of `most` bytes.
LtProduct::Alignments LtProduct::known_alignments(std::uint32_t most) const {
  const auto size = static_cast<std::uint32_t>(size_of(settings_.dtype));
  most = std::max(most, size);
  const auto of = [&](const ColumnMajor& matrix, std::int64_t CallOffset::*offset) {
    const auto bytes = [&](std::int64_t elements) {
      return static_cast<std::uint64_t>(elements) * size;
    };
    std::uint32_t alignment = alignment_of(bytes(matrix.batch_stride), most);
    for (const CallOffset& call : product_.calls) {
      alignment = alignment_of(bytes(call.*offset), alignment);
    }
    return alignment;
  };
  return {of(product_.left, &CallOffset::left), of(product_.right, &CallOffset::right),
          of(product_.result, &CallOffset::result), has_bias() ? most : size};
}

bool LtProduct::has_bias() const { return (settings_.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }

void LtProduct::add_algorithm(const Alignments& alignments) {
  const CublasLt& lt = library_->functions();
  cublasLtMatmulPreference_t preference = nullptr;
  require(lt.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  struct Destroyer {
    const CublasLt& lt;
    cublasLtMatmulPreference_t preference;
    ~Destroyer() { lt.cublasLtMatmulPreferenceDestroy(preference); }
  } destroyer{lt, preference};
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    require(lt.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
            "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
         static_cast<std::uint64_t>(most_workspace(library_->gpu().properties)));
  // Parts of a split sum meet in float32, also where the result has 16 bits.
  if (settings_.dtype != DType::float32) {
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  }
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignments.left);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignments.right);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignments.result);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignments.result);
  // The heuristic takes the bias' alignment from its address.
  if (has_bias()) {
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<std::uintptr_t>(alignments.bias));
  }
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  const cublasStatus_t status =
      lt.cublasLtMatmulAlgoGetHeuristic(library_->handle(), operation_, left_, right_, result_,
                                        result_, preference, 1, &found, &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && count == 0)) {
    return;
  }
  require(status, "cublasLtMatmulAlgoGetHeuristic");
  if (found.state != CUBLAS_STATUS_SUCCESS) return;
  algorithms_.push_back({alignments, found.algo, found.workspaceSize});
  workspace_bytes_ = std::max(workspace_bytes_, found.workspaceSize);
}

bool LtProduct::run(const LtArguments& x) const noexcept {
  const CublasLt& lt = library_->functions();
  GpuContext& gpu = library_->gpu();
  const void* const left = product_.swapped ? x.b : x.a;
  const void* const right = product_.swapped ? x.a : x.b;
  const void* const added = settings_.accumulate ? x.c : x.y;
  const Algorithm* chosen = nullptr;
  for (const Algorithm& algorithm : algorithms_) {
    const Alignments& need = algorithm.alignments;
    if (is_aligned(left, need.left) && is_aligned(right, need.right) &&
        is_aligned(x.y, need.result) && is_aligned(added, need.result) &&
        (!has_bias() || is_aligned(x.bias, need.bias))) {
      chosen = &algorithm;
      break;
    }
  }
  if (chosen == nullptr) return false;
  if (has_bias()) {
    const cublasStatus_t status = lt.cublasLtMatmulDescSetAttribute(
        operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &x.bias, sizeof x.bias);
    if (status != CUBLAS_STATUS_SUCCESS) {
      gpu.fail("cublasLtMatmulDescSetAttribute", library_->text(status));
      return true;
    }
  }
  const float host_scales[2] = {settings_.alpha, settings_.accumulate ? 1.0f : 0.0f};
  const float* const scales = settings_.scales_on_gpu ? x.scales : host_scales;
  const auto at = [&](const void* first, std::int64_t elements) {
    return static_cast<const char*>(first) +
           elements * static_cast<std::int64_t>(size_of(settings_.dtype));
  };
  for (const CallOffset& call : product_.calls) {
    void* const y = const_cast<char*>(at(x.y, call.result));
    const cublasStatus_t status = lt.cublasLtMatmul(
        library_->handle(), operation_, &scales[0], at(left, call.left), left_,
        at(right, call.right), right_, &scales[1], at(added, call.result), result_, y, result_,
        &chosen->algorithm, chosen->workspace_bytes == 0 ? nullptr : x.workspace,
        chosen->workspace_bytes, static_cast<cudaStream_t>(x.queue));
    if (status != CUBLAS_STATUS_SUCCESS) {
      gpu.fail("cublasLtMatmul", library_->text(status));
      return true;
    }
  }
  return true;
}

}  // namespace tandem::cuda
