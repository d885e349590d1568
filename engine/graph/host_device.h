// Marks functions that g++ compiles for the host, and nvcc and NVRTC for host and device.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define TANDEM_HOST_DEVICE __host__ __device__
#else
#define TANDEM_HOST_DEVICE
#endif
