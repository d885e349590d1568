// The functions of the fake cuBLASLt and the objects that they make.
#include "tests/cuda/support/fake_cublas_lt.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace tandem::testing {
namespace {

FakeCublasLt* current_lt = nullptr;

template <class T>
T* find(const std::map<void*, std::unique_ptr<T>>& map, const void* handle) {
  const auto found = map.find(const_cast<void*>(handle));
  return found == map.end() ? nullptr : found->second.get();
}

template <class Handle, class T>
Handle add(std::map<void*, std::unique_ptr<T>>& map, T value) {
  auto made = std::make_unique<T>(value);
  void* const key = made.get();
  map[key] = std::move(made);
  return static_cast<Handle>(key);
}

}  // namespace

/// The functions in the table.
struct LtFunctions {
  // What the table holds for a function that the fake does not have.
  template <class F>
  struct Missing;
  template <class R, class... A>
  struct Missing<R (*)(A...)> {
    static R call(A...) {
      current_lt->broken("a function is called that the fake does not have");
      return R{};
    }
  };

  static std::optional<cublasStatus_t> entered(const char* name) {
    const auto found = current_lt->failing.find(name);
    if (found == current_lt->failing.end()) return std::nullopt;
    return found->second;
  }

  template <class T>
  static cublasStatus_t set(const char* what, T& to, const void* from, std::size_t bytes) {
    if (from == nullptr || bytes != sizeof(T)) {
      return current_lt->broken(std::string(what) + " is set with " + std::to_string(bytes) +
                                " bytes instead of " + std::to_string(sizeof(T)));
    }
    std::memcpy(&to, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
  }

  template <class Handle, class T>
  static cublasStatus_t destroy(std::map<void*, std::unique_ptr<T>>& map, Handle handle) {
    if (map.erase(const_cast<void*>(static_cast<const void*>(handle))) == 1) {
      return CUBLAS_STATUS_SUCCESS;
    }
    return current_lt->broken("something is destroyed that does not exist");
  }

  static cublasStatus_t create(cublasLtHandle_t* to) {
    if (const auto failed = entered("cublasLtCreate")) return *failed;
    if (current_lt->runtime_->is_capturing())
      return current_lt->broken("cublasLtCreate while capturing");
    *to = reinterpret_cast<cublasLtHandle_t>(add<void*>(current_lt->handles_, 0));
    return CUBLAS_STATUS_SUCCESS;
  }

  static cublasStatus_t make_operation(cublasLtMatmulDesc_t* to, cublasComputeType_t compute,
                                       cudaDataType_t scale) {
    if (const auto failed = entered("cublasLtMatmulDescCreate")) return *failed;
    LtOperation operation;
    operation.compute = compute;
    operation.scale = scale;
    *to = static_cast<cublasLtMatmulDesc_t>(add<void*>(current_lt->operations_, operation));
    return CUBLAS_STATUS_SUCCESS;
  }

  static cublasStatus_t set_operation(cublasLtMatmulDesc_t handle,
                                      cublasLtMatmulDescAttributes_t attribute, const void* from,
                                      std::size_t bytes) {
    if (const auto failed = entered("cublasLtMatmulDescSetAttribute")) return *failed;
    LtOperation* const x = find(current_lt->operations_, handle);
    if (x == nullptr) return current_lt->broken("an attribute of an operation that does not exist");
    switch (attribute) {
      case CUBLASLT_MATMUL_DESC_POINTER_MODE:
        return set("POINTER_MODE", x->pointer_mode, from, bytes);
      case CUBLASLT_MATMUL_DESC_TRANSA:
        return set("TRANSA", x->transpose_a, from, bytes);
      case CUBLASLT_MATMUL_DESC_TRANSB:
        return set("TRANSB", x->transpose_b, from, bytes);
      case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set("EPILOGUE", x->epilogue, from, bytes);
      case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set("BIAS_POINTER", x->bias, from, bytes);
      default:
        return current_lt->broken("attribute " + std::to_string(attribute) +
                                  " of an operation is unknown to the fake");
    }
  }

  static cublasStatus_t make_matrix(cublasLtMatrixLayout_t* to, cudaDataType_t type,
                                    std::uint64_t rows, std::uint64_t columns, std::int64_t ld) {
    if (const auto failed = entered("cublasLtMatrixLayoutCreate")) return *failed;
    LtMatrix matrix;
    matrix.type = type;
    matrix.rows = rows;
    matrix.columns = columns;
    matrix.ld = ld;
    if (type != CUDA_R_32F && type != CUDA_R_16F && type != CUDA_R_16BF) {
      return current_lt->broken("a matrix of type " + std::to_string(type));
    }
    *to = static_cast<cublasLtMatrixLayout_t>(add<void*>(current_lt->matrices_, matrix));
    return CUBLAS_STATUS_SUCCESS;
  }

  static cublasStatus_t set_matrix(cublasLtMatrixLayout_t handle,
                                   cublasLtMatrixLayoutAttribute_t attribute, const void* from,
                                   std::size_t bytes) {
    if (const auto failed = entered("cublasLtMatrixLayoutSetAttribute")) return *failed;
    LtMatrix* const x = find(current_lt->matrices_, handle);
    if (x == nullptr) return current_lt->broken("an attribute of a matrix that does not exist");
    switch (attribute) {
      case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return set("BATCH_COUNT", x->batch, from, bytes);
      case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return set("STRIDED_BATCH_OFFSET", x->batch_stride, from, bytes);
      default:
        return current_lt->broken("attribute " + std::to_string(attribute) +
                                  " of a matrix is unknown to the fake");
    }
  }

  static cublasStatus_t make_preference(cublasLtMatmulPreference_t* to) {
    if (const auto failed = entered("cublasLtMatmulPreferenceCreate")) return *failed;
    *to = static_cast<cublasLtMatmulPreference_t>(
        add<void*>(current_lt->preferences_, LtPreference{}));
    return CUBLAS_STATUS_SUCCESS;
  }

  static cublasStatus_t set_preference(cublasLtMatmulPreference_t handle,
                                       cublasLtMatmulPreferenceAttributes_t attribute,
                                       const void* from, std::size_t bytes) {
    LtPreference* const x = find(current_lt->preferences_, handle);
    if (x == nullptr) return current_lt->broken("an attribute of a preference that does not exist");
    switch (attribute) {
      case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set("MAX_WORKSPACE_BYTES", x->workspace_bytes, from, bytes);
      case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return set("REDUCTION_SCHEME_MASK", x->reduction_schemes, from, bytes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        return set("MIN_ALIGNMENT_A_BYTES", x->alignment_a, from, bytes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        return set("MIN_ALIGNMENT_B_BYTES", x->alignment_b, from, bytes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        return set("MIN_ALIGNMENT_C_BYTES", x->alignment_c, from, bytes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return set("MIN_ALIGNMENT_D_BYTES", x->alignment_d, from, bytes);
      default:
        return current_lt->broken("attribute " + std::to_string(attribute) +
                                  " of a preference is unknown to the fake");
    }
  }

  /// Returns false if a handle or descriptor does not exist.
  static bool collect(LtProblem& problem, cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                      cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                      cublasLtMatrixLayout_t d) {
    const LtOperation* const x = find(current_lt->operations_, operation);
    const LtMatrix* const matrices[] = {
        find(current_lt->matrices_, a), find(current_lt->matrices_, b),
        find(current_lt->matrices_, c), find(current_lt->matrices_, d)};
    if (find(current_lt->handles_, handle) == nullptr || x == nullptr ||
        std::find(std::begin(matrices), std::end(matrices), nullptr) != std::end(matrices)) {
      return false;
    }
    problem.operation = *x;
    problem.a = *matrices[0];
    problem.b = *matrices[1];
    problem.c = *matrices[2];
    problem.d = *matrices[3];
    return true;
  }

  static cublasStatus_t heuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                  cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                  cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                  cublasLtMatmulPreference_t preference, int wanted,
                                  cublasLtMatmulHeuristicResult_t results[], int* count) {
    if (const auto failed = entered("cublasLtMatmulAlgoGetHeuristic")) return *failed;
    LtProblem problem;
    const LtPreference* const preferred = find(current_lt->preferences_, preference);
    if (wanted < 1 || preferred == nullptr || !collect(problem, handle, operation, a, b, c, d)) {
      return current_lt->broken("a heuristic over something that does not exist");
    }
    problem.preference = *preferred;
    return current_lt->heuristic(problem, results[0], *count);
  }

  static cublasStatus_t multiply(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                 const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                                 const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                                 const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                                 cublasLtMatrixLayout_t d_layout,
                                 const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                                 std::size_t workspace_bytes, cudaStream_t stream) {
    if (const auto failed = entered("cublasLtMatmul")) return *failed;
    LtProblem problem;
    if (!collect(problem, handle, operation, a_layout, b_layout, c_layout, d_layout)) {
      return current_lt->broken("a product over something that does not exist");
    }
    return current_lt->multiply(problem, algorithm, alpha, beta, a, b, c, d, workspace,
                                workspace_bytes, stream);
  }

  static void fill(cuda::CublasLt& table) {
#define TANDEM_MISSING(name) table.name = &Missing<decltype(table.name)>::call;
    TANDEM_CUBLAS_LT_FUNCTIONS(TANDEM_MISSING)
#undef TANDEM_MISSING
    table.cublasLtGetVersion = [] { return static_cast<std::size_t>(CUBLAS_VERSION); };
    table.cublasLtGetStatusString = [](cublasStatus_t status) -> const char* {
      return status == CUBLAS_STATUS_EXECUTION_FAILED ? "execution failed" : "another failure";
    };
    table.cublasLtCreate = &create;
    table.cublasLtDestroy = [](cublasLtHandle_t x) { return destroy(current_lt->handles_, x); };
    table.cublasLtMatmulDescCreate = &make_operation;
    table.cublasLtMatmulDescSetAttribute = &set_operation;
    table.cublasLtMatmulDescDestroy = [](cublasLtMatmulDesc_t x) {
      return destroy(current_lt->operations_, x);
    };
    table.cublasLtMatrixLayoutCreate = &make_matrix;
    table.cublasLtMatrixLayoutSetAttribute = &set_matrix;
    table.cublasLtMatrixLayoutDestroy = [](cublasLtMatrixLayout_t x) {
      return destroy(current_lt->matrices_, x);
    };
    table.cublasLtMatmulPreferenceCreate = &make_preference;
    table.cublasLtMatmulPreferenceSetAttribute = &set_preference;
    table.cublasLtMatmulPreferenceDestroy = [](cublasLtMatmulPreference_t x) {
      return destroy(current_lt->preferences_, x);
    };
    table.cublasLtMatmulAlgoGetHeuristic = &heuristic;
    table.cublasLtMatmul = &multiply;
  }
};

FakeCublasLt::FakeCublasLt(std::shared_ptr<FakeRuntime> runtime) : runtime_(std::move(runtime)) {
  if (current_lt != nullptr) broken("two fakes of cuBLASLt at a time");
  current_lt = this;
  LtFunctions::fill(table_);
}

FakeCublasLt::~FakeCublasLt() { current_lt = nullptr; }

}  // namespace tandem::testing
