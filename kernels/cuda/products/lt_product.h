// Products by cuBLASLt: descriptors and algorithms fixed once, then run at any addresses.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/cuda/context.h"
#include "kernels/cuda/libraries/cublas_lt.h"
#include "kernels/cuda/products/product.h"

namespace tandem::cuda {

/// cuBLASLt with a handle of one GPU, made at the first use.
class LtLibrary {
 public:
  explicit LtLibrary(Gpu gpu) : gpu_(std::move(gpu)) {}
  ~LtLibrary();
  LtLibrary(const LtLibrary&) = delete;
  LtLibrary& operator=(const LtLibrary&) = delete;

  /// Chooses the GPU for the calling thread and makes the handle. Throws Error{usage} where the
  /// library is missing, Error{runtime} where it fails.
  void open();
  GpuContext& gpu() const { return *gpu_; }
  // Only once the library is open.
  const CublasLt& functions() const { return *functions_; }
  cublasLtHandle_t handle() const { return handle_; }
  std::string text(cublasStatus_t status) const;

  /// Whether cuBLASLt has any algorithm for the product, without an epilogue; asked once for each.
  /// True where cuBLASLt cannot be asked: preparing the product then reports why.
  static bool has_algorithm(const std::shared_ptr<LtLibrary>& library, const Product& product,
                            DType dtype);

 private:
  std::map<std::string, bool> has_algorithm_;
  Gpu gpu_;
  std::mutex mutex_;
  const CublasLt* functions_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
};

struct LtSettings {
  DType dtype = DType::float32;  // type of all operands: float32, float16 or bfloat16
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float alpha = 1;
  bool accumulate = false;     // adds c
  bool scales_on_gpu = false;  // alpha and beta are read from LtArguments::scales
  std::string path;            // path of the node, for errors
};

/// Addresses of the first elements, on the GPU.
struct LtArguments {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;  // where it accumulates; laid out as y, may be y
  void* y = nullptr;
  const void* bias = nullptr;  // for epilogues with a bias
  const float* scales = nullptr;
  void* workspace = nullptr;  // 16-byte aligned
  void* queue = nullptr;      // the stream
};

/// One product, with the algorithms that cuBLASLt's heuristic chose.
class LtProduct {
 public:
  /// Null where cuBLASLt has no algorithm for it. Throws Error{runtime} where a call fails.
  static std::unique_ptr<LtProduct> make(std::shared_ptr<LtLibrary> library,
                                         const ColumnMajorProduct& product,
                                         const LtSettings& settings);
  ~LtProduct();
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// y = epilogue(alpha a b [+ c]); what fails is noted in the GPU's context. False, and nothing
  /// is done, where no algorithm takes operands at these addresses.
  bool run(const LtArguments& arguments) const noexcept;

 private:
  /// What an algorithm may rely on: addresses are multiples of these bytes.
  struct Alignments {
    std::uint32_t left = 0, right = 0, result = 0, bias = 0;
    bool operator==(const Alignments&) const = default;
  };
  struct Algorithm {
    Alignments alignments;
    cublasLtMatmulAlgo_t algorithm = {};
    std::size_t workspace_bytes = 0;
  };

  LtProduct(std::shared_ptr<LtLibrary> library, const ColumnMajorProduct& product,
            const LtSettings& settings)
      : library_(std::move(library)), product_(product), settings_(settings) {}
  void describe();
  void require(cublasStatus_t status, const char* call) const;
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) const;
  void describe(cublasLtMatrixLayout_t& layout, const ColumnMajor& matrix) const;
  Alignments known_alignments(std::uint32_t most) const;
  void add_algorithm(const Alignments& alignments);
  bool has_bias() const;

  std::shared_ptr<LtLibrary> library_;
  ColumnMajorProduct product_;
  LtSettings settings_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t left_ = nullptr, right_ = nullptr, result_ = nullptr;
  std::vector<Algorithm> algorithms_;  // the fastest first; the last one asks for the least
  std::size_t workspace_bytes_ = 0;
};

}  // namespace tandem::cuda
