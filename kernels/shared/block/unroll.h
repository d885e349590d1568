// Loops over registers.
#pragma once

/// In front of loops over registers: the GPU's compiler has to unroll them.
#if !defined(TANDEM_UNROLL)
#if defined(__CUDA_ARCH__)
#define TANDEM_UNROLL _Pragma("unroll")
#else
#define TANDEM_UNROLL
#endif
#endif
