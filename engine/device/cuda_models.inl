// What NVIDIA states of its common GPUs, one a row: the name that --profile takes, tera operations
// a second of products in float32, TF32, float16 and bfloat16 (without sparsity, sums in float32;
// 0: there are none, and float32 counts), GB/s of its memory, GB of it, GB/s of the PCIe link to
// the host in one direction (x16: 64 of version 5, 32 of 4, 16 of 3); all by 1000s.
//
// From NVIDIA's data sheets: H200 and H100 (SXM), A100 (SXM, both sizes), A10, L4, L40S, T4 and
// V100 (SXM2, 32 GB), whose rates "with sparsity" are halved here; of GeForce cards from the
// appendices of the white papers "GA102", "Ada GPU architecture" and "RTX Blackwell".
{"h200", 67, 494.7, 989.4, 989.4, 4800, 141, 64},
{"h100", 67, 494.7, 989.4, 989.4, 3350, 80, 64},
{"a100", 19.5, 156, 312, 312, 2039, 80, 32},
{"a100-40", 19.5, 156, 312, 312, 1555, 40, 32},
{"a10", 31.2, 62.5, 125, 125, 600, 24, 32},
{"l4", 30.3, 60, 121, 121, 300, 24, 32},
{"l40s", 91.6, 183, 362, 362, 864, 48, 32},
{"t4", 8.1, 0, 65, 0, 320, 16, 16},
{"v100", 15.7, 0, 125, 0, 900, 32, 16},
{"rtx3090", 35.6, 35.6, 71.2, 71.2, 936, 24, 32},
{"rtx4090", 82.6, 82.6, 165.2, 165.2, 1008, 24, 32},
{"rtx5090", 104.8, 104.8, 209.5, 209.5, 1792, 32, 64},
